"""The files in a run's folder, described for people."""

from pathlib import Path

from prnas.runs import names

# In this order; other files are listed by name only.
DESCRIPTIONS = {
    names.GENOTYPE: "the cells",
    names.MODEL: "the trained model",
    names.REPORT: "the report; open it in a browser",
    names.CONFIG: "full configuration; prnas search or retrain with this file repeats the run",
    names.RECORDS: "a record of every epoch",
    names.ENVIRONMENT: "versions, device and commands",
    names.DECISIONS: "every choice of the batch size",
    names.CHECKPOINTS: "the saved state",
    names.TENSORBOARD: "curves, for TensorBoard",
}


def contents(folder: Path) -> list[str]:
    try:
        inside = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    except OSError:  # It was moved or removed; the result itself is in memory.
        return []
    described = [f"{name}: {what}" for name, what in DESCRIPTIONS.items() if name in inside]
    return described + sorted(inside - set(DESCRIPTIONS))
