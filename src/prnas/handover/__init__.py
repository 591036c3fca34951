"""A trained model leaves prnas: files that other tools load without it."""
