"""Studies that come with prnas, a YAML file each."""
