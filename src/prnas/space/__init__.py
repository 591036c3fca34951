"""What can be searched, as plain values: no torch here, and nothing that acts."""
