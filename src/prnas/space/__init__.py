"""The search space as plain values: no torch here, and nothing that acts."""
