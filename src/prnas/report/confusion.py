"""What the test images of each class were taken for, for the page."""

from collections.abc import Sequence
from typing import Any

from prnas.models.confusions import confusions
from prnas.runs.records import TrainedRecord

MOST_CLASSES = 120  # whose confusion is drawn as a matrix; of more, only the worst pairs are shown
WORST_PAIRS = 12
LONGEST_NAME = 200  # of a class: a matrix cannot show more


def confusion_of(trained: Sequence[TrainedRecord]) -> dict[str, Any] | None:
    """The matrices of trainings on the same classes, added up (unless that is huge), and the pairs
    of classes that are confused most; nothing of trainings on different classes.
    """
    names = trained[0].class_names
    size = len(names)
    if not all(is_sound(record) and record.class_names == names for record in trained):
        return None
    rows = zip(*(record.confusion for record in trained), strict=True)
    counts = [[sum(cells) for cells in zip(*row, strict=True)] for row in rows]
    worst = confusions(counts, WORST_PAIRS)
    drawn = size <= MOST_CLASSES
    used = range(size) if drawn else {i for pair in worst for i in (pair.true, pair.predicted)}
    return {
        "names": {str(i): _clipped(names[i]) for i in sorted(used)},
        "size": size,
        "counts": counts if drawn else None,
        "worst": [
            [pair.true, pair.predicted, pair.count, sum(counts[pair.true])] for pair in worst
        ],
    }


def is_sound(record: TrainedRecord) -> bool:
    """Whether there are classes, and counts for every two of them."""
    size = len(record.class_names)
    widths = [len(row) for row in record.confusion]
    counts = (count for row in record.confusion for count in row)
    return size > 0 and widths == [size] * size and all(count >= 0 for count in counts)


def _clipped(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
