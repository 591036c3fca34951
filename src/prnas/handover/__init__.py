"""Trained models in use: tested, asked, handed over."""
