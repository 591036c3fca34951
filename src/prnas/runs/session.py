"""A session of any run: set up, run, stop on a signal, clean up."""

import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch

from prnas.config.search import RunConfig
from prnas.data.dataset import load
from prnas.io.errors import FormatError, UserError
from prnas.io.memory import free_memory, is_out_of_memory
from prnas.runs.batch_size import MemoryProbe, probe_for
from prnas.runs.checkpoint import Checkpoint
from prnas.runs.folder import RunFolder, read_config
from prnas.runs.loop import Interrupted, Loop, Setup
from prnas.runs.names import fixed
from prnas.runs.preparation import check_config, check_sizes
from prnas.runs.processes import Processes
from prnas.runs.signals import stop_signals

C = TypeVar("C", bound=RunConfig)
L = TypeVar("L", bound=Loop[Any, Any, Any])
W = TypeVar("W")
R = TypeVar("R")
_OUT_OF_MEMORY = (
    "out of memory, outside of a training step. What was saved is kept. data.storage=stream, fewer "
    "data.workers or a smaller network need less"
)


class Stopped(Exception):  # noqa: N818 - no error
    """The run was asked to stop; its state is saved in `folder`."""

    def __init__(self, folder: Path | None, number: int) -> None:
        super().__init__("the run was stopped")
        self.folder, self.number = folder, number


def check_overrides(overrides: Sequence[str]) -> None:
    """Refuse what cannot change in a run that goes on."""
    if wrong := fixed(overrides):
        raise UserError(
            f"a resumed run keeps its config: {wrong[0]!r:.60} cannot change; "
            "what starts with compute. or checkpoints. can"
        )


def with_threads(config: C, processes: Processes) -> C:
    """With the number of threads written out: another number would round sums otherwise."""
    threads = processes.broadcast(config.compute.threads or torch.get_num_threads())
    torch.set_num_threads(threads)
    compute = config.compute.model_copy(update={"threads": threads})
    return config.model_copy(update={"compute": compute})


@dataclass(frozen=True)
class Kind(Generic[C, L, W, R]):
    """What one kind of run has of its own.

    `start_of` makes what `on_start` is told. `keep` makes a watcher in every process, which keeps
    what `result_of` needs of a run that writes nothing.
    """

    config: type[C]
    make: Callable[[Setup[C]], L]
    start_of: Callable[[L, Path | None, bool], Any]
    keep: Callable[[], W]
    result_of: Callable[[L, RunFolder | None, W], R]


@dataclass(frozen=True)
class NewFolder:
    """Where a new run is written, if anywhere, and by which command."""

    runs: Path | None
    name: str | None
    recipe: str
    command: Sequence[str] | None


def start_run(
    kind: Kind[C, Any, Any, R],
    config: C,
    new: NewFolder,
    callbacks: Sequence[Any],
    probe: MemoryProbe | None,
    processes: Processes | None = None,
) -> R:
    """A new run. What cannot work is found before anything is written."""
    processes = processes or Processes(config.compute)
    config = with_threads(config, processes)

    def open_folder() -> RunFolder | None:
        if new.runs is None:
            return None
        command = new.command or sys.argv
        return RunFolder.create(new.runs, new.name, new.recipe, config, command, processes.told)

    return _run(kind, config, processes, callbacks, open_folder, probe)


def resume_run(
    kind: Kind[C, Any, Any, R],
    folder: Path,
    overrides: Sequence[str],
    callbacks: Sequence[Any],
    command: Sequence[str] | None,
    probe: MemoryProbe | None,
    processes: Processes | None = None,
) -> R:
    """Go on with a run in its own folder."""
    check_overrides(overrides)
    # Another limit is given because the old decisions were wrong.
    new_limit = any(one.startswith("compute.memory_limit") for one in overrides)
    config = read_config(folder, kind.config, overrides)
    processes = processes or Processes(config.compute)
    config = with_threads(config, processes)

    def open_folder() -> RunFolder:
        return RunFolder.open(
            folder, config, command or sys.argv, processes.told, forget_batches=new_limit
        )

    return _run(kind, config, processes, callbacks, open_folder, probe, replay=not new_limit)


def _run(
    kind: Kind[C, L, W, R],
    config: C,
    processes: Processes,
    callbacks: Sequence[Any],
    open_folder: Callable[[], RunFolder | None],
    probe: MemoryProbe | None,
    replay: bool = True,
) -> R:
    """Run a loop from wherever its folder stands, and return its result.

    `callbacks` watch in the first process only.
    """
    first = processes.rank == 0
    callbacks = list(callbacks) if first else []
    kept = kind.keep()
    folder: RunFolder | None = None
    data = None
    failed = True
    processes.begin()

    def say(text: str) -> None:
        for one in callbacks:
            one.on_message(text)

    try:
        limit = config.compute.memory_limit
        limit = None if limit is None else limit * 1e9
        data = load(config.images, processes.device, say, free_memory(processes.local_size, limit))
        check_sizes(config, data, processes.size)
        probe = probe or probe_for(processes.device, limit, processes.local_size)
        processes.barrier()  # where one process fails this far, nothing is written
        with stop_signals() as signals:
            folder, checkpoint, problems, path = _opened(open_folder, processes, say)
            processes.begin(_kept(config, path))
            for problem in problems:
                say(f"{problem}; going on from the one before it")
            if checkpoint is not None:
                check_config(config, checkpoint.state)  # before a network is built by it
            setup = Setup(
                config,
                data,
                processes,
                probe,
                folder,
                [*callbacks, kept],
                signals.wanted,
                signals.take_save,
                replay,
            )
            loop = kind.make(setup)
            if checkpoint is not None:
                _load(loop, checkpoint)
            start = kind.start_of(loop, folder.path if folder else None, checkpoint is not None)
            for one in callbacks:
                one.on_start(start)
            try:
                loop.run()
            except Interrupted as asked:
                loop.save()
                processes.barrier()
                failed = False
                raise Stopped(folder.path if folder else None, asked.number) from None
        result = kind.result_of(loop, folder, kept)
        for one in callbacks:
            one.on_end(result)
        failed = False
        return result
    except (UserError, RuntimeError, MemoryError) as error:
        known = isinstance(error, UserError)
        if (known and first) or (not known and not is_out_of_memory(error)):
            raise
        text = str(error) if known else _OUT_OF_MEMORY
        raise UserError(text if first else f"process {processes.rank}: {text}") from None
    finally:
        with ExitStack() as stack:  # whatever one of them raises, all are closed
            if folder is not None:
                stack.callback(folder.close)
            if data is not None:
                stack.callback(data.close)
            for one in callbacks:
                stack.callback(one.close)
            stack.callback(processes.done, failed)  # first: nobody waits for the rest


def _kept(config: RunConfig, folder: str | None) -> str:
    if folder is None:
        return "Nothing was to be saved."
    task = config.to_data()["task"]
    return (
        f"The last checkpoint is kept: `prnas {task} --resume {shlex.quote(folder)}` goes on from "
        "it, with any number of processes (--devices)."
    )


def _load(loop: Loop[Any, Any, Any], checkpoint: Checkpoint) -> None:
    """What a checkpoint holds may be of another release, or made up, whatever its checksums say."""
    try:
        loop.load(checkpoint)
    except UserError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise UserError("there is not enough memory to go on with this run") from None
        raise UserError(
            f"the checkpoint does not fit this run ({type(error).__name__}: {error!s:.200})"
        ) from None


def _opened(
    open_folder: Callable[[], RunFolder | None],
    processes: Processes,
    say: Callable[[str], None],
) -> tuple[RunFolder | None, Checkpoint | None, list[str], str | None]:
    """The first process opens the folder and reads the checkpoint; all learn how that went."""
    folder: RunFolder | None = None
    checkpoint: Checkpoint | None = None
    problems: list[str] = []
    failure: str | None = None
    path: str | None = None
    if processes.rank == 0:
        try:
            folder = open_folder()
            if folder is not None:
                folder.warn = say
                path = str(folder.path)
                checkpoint, problems = folder.newest_checkpoint()
        except (UserError, FormatError, OSError) as error:
            failure = str(error)
            if folder is not None:
                folder.close()
    told = processes.broadcast((checkpoint, problems, path, failure))
    checkpoint, problems, path, failure = told
    if failure is not None:
        raise UserError(failure)
    return folder, checkpoint, problems, path
