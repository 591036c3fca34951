"""The search: its loop, step, state and end of a cycle."""
