"""Runs that are hurt on purpose: they must lose nothing and say what happened."""
