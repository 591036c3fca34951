"""The report: one HTML page for one run or several, that needs nothing but itself."""
