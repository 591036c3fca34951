"""A search from start to genotype: set up, run, stop on a signal, go on."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

import torch

from prnas import recipes
from prnas.config import SearchConfig
from prnas.errors import UserError
from prnas.reporting.records import CycleRecord, EpochRecord, read_records
from prnas.space.cell_pools import Pools
from prnas.space.problems import FormatError
from prnas.training.callbacks import Callback, SearchResult, Start
from prnas.training.checkpoint import Checkpoint
from prnas.training.data import load
from prnas.training.engine import Engine, Interrupted
from prnas.training.memory import MemoryProbe, probe_for
from prnas.training.processes import Processes
from prnas.training.run import RECORDS, RunFolder, read_config
from prnas.training.run_rules import fixed


class Stopped(Exception):  # noqa: N818 - no error
    """The search was asked to stop; its state is saved in `folder`."""

    def __init__(self, folder: Path | None, number: int) -> None:
        super().__init__("the search was stopped")
        self.folder, self.number = folder, number


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
        callbacks=callbacks,
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
    processes = Processes(config.compute)
    config = _with_threads(config, processes)

    def open_folder() -> RunFolder | None:
        if runs is None:
            return None
        return RunFolder.create(runs, name, recipe, config, command or sys.argv)

    return _run(config, processes, callbacks, open_folder, probe)


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
    if wrong := fixed(overrides):
        raise UserError(
            f"a resumed search keeps its config: {wrong[0]!r:.60} cannot change; "
            "what starts with compute. or checkpoints. can"
        )
    config = read_config(folder, overrides)
    processes = Processes(config.compute)
    return _run(
        _with_threads(config, processes),
        processes,
        callbacks,
        lambda: RunFolder.open(folder, overrides, command or sys.argv),
        probe,
        # Another limit is given because the old decisions were wrong.
        replay=not any(one.startswith("compute.memory_limit") for one in overrides),
    )


def _with_threads(config: SearchConfig, processes: Processes) -> SearchConfig:
    """With the number of threads written out: another number would round sums otherwise."""
    threads = processes.broadcast(config.compute.threads or torch.get_num_threads())
    torch.set_num_threads(threads)
    compute = config.compute.model_copy(update={"threads": threads})
    return config.model_copy(update={"compute": compute})


def _run(
    config: SearchConfig,
    processes: Processes,
    callbacks: Sequence[Callback],
    open_folder: Callable[[], RunFolder | None],
    probe: MemoryProbe | None,
    replay: bool = True,
) -> SearchResult:
    first = processes.rank == 0
    callbacks = list(callbacks) if first else []
    kept = _Kept()
    folder: RunFolder | None = None
    data = None

    def say(text: str) -> None:
        for one in callbacks:
            one.on_message(text)

    try:
        data = load(config.data, processes.device, say)
        limit = config.compute.memory_limit
        probe = probe or probe_for(
            processes.device, None if limit is None else limit * 1e9, processes.local_size
        )
        with stop_signals() as signals:
            folder, checkpoint, problems = _opened(open_folder, processes)
            for problem in problems:
                say(f"{problem}; going on from the one before it")
            engine = Engine(
                config, data, processes, probe, folder, [*callbacks, kept], signals.wanted, replay
            )
            if checkpoint is not None:
                engine.load(checkpoint)
            _tell_start(engine, folder, processes, callbacks, checkpoint is not None)
            try:
                genotype = engine.run()
            except Interrupted as asked:
                engine.save()
                processes.barrier()
                raise Stopped(folder.path if folder else None, asked.number) from None
        result = SearchResult(
            genotype,
            folder.path if folder else None,
            *(_records_of(folder) if folder else (tuple(kept.epochs), tuple(kept.cycles))),
            engine.state.elapsed,
        )
        for one in callbacks:
            one.on_end(result)
        return result
    except UserError as error:
        if first:
            raise
        raise UserError(f"process {processes.rank}: {error}") from None
    finally:
        with ExitStack() as stack:  # whatever one of them raises, all are closed
            if folder is not None:
                stack.callback(folder.close)
            if data is not None:
                stack.callback(data.close)
            for one in callbacks:
                stack.callback(one.close)


def _opened(
    open_folder: Callable[[], RunFolder | None], processes: Processes
) -> tuple[RunFolder | None, Checkpoint | None, list[str]]:
    """The first process opens the folder and reads the checkpoint; all learn how that went."""
    folder: RunFolder | None = None
    checkpoint: Checkpoint | None = None
    problems: list[str] = []
    failure: str | None = None
    if processes.rank == 0:
        try:
            folder = open_folder()
            if folder is not None:
                checkpoint, problems = folder.newest_checkpoint()
        except (UserError, FormatError, OSError) as error:
            failure = str(error)
            if folder is not None:
                folder.close()
    checkpoint, problems, failure = processes.broadcast((checkpoint, problems, failure))
    if failure is not None:
        raise UserError(failure)
    return folder, checkpoint, problems


def _tell_start(
    engine: Engine,
    folder: RunFolder | None,
    processes: Processes,
    callbacks: Sequence[Callback],
    resumed: bool,
) -> None:
    state = engine.state
    start = Start(
        config=engine.config,
        folder=folder.path if folder else None,
        device=str(processes.device),
        world_size=processes.size,
        pools=state.supernet.pools,
        num_parameters=sum(one.numel() for one in state.weight_parameters),
        resumed=resumed,
        cycle=state.position.cycle,
        epoch=state.position.epoch,
    )
    for one in callbacks:
        one.on_start(start)


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


class _Signals:
    number = 0

    def wanted(self) -> int:
        """The signal that asked to stop, or 0."""
        return self.number


@contextmanager
def stop_signals() -> Iterator[_Signals]:
    """Within it, SIGINT and SIGTERM ask to stop after the step; a second one stops at once."""
    signals = _Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if signals.number:
            raise KeyboardInterrupt
        signals.number = number

    before = {one: signal.signal(one, handle) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield signals
    finally:
        for one, old in before.items():
            signal.signal(one, old)
