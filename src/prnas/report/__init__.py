"""Reports of runs: the page, figures, TensorBoard."""
