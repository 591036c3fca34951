"""The parts of `torture.fuzz`: what is attacked, how inputs are spoilt, and what counts as harm."""
