"""What every run has: folder, checkpoints, records, processes, signals, batch size."""
