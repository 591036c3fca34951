"""A trained model as files that other tools load."""
