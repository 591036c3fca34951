"""Images: found, read, stored, shuffled and varied."""
