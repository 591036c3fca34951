"""Where images come from. Nothing here knows PyTorch: worker processes start at once."""
