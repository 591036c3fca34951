"""Configs of runs: sections, overrides, recipes."""
