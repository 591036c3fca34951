"""Studies: many searches and trainings, their jobs, and what may be concluded from them."""
