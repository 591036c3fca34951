"""Data sets: images that are read, stored, shuffled and augmented."""
