"""What a run's folder holds, for people."""

from pathlib import Path

# In the order in which it is told; other files are just named.
CONTENTS = {
    "genotype.json": "the cells",
    "model": "the trained model",
    "report.html": "the whole run to look at: open it in a browser",
    "config.yaml": "the whole config: runs it again",
    "records.jsonl": "a record of every epoch, cycle and batch size",
    "environment.json": "versions, device and commands",
    "batch-decisions.jsonl": "every choice of the batch size",
    "checkpoints": "the saved state",
    "tensorboard": "curves, for TensorBoard",
}


def contents(folder: Path) -> list[str]:
    try:
        names = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    except OSError:  # moved or removed meanwhile; the result itself is in memory
        return []
    known = [f"{name}: {what}" for name, what in CONTENTS.items() if name in names]
    return known + sorted(names - set(CONTENTS))
