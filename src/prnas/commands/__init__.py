"""What each command does, apart from how its options are spelt (`prnas.cli`)."""
