"""A session of any run: set up, run, stop on a signal, clean up."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import torch

from prnas.config import RunConfig
from prnas.errors import UserError
from prnas.space.problems import FormatError
from prnas.training.checkpoint import Checkpoint
from prnas.training.data import load
from prnas.training.loop import Interrupted, Loop, Setup
from prnas.training.memory import MemoryProbe, free_memory, is_out_of_memory, probe_for
from prnas.training.preparation import check_config
from prnas.training.processes import Processes
from prnas.training.run import RunFolder
from prnas.training.run_rules import fixed
from prnas.training.signals import stop_signals

C = TypeVar("C", bound=RunConfig)
L = TypeVar("L", bound=Loop[Any, Any, Any])
R = TypeVar("R")


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


def run_session(
    config: C,
    processes: Processes,
    callbacks: Sequence[Any],
    open_folder: Callable[[], RunFolder | None],
    make: Callable[[Setup[C]], L],
    start_of: Callable[[L, Path | None, bool], Any],
    result_of: Callable[[L, RunFolder | None], R],
    *,
    probe: MemoryProbe | None = None,
    kept: Sequence[Any] = (),
    replay: bool = True,
) -> R:
    """Run a loop from wherever its folder stands, and return its result.

    `callbacks` watch in the first process only, `kept` in all of them. `start_of` makes what
    `on_start` is told; `result_of` what is returned.
    """
    first = processes.rank == 0
    callbacks = list(callbacks) if first else []
    folder: RunFolder | None = None
    data = None

    def say(text: str) -> None:
        for one in callbacks:
            one.on_message(text)

    try:
        limit = config.compute.memory_limit
        limit = None if limit is None else limit * 1e9
        data = load(config.images, processes.device, say, free_memory(processes.local_size, limit))
        probe = probe or probe_for(processes.device, limit, processes.local_size)
        with stop_signals() as signals:
            folder, checkpoint, problems = _opened(open_folder, processes)
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
                [*callbacks, *kept],
                signals.wanted,
                signals.take_save,
                replay,
            )
            loop = make(setup)
            if checkpoint is not None:
                _load(loop, checkpoint)
            start = start_of(loop, folder.path if folder else None, checkpoint is not None)
            for one in callbacks:
                one.on_start(start)
            try:
                loop.run()
            except Interrupted as asked:
                loop.save()
                processes.barrier()
                raise Stopped(folder.path if folder else None, asked.number) from None
        result = result_of(loop, folder)
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
