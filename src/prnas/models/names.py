"""The names of a trained model's files. Light: nothing is imported here."""

WEIGHTS, CARD = "model.safetensors", "model.json"
FOLDER = "model"  # The folder of both inside a run's folder.
