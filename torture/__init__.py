"""Faults on purpose, many of them: what docs/reliability.md promises, with figures."""
