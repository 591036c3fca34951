"""The names in the folder of a fit. Light."""

FIT, RESULTS, PAGE, CARD = "fit.json", "results.json", "fit.html", "MODEL-CARD.md"
EXPORTS, SEARCH, LOCK = "export", "search", ".fit.lock"
