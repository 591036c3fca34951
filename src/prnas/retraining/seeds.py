"""The same training with several seeds: independent runs in one folder, and their summary."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from prnas.config.retrain import RetrainConfig
from prnas.io.atomic import write_atomically
from prnas.io.checked_files import read_file
from prnas.io.errors import FormatError, UserError, cannot, reading
from prnas.io.reading import check_header, parse_json
from prnas.io.yaml_files import dump_yaml
from prnas.retraining import api as retrain
from prnas.runs.events import Callback, RetrainResult
from prnas.runs.folder import new_folder, read_config
from prnas.runs.integrity import config_digest, is_begun, read_config_data
from prnas.runs.names import CONFIG, GROUP
from prnas.runs.processes import Processes
from prnas.runs.session import Stopped

RESULTS = "results.json"
FORMAT, VERSION = "prnas-retrain-group", 1
MOST_SEEDS = 1_000
_MOST_BYTES = 1_000_000  # largest file of a group
Watchers = Callable[[int, int], Sequence[Callback]]  # callbacks for run i of n


@dataclass(frozen=True, slots=True)
class SeedsResult:
    """The results of several seeds."""

    folder: Path | None
    results: tuple[RetrainResult, ...]

    @property
    def test_errors(self) -> list[float]:
        return [result.test_error for result in self.results]

    @property
    def mean(self) -> float:
        return fmean(self.test_errors)

    @property
    def deviation(self) -> float | None:
        """The standard deviation over seeds (of a sample); one seed has none."""
        return stdev(self.test_errors) if len(self.results) > 1 else None

    def to_json(self) -> dict[str, Any]:
        first = self.results[0]
        return {
            "test_error": {
                "mean": self.mean,
                "standard_deviation": self.deviation,
                "seeds": len(self.results),
            },
            "parameters": first.parameters,
            "macs": first.macs,
            "runs": [
                {
                    "seed": result.seed,
                    "test_error": result.test_error,
                    "averaged_epochs": result.averaged_epochs,
                    "seconds": result.seconds,
                    "folder": None if result.folder is None else result.folder.name,
                }
                for result in self.results
            ],
        }


def is_group(folder: Path) -> bool:
    return (folder / GROUP).is_file()


def start_seeds(
    config: RetrainConfig,
    number: int,
    *,
    runs: Path,
    name: str | None = None,
    recipe: str = "retrain",
    watchers: Watchers,
) -> SeedsResult:
    """Train with `number` seeds from the config's on, one after the other."""
    if not 1 <= number <= MOST_SEEDS:
        raise UserError(f"seeds must be 1 to {MOST_SEEDS}, got {number}")
    processes = Processes(config.compute)
    seeds = list(range(config.seed, config.seed + number))
    folder = processes.from_first(lambda: _created(config, seeds, runs, name, recipe))
    return resume_seeds(folder, watchers=watchers, processes=processes)


def _created(
    config: RetrainConfig, seeds: Sequence[int], runs: Path, name: str | None, recipe: str
) -> Path:
    with cannot(f"make a run folder in {runs}"):
        folder = new_folder(runs, name, f"{recipe}-{len(seeds)}-seeds", config.seed)
        data = config.to_data()
        write_atomically(folder / CONFIG, dump_yaml(data).encode())
        group = {"format": FORMAT, "version": VERSION, "seeds": list(seeds)}
        group["checksum"] = _checksum(data, seeds)
        write_atomically(folder / GROUP, json.dumps(group).encode())
    return folder


def resume_seeds(
    folder: Path,
    *,
    overrides: Sequence[str] = (),
    watchers: Watchers,
    processes: Processes | None = None,
) -> SeedsResult:
    """Go on with what is not done yet; trainings that are done are only read."""
    config = read_config(folder, RetrainConfig, overrides, (CONFIG, GROUP))
    with reading(folder / GROUP):
        text = read_file(folder / GROUP, _MOST_BYTES).decode()
        group = check_header(parse_json(text), FORMAT, VERSION)
        seeds = group.get("seeds")
        if not isinstance(seeds, list) or {type(seed) for seed in seeds} != {int}:
            raise FormatError(["seeds: must be a list of whole numbers"])
    if group.get("checksum") not in (None, _checksum(read_config_data(folder / CONFIG), seeds)):
        raise UserError(
            f"{folder / CONFIG} or {GROUP} was changed or damaged: these were started "
            "with others; put the old ones back"
        )
    processes = processes or Processes(config.compute)
    session: dict[str, Any] = {"processes": processes}
    results: list[RetrainResult] = []
    for number, seed in enumerate(seeds):
        path = folder / f"seed-{seed}"
        begun = processes.from_first(lambda path=path: is_begun(path))
        session["callbacks"] = watchers(number, len(seeds))
        try:
            if begun:
                results.append(retrain.resume(path, overrides=overrides, **session))
            else:
                own = config.model_copy(update={"seed": seed})
                results.append(retrain.start(own, runs=folder, name=path.name, **session))
        except Stopped as stopped:
            raise Stopped(folder, stopped.number) from None
    summary = SeedsResult(folder, tuple(results))
    if processes.rank == 0:
        text = json.dumps(summary.to_json(), indent=1) + "\n"
        with cannot(f"write {folder / RESULTS}"):
            write_atomically(folder / RESULTS, text.encode())
    return summary


def _checksum(config: Mapping[str, Any], seeds: Sequence[int]) -> str:
    """The checksum of what the trainings share, as in the config file, and of their seeds."""
    return hashlib.sha256(json.dumps([config_digest(config), list(seeds)]).encode()).hexdigest()
