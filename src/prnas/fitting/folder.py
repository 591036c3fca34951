"""The folder of a fit: the request, the plan with its measurements, the results.

Everything is written once. A fit that goes on reads it, and measures nothing anew.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from prnas.fitting.names import FIT, LOCK, RESULTS
from prnas.fitting.plan import Plan, StepTimes, Task
from prnas.fitting.request import Request, read_request
from prnas.io.atomic import write_atomically
from prnas.io.checked_files import read_file
from prnas.io.errors import FormatError, UserError, cannot, reading
from prnas.io.reading import check_header, parse_json, validated
from prnas.runs.folder import locked, new_folder

FORMAT, VERSION = "prnas-fit", 1
RESULTS_FORMAT, RESULTS_VERSION = "prnas-fit-results", 1
_MOST_BYTES = 2**26
_TASK, _PLAN = TypeAdapter(Task), TypeAdapter(Plan)


@dataclass(frozen=True)
class Trainings:
    """The trainings as they were decided on after the search: configs, and times behind them."""

    found: StepTimes  # Times of the network that was found.
    spent: float  # Seconds, the search included.
    left: float  # Seconds for all trainings.
    configs: dict[str, dict[str, Any]]  # By contender.


_TRAININGS = TypeAdapter(Trainings)


@dataclass(frozen=True)
class FitState:
    """All that a fit has decided so far."""

    request: Request
    look: tuple[str, ...]
    task: Task
    times: dict[str, StepTimes]  # Times of networks that were known before the search.
    plan: Plan
    search: dict[str, Any]  # The config of the search.
    contenders: dict[str, dict[str, Any]]
    trainings: Trainings | None = None

    def to_json(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "request": self.request.to_json(),
            "look": list(self.look),
            "task": _TASK.dump_python(self.task, mode="json"),
            "times": {name: asdict(each) for name, each in self.times.items()},
            "plan": _PLAN.dump_python(self.plan, mode="json"),
            "search": self.search,
            "contenders": self.contenders,
            "trainings": None if self.trainings is None else asdict(self.trainings),
        }
        return content

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "FitState":
        trainings = data["trainings"]
        times = {
            name: validated(TypeAdapter(StepTimes), each, "times")
            for name, each in data["times"].items()
        }
        return cls(
            read_request(data["request"]),
            tuple(map(str, data["look"])),
            validated(_TASK, data["task"], "task"),
            times,
            validated(_PLAN, data["plan"], "plan"),
            dict(data["search"]),
            dict(data["contenders"]),
            None if trainings is None else validated(_TRAININGS, trainings, "trainings"),
        )


class FitFolder:
    """A fit's folder, locked for this process as long as it is open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = locked(path, LOCK)

    @classmethod
    def create(cls, runs: Path, name: str | None, seed: int) -> "FitFolder":
        with cannot(f"make a folder in {runs}"):
            return cls(new_folder(runs, name, "fit", seed))

    def close(self) -> None:
        self._lock.release()

    def write(self, state: FitState) -> None:
        self._write(FIT, FORMAT, VERSION, state.to_json())

    def write_results(self, results: Mapping[str, Any]) -> None:
        self._write(RESULTS, RESULTS_FORMAT, RESULTS_VERSION, results)

    def _write(self, name: str, form: str, version: int, content: Mapping[str, Any]) -> None:
        content = json.loads(json.dumps(content))
        data = {"format": form, "version": version, **content, "checksum": _checksum(content)}
        text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
        with cannot(f"write {self.path / name}"):
            write_atomically(self.path / name, text.encode())


def is_fit(folder: Path) -> bool:
    return (folder / FIT).is_file()


def read_state(folder: Path) -> FitState:
    """A `UserError` if it is no fit's folder, or if its file was changed."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}")
    if not is_fit(folder):
        raise UserError(f"{folder} is not the folder of a fit: it has no {FIT}")
    content = _read(folder / FIT, FORMAT, VERSION)
    with reading(folder / FIT):
        try:
            return FitState.from_json(content)
        except (KeyError, TypeError, AttributeError) as error:
            raise FormatError([f"it lacks what a fit has ({type(error).__name__})"]) from None


def read_results(folder: Path) -> dict[str, Any] | None:
    """The results, if the fit came to its end."""
    if not (folder / RESULTS).is_file():
        return None
    return _read(folder / RESULTS, RESULTS_FORMAT, RESULTS_VERSION)


def _read(path: Path, form: str, version: int) -> dict[str, Any]:
    with reading(path):
        content = check_header(parse_json(read_file(path, _MOST_BYTES).decode()), form, version)
        if content.pop("checksum", None) != _checksum(content):
            raise FormatError(["it was changed or damaged; put the old one back"])
    return content


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
