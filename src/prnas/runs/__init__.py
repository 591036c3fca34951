"""Everything that all runs have: folder, checkpoints, records, processes, signals, batch size."""
