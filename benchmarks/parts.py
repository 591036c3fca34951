"""Where a search's time went, by the records of its run.

python -m benchmarks.parts runs/RUN [...]
"""

import argparse
from pathlib import Path

from prnas.runs.record_lines import read_records
from prnas.runs.records import EpochRecord


def shares(run: Path) -> dict[str, float]:
    """The share of each part in the seconds of all epochs, validation left out."""
    epochs = [
        record for record in read_records(run / "records.jsonl") if isinstance(record, EpochRecord)
    ]
    names = [name for name in epochs[0].seconds_for if name != "validation"]
    seconds = {name: sum(epoch.seconds_for[name] for epoch in epochs) for name in names}
    return {name: number / sum(seconds.values()) for name, number in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("runs", nargs="+", type=Path)
    for run in parser.parse_args().runs:
        parts = shares(run)
        steps = parts["architecture"] + parts["weights"]
        text = ", ".join(f"{name} {share:.2%}" for name, share in parts.items())
        print(f"{run}: {text}; all but the two steps {1 - steps:.2%}")


if __name__ == "__main__":
    main()
