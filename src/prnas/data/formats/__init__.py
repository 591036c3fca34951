"""Readers of data sets, one file a format."""
