"""The names in a study's folder. Light: nothing is imported here."""

STUDY, RETRAIN, SEARCH = "study.json", "retrain.yaml", "search.yaml"
SUMMARY, ATTEMPTS = "summary.json", "attempts.jsonl"
# Names that no row can have; some are for later releases.
OWN = {STUDY, RETRAIN, SEARCH, SUMMARY, ATTEMPTS, "report.html", "results.csv", "results.tex"}
