"""Networks as torch modules, built from the values of `prnas.space`."""
