"""A run as the page wants it: records are added as they come, `data` is what is shown now."""

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from prnas.config import recipes
from prnas.drawing.cells import CONCAT_LINE, draw_cell
from prnas.drawing.colors import INPUT, NODE, OUTPUT, PALETTE, PLAIN
from prnas.drawing.picture import Box, Curve, Picture, Polygon, Text
from prnas.io.errors import FormatError
from prnas.io.reading import parse_json
from prnas.report.plain_data import list_at, pick, rounded, text_at, whole_at
from prnas.runs.records import OPTIONAL, BatchRecord, EpochRecord, Record, Score
from prnas.space.genotype import Genotype
from prnas.space.resnet import RESNET
from prnas.space.shape import Role

Facts = list[tuple[str, str]]


def phrase(template: str, *values: Any) -> str:
    """The template with its values, or nothing if one of them is missing."""
    return template.format(*values) if all(values) else ""


def network_phrase(config: Mapping[str, Any], template: str) -> str:
    """The template with the number of cells or blocks, what they are, and the channels."""
    cells, channels = whole_at(config, "network.cells"), whole_at(config, "network.channels")
    if text_at(config, "network.kind") != RESNET:
        return phrase(template, cells, "cells", channels)
    return "plain ResNet: " + phrase(template, cells, "blocks", channels)


def facts_of(*facts: tuple[str, str | None]) -> Facts:
    """(label, text) of those that say something."""
    return [(label, text) for label, text in facts if text]


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The facts of a run beside its records. `config` and `sessions` are plain data."""

    name: str
    folder: str
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sessions: Sequence[Any] = ()

    @property
    def is_training(self) -> bool:
        return text_at(self.config, "task") == "retrain"

    @property
    def quoted(self) -> str:
        return shlex.quote(self.folder)

    def file(self, name: str) -> str:
        return shlex.quote(f"{self.folder.rstrip('/')}/{name}")


@dataclass(frozen=True, slots=True)
class Band:
    """The epochs of a cycle; the first `grace` of them are without architecture steps."""

    start: int
    end: int
    grace: int


class Epochs:
    """Columns with a value for each epoch, rounded when it is added."""

    def __init__(self) -> None:
        self.columns: dict[str, list[float | None]] = {}
        self.batches: list[tuple[float, int]] = []  # (epochs done, batch size from there on)
        self.scores: dict[str, Score] = {}  # the last of every name
        self.done = 0
        self.seconds = 0.0
        self.memory = 0.0  # the peak, in bytes
        self._pending: list[BatchRecord] = []

    def add(self, record: Record) -> None:
        if isinstance(record, BatchRecord):
            self._pending.append(record)
        if not isinstance(record, EpochRecord):
            return
        names = ("lr", "architecture_lr", "drop_path", "batch", "seconds", "memory")
        names += OPTIONAL
        row: dict[str, float | None] = {name: getattr(record, name) for name in names}
        row["speed"] = record.images_per_second
        if record.derived is not None:
            row["edits"] = record.derived.edits
            row |= {f"skips_{role}": share for role, share in record.derived.skips.items()}
        for name, score in record.scores.items():
            row[f"{name}_accuracy"] = score.accuracy
            row[f"{name}_error"] = 1 - score.accuracy
            row[f"{name}_loss"] = score.loss
        self.scores |= record.scores
        for name in row.keys() | self.columns.keys():
            column = self.columns.setdefault(name, [None] * self.done)
            column.append(rounded(row.get(name)))
        # A change of the batch size stands where its step was within the epoch.
        for change in self._pending:
            position = self.done + min((change.step - 1) / max(record.steps, 1), 1.0)
            self.batches.append((round(position, 3), change.batch))
        self._pending.clear()
        self.seconds += record.seconds
        self.memory = max(self.memory, record.memory)
        self.done += 1


class View(ABC):
    """Takes a run's records one by one; says at any time what the page should show."""

    kind: str  # search or training
    result: str  # the key of the number that counts, and what people call it
    result_name: str

    def __init__(self, info: RunInfo) -> None:
        self.info = info
        self.genotype: Genotype | None = None  # The genotype, as far as it is known.
        self.ended = False
        self.planned = 0  # epochs that the run will have, as far as it is known
        self.epochs = Epochs()
        self.bands: list[Band] = []

    @abstractmethod
    def add(self, record: Record) -> None: ...

    @abstractmethod
    def data(self) -> dict[str, Any]: ...

    def _commands(self, repeat: tuple[str, str], resume: str, then: Facts) -> Facts:
        """Commands to repeat the run, to watch it and go on or, once it has ended, `then`."""
        quoted, original = self.info.quoted, original_command(self.info)
        while_it_goes = [
            ("Watch it live", f"prnas watch {quoted}"),
            ("Go on if it stopped", f"{resume} --resume {quoted}"),
        ]
        started = [("Started by", original)] if original else []
        return [repeat, *(then if self.ended else while_it_goes), *started]

    def common(self, facts: Facts, commands: Facts) -> dict[str, Any]:
        """The data that all kinds of runs have: name, state, facts, commands."""
        info = self.info
        seed = whole_at(info.config, "seed")
        seeds = [] if seed is None else [("Seed", str(seed))]
        return {
            "kind": self.kind,
            "name": info.name,
            "description": _description(info.config),
            "done": self.epochs.done,
            "planned": max(self.planned, self.epochs.done),
            "seconds": rounded(self.epochs.seconds),
            "memory": rounded(self.epochs.memory),
            "ended": self.ended,
            "seed": seed,
            "data": text_at(info.config, "data.name"),
            "facts": [*facts, *seeds, *_session_facts(info)],
            "commands": commands,
        }


def _description(config: Mapping[str, Any]) -> str:
    """A config's description; that of a recipe is not true of other data."""
    text = text_at(config, "description") or ""
    return text if recipes.data_of_description(text) in (None, text_at(config, "data.name")) else ""


def _session_facts(info: RunInfo) -> Facts:
    """Machine and time of the run, from its environment file."""
    if not info.sessions:
        return [("Folder", info.folder)]
    last, times = info.sessions[-1], len(info.sessions) - 1
    packages = {"prnas": "prnas", "Python": "python", "PyTorch": "packages.torch"}
    versions = [phrase("{} {}", name, text_at(last, path)) for name, path in packages.items()]
    commit, started = text_at(last, "git.commit"), text_at(info.sessions[0], "started")
    changed = "" if pick(last, "git.clean") is True else ", with changes"
    resumed = f", resumed {times} time{'s' if times > 1 else ''}" if times else ""
    return facts_of(
        ("Device", device(last)),
        ("Versions", ", ".join(filter(None, versions))),
        ("Sources", commit and f"{commit[:12]}{changed}"),
        ("Started", started and started.replace("T", " ") + resumed),
        ("Folder", info.folder),
    )


def device(session: Any) -> str:
    """'2 × NVIDIA …' or 'CPU (x86_64), 2 threads'."""
    gpus = [name for name in list_at(session, "gpus") if isinstance(name, str)]
    if gpus:
        return ", ".join(
            f"{gpus.count(name)} × {name}" if gpus.count(name) > 1 else name
            for name in dict.fromkeys(gpus)
        )
    processor, threads = text_at(session, "processor"), whole_at(session, "threads")
    count = f", {threads} thread{'s' if threads > 1 else ''}" if threads else ""
    return f"CPU{f' ({processor})' if processor else ''}{count}"


def original_command(info: RunInfo) -> str | None:
    """The command that started the run; a program of one's own is none to repeat it by."""
    words = list_at(info.sessions[0], "command") if info.sessions else []
    if not words or words[0] != "prnas":
        return None
    return " ".join(shlex.quote(str(word)) for word in words)


def sessions_of(environment: str) -> Sequence[Any]:
    """The sessions in an environment file. It only informs: a damaged one has none."""
    try:
        return list_at(parse_json(environment), "sessions")
    except FormatError:
        return ()


# --- pictures as plain data, which the page turns into SVG in its own colours, light or dark

# The page's classes of what a drawing has in these colours.
_CLASSES = {
    **{color.paint.fill: f"color-{color.name}" for color in PALETTE if color.paint is not PLAIN},
    **{INPUT.fill: "paint-input", NODE.fill: "paint-node", OUTPUT.fill: "paint-output"},
    CONCAT_LINE: "concat",
}


def cell_pictures(genotype: Genotype) -> dict[Role, dict[str, Any]]:
    return {role: _picture_data(draw_cell(genotype.cell(role))) for role in genotype.roles}


def _picture_data(picture: Picture) -> dict[str, Any]:
    """[kind, geometry…, class or text] of every item, in painting order."""
    items: list[list[Any]] = []
    for item in picture.items:
        match item:
            case Box():
                box = _short(item.x, item.y, item.width, item.height, item.radius)
                items.append(["box", *box, _CLASSES.get(item.fill, "")])
            case Text():
                line = _short(item.x, item.baseline, item.width, item.size)
                items.append(["text", *line, item.text])
            case Curve():
                points = _short(*chain(*item.points))
                items.append(["curve", *_short(item.width), points, _CLASSES.get(item.stroke, "")])
            case Polygon():
                points = _short(*chain(*item.points))
                items.append(["polygon", points, _CLASSES.get(item.fill, "")])
    return {"size": _short(picture.width, picture.height), "items": items}


def _short(*values: float) -> list[float]:
    return [round(value, 1) for value in values]
