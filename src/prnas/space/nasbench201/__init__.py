"""NAS-Bench-201: a space of 15,625 cells, each of which has been trained; the table is here."""
