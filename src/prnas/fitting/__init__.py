"""From pictures to a tested model, within a budget of time."""
