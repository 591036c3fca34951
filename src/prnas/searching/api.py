"""A search from start to genotype, and on from where it stopped."""

from collections.abc import Sequence
from pathlib import Path

from prnas.config import recipes
from prnas.config.search import SearchConfig
from prnas.report.default_callbacks import for_search
from prnas.runs.batch_size import MemoryProbe
from prnas.runs.callbacks import Callback, SearchResult, Start
from prnas.runs.folder import RECORDS, RunFolder
from prnas.runs.records import CycleRecord, EpochRecord, read_records
from prnas.runs.session import Kind, NewFolder, Stopped, resume_run, start_run
from prnas.searching.loop import Engine
from prnas.space.pools import Pools

__all__ = ["Stopped", "resume", "search", "start"]


def search(
    config: SearchConfig | str,
    *,
    runs: Path | str | None = None,
    name: str | None = None,
    callbacks: Sequence[Callback] = (),
) -> SearchResult:
    """Search by a config, or by a recipe's name, and return what was found.

    Without `runs`, nothing is written; with it, the run gets a folder of its own in there. Nothing
    is printed: `callbacks` see what goes on.
    """
    recipe = config if isinstance(config, str) else "search"
    found = recipes.get(config) if isinstance(config, str) else config
    return start(
        found,
        runs=None if runs is None else Path(runs),
        name=name,
        recipe=recipe,
        callbacks=callbacks if runs is None else for_search(callbacks),
    )


def start(
    config: SearchConfig,
    *,
    runs: Path | None = Path("runs"),
    name: str | None = None,
    recipe: str = "search",
    callbacks: Sequence[Callback] = (),
    command: Sequence[str] | None = None,
    probe: MemoryProbe | None = None,
) -> SearchResult:
    """A new search. What cannot work is found before anything is written."""
    new = NewFolder(runs, name, recipe, command)
    return start_run(SEARCH, config, new, callbacks, probe)


def resume(
    folder: Path,
    *,
    overrides: Sequence[str] = (),
    callbacks: Sequence[Callback] = (),
    command: Sequence[str] | None = None,
    probe: MemoryProbe | None = None,
) -> SearchResult:
    """Go on with a run in its own folder, bit for bit as if it had never stopped.

    `overrides` may change how it is computed (`compute`, `checkpoints`), not what is searched.
    """
    return resume_run(SEARCH, folder, overrides, callbacks, command, probe)


def _start_of(engine: Engine, folder: Path | None, resumed: bool) -> Start:
    state = engine.state
    return Start(
        config=engine.config,
        folder=folder,
        device=str(engine.processes.device),
        world_size=engine.processes.size,
        pools=state.supernet.pools,
        num_parameters=sum(one.numel() for one in state.weight_parameters),
        resumed=resumed,
        cycle=state.position.cycle,
        epoch=state.position.epoch,
    )


class _Kept(Callback):
    """Keeps the records of a search that writes none."""

    def __init__(self) -> None:
        self.epochs: list[EpochRecord] = []
        self.cycles: list[CycleRecord] = []

    def on_epoch(self, record: EpochRecord) -> None:
        self.epochs.append(record)

    def on_cycle(self, record: CycleRecord, pools: Pools) -> None:
        self.cycles.append(record)


def _records_of(folder: RunFolder) -> tuple[tuple[EpochRecord, ...], tuple[CycleRecord, ...]]:
    """Of the whole run, not only since it was resumed."""
    records = list(read_records(folder.path / RECORDS))
    return (
        tuple(one for one in records if isinstance(one, EpochRecord)),
        tuple(one for one in records if isinstance(one, CycleRecord)),
    )


def _result_of(engine: Engine, folder: RunFolder | None, kept: _Kept) -> SearchResult:
    assert engine.genotype is not None
    return SearchResult(
        engine.genotype,
        folder.path if folder else None,
        *(_records_of(folder) if folder else (tuple(kept.epochs), tuple(kept.cycles))),
        engine.state.elapsed,
    )


SEARCH = Kind(SearchConfig, Engine, _start_of, _Kept, _result_of)
