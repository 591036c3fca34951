"""What a run and its result look like to people: drawings and reports."""
