"""The training of a final network."""
