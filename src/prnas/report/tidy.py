"""Records as tidy data for pandas, R and papers: a row for each epoch and measure.

One word means one thing, and counts start at 1, as on the screen. The words do not depend on the
version of the records that a run has.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from prnas.io.errors import FormatError, UserError
from prnas.report.plain_data import whole_at
from prnas.report.read_run import read_info
from prnas.report.view import RunInfo
from prnas.runs.integrity import check_records, check_run_config, newest_state, written_by
from prnas.runs.names import CONFIG, RECORDS
from prnas.runs.record_lines import read_records
from prnas.runs.records import OPTIONAL, CycleRecord, EpochRecord, Evidence, Record
from prnas.space.change import Change
from prnas.space.shape import Role

Row = dict[str, Any]
RUN = ("run", "task", "seed")
COLUMNS = (*RUN, "cycle", "epoch", "total_epoch", "grace", "part", "measure", "value")
CANDIDATE_COLUMNS = (
    *(*RUN, "cycle", "cell", "edge", "candidate", "architecture_weight", "pruned"),
    *("worth", "worth_error", "saliency", "saliency_error", "path_worth", "path_worth_error"),
)
ALL = "all"  # The part of a measure that is of the epoch as a whole.
PARTS = {"testing": "test"}  # What records of seconds call otherwise than records of scores do.


def epoch_rows(folder: Path, name: str) -> Iterator[Row]:
    """A row for each measure of each epoch of a run, in the order in which they were recorded."""
    start, records = _read(folder, name)
    for record in records:
        if isinstance(record, EpochRecord):
            when = {
                "cycle": record.cycle,
                "epoch": record.epoch,
                "total_epoch": record.total_epoch,
                "grace": record.grace,
            }
            for part, measure, value in _measures(record):
                yield {**start, **when, "part": part, "measure": measure, "value": value}


def _measures(record: EpochRecord) -> Iterator[tuple[str, str, float | int]]:
    """(part, measure, value)."""
    for part, score in record.scores.items():
        yield part, "accuracy", score.accuracy
        yield part, "loss", score.loss
        yield part, "images", score.images
    yield next(iter(record.scores)), "learning_rate", record.lr
    if record.architecture_lr is not None:
        yield "architecture", "learning_rate", record.architecture_lr
    if record.derived is not None:
        if record.derived.edits is not None:
            yield "genotype", "edits", record.derived.edits
        for role, share in record.derived.skips.items():
            yield "genotype", f"skips_{role}", share
    for name in OPTIONAL:
        if (value := getattr(record, name)) is not None:
            yield "architecture", name, value
    if record.drop_path is not None:
        yield ALL, "drop_path", record.drop_path
    yield ALL, "steps", record.steps
    yield ALL, "batch_size", record.batch
    yield ALL, "seconds", record.seconds
    for part, seconds in record.seconds_for.items():
        yield PARTS.get(part, part), "seconds", seconds
    yield ALL, "images_per_second", record.images_per_second
    yield ALL, "peak_memory", record.memory


def candidate_rows(folder: Path, name: str) -> Iterator[Row]:
    """A row for each candidate of each edge at the end of each cycle; none of a training."""
    start, records = _read(folder, name)
    for record in records:
        if isinstance(record, CycleRecord):
            try:
                yield from _candidates(record, start)
            except (FormatError, ValueError, KeyError) as error:
                raise UserError(f"{folder / RECORDS}, cycle {record.cycle}: {error}") from None


def _candidates(record: CycleRecord, start: Row) -> Iterator[Row]:
    change = Change.from_json(record.change)
    for role in change.roles:
        pools, weights = record.pools[role], record.architecture_weights[role]
        edges = zip(pools, weights, change.cell(role).edges, strict=True)
        for edge, (labels, numbers, changed) in enumerate(edges, 1):
            pruned = {candidate.op.label for candidate in changed.pruned}
            measured = _measured(record.evidence, role, edge - 1, len(labels))
            for label, weight, worth in zip(labels, numbers, measured, strict=True):
                yield {
                    **start,
                    "cycle": record.cycle,
                    "cell": role,
                    "edge": edge,
                    "candidate": label,
                    "architecture_weight": weight,
                    "pruned": label in pruned,
                    **worth,
                }


def _measured(evidence: Evidence | None, role: Role, edge: int, size: int) -> list[Row]:
    """The worth of each candidate of an edge, with standard errors, as far as it was measured."""
    rows: list[Row] = [{} for _ in range(size)]
    for name, cells in (
        ("worth", evidence.removal if evidence else {}),
        ("saliency", evidence.saliency if evidence else {}),
        ("path_worth", evidence.paths if evidence else {}),
    ):
        worths = cells.get(role) or [None] * (edge + 1)
        worth = worths[edge]
        nothing: list[float | None] = [None] * size
        means, errors = (worth.mean, worth.error) if worth else (nothing, nothing)
        for row, mean, error in zip(rows, means, errors, strict=True):
            row |= {name: mean, f"{name}_error": error}
    return rows


def _read(folder: Path, name: str) -> tuple[Row, list[Record]]:
    """The first columns of all rows of a run, and its records."""
    info, records = read_verified(folder, name)
    task = "retrain" if info.is_training else "search"
    return {"run": name, "task": task, "seed": whole_at(info.config, "seed")}, records


def read_verified(folder: Path, name: str | None = None) -> tuple[RunInfo, list[Record]]:
    """The facts of a run, and its records, verified as for a report."""
    file = folder / RECORDS
    check_records(folder, file)
    info = read_info(folder, name)
    if newest_state(folder):
        check_run_config(folder, folder / CONFIG, info.config)
    try:
        records = read_records(file)
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    except FormatError as error:
        raise UserError(f"{error}{written_by(folder)}") from None
    return info, records


def csv_lines(rows: Iterable[Row], columns: Sequence[str]) -> Iterator[str]:
    """A head, then a line for each row; what is not known is empty, and truth is `true`."""
    yield _csv_line(columns)
    for row in rows:
        values = (row[column] for column in columns)
        yield _csv_line([str(v).lower() if isinstance(v, bool) else v for v in values])


def _csv_line(values: Sequence[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()


def json_lines(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(row, ensure_ascii=False) + "\n"
