"""Hypothesis: the same examples on every run, and no deadline on machines under load."""

from hypothesis import settings

settings.register_profile("prnas", deadline=None, derandomize=True)
settings.load_profile("prnas")
