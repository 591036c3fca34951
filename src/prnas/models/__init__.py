"""Trained networks: what they are, and the files that hold them."""
