"""Files in and out: written whole, read with suspicion, and what to say when they are wrong."""
