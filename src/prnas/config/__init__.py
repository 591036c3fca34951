"""What a run is told: sections, overrides, recipes."""
