"""The commands' work; how their options are spelt is in `prnas.cli`."""
