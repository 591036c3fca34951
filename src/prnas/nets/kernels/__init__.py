"""The arithmetic of the supernet and of fast training, by hand."""
