"""A run as the page wants it: records are added as they come, `data` is what is shown now."""

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prnas.config import recipes
from prnas.io.errors import FormatError
from prnas.io.reading import parse_json
from prnas.report.epochs import Epochs
from prnas.report.plain_data import list_at, pick, rounded, text_at, whole_at
from prnas.runs.records import Record
from prnas.space.genotype import Genotype

Facts = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What is known of a run beside its records. `config` and `sessions` are plain data."""

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


class View(ABC):
    """Takes a run's records one by one; says at any time what the page should show."""

    kind: str  # of run
    result: str  # the key of the number that counts, and what people call it
    result_name: str

    def __init__(self, info: RunInfo) -> None:
        self.info = info
        self.genotype: Genotype | None = None  # as far as it is known
        self.epochs = Epochs()
        self.bands: list[Band] = []

    @abstractmethod
    def add(self, record: Record) -> None: ...

    @property
    @abstractmethod
    def ended(self) -> bool: ...

    @property
    @abstractmethod
    def planned(self) -> int:
        """The number of epochs that the run will have, as far as it is known."""

    @abstractmethod
    def data(self) -> dict[str, Any]: ...

    def _commands(self, repeat: tuple[str, str], resume: str, then: Facts) -> Facts:
        """To repeat the run; to watch it and go on or, once it has ended, what one does `then`."""
        quoted, original = self.info.quoted, original_command(self.info)
        while_it_goes = [
            ("Watch it live", f"prnas watch {quoted}"),
            ("Go on if it stopped", f"{resume} --resume {quoted}"),
        ]
        started = [("Started by", original)] if original else []
        return [repeat, *(then if self.ended else while_it_goes), *started]

    def common(self, facts: Facts, commands: Facts) -> dict[str, Any]:
        """What all kinds of runs have: name, state, facts, commands."""
        info = self.info
        return {
            "kind": self.kind,
            "name": info.name,
            "description": _description(info.config),
            "done": self.epochs.done,
            "planned": max(self.planned, self.epochs.done),
            "seconds": rounded(self.epochs.seconds),
            "memory": rounded(self.epochs.memory),
            "ended": self.ended,
            "seed": whole_at(info.config, "seed"),
            "data": text_at(info.config, "data.name"),
            "facts": [*facts, *session_facts(info)],
            "commands": commands,
        }


def _description(config: Mapping[str, Any]) -> str:
    """What a config says of itself; a recipe's own words are not true of other data."""
    text = text_at(config, "description") or ""
    return text if recipes.data_of_description(text) in (None, text_at(config, "data.name")) else ""


def session_facts(info: RunInfo) -> Facts:
    """Where and when it ran, by its environment file."""
    if not info.sessions:
        return [("Folder", info.folder)]
    last = info.sessions[-1]
    facts: Facts = [("Device", device(last))]
    versions = [("prnas", text_at(last, "prnas")), ("Python", text_at(last, "python"))]
    versions.append(("PyTorch", text_at(last, "packages.torch")))
    known = [f"{name} {value}" for name, value in versions if value]
    if known:
        facts.append(("Versions", ", ".join(known)))
    commit = text_at(last, "git.commit")
    if commit:
        changed = "" if pick(last, "git.clean") is True else ", with changes"
        facts.append(("Sources", f"{commit[:12]}{changed}"))
    started = text_at(info.sessions[0], "started")
    if started:
        times = len(info.sessions) - 1
        resumed = f", resumed {times} time{'s' if times > 1 else ''}" if times else ""
        facts.append(("Started", started.replace("T", " ") + resumed))
    return [*facts, ("Folder", info.folder)]


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


def seed_facts(info: RunInfo) -> Facts:
    seed = whole_at(info.config, "seed")
    return [] if seed is None else [("Seed", str(seed))]


def original_command(info: RunInfo) -> str | None:
    """What was typed to start the run; a program of one's own is no command to repeat it."""
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
