"""A session of any run: set up, run, stop on a signal, clean up."""

import shlex
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
from prnas.training.preparation import check_sizes
from prnas.training.processes import Processes
from prnas.training.run import RunFolder
from prnas.training.run_rules import fixed
from prnas.training.signals import stop_signals

C = TypeVar("C", bound=RunConfig)
L = TypeVar("L", bound=Loop[Any, Any, Any])
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
            folder, checkpoint, problems, path = _opened(open_folder, processes)
            processes.begin(_kept(config, path))
            for problem in problems:
                say(f"{problem}; going on from the one before it")
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
                loop.load(checkpoint)
            start = start_of(loop, folder.path if folder else None, checkpoint is not None)
            for one in callbacks:
                one.on_start(start)
            try:
                loop.run()
            except Interrupted as asked:
                loop.save()
                processes.barrier()
                failed = False
                raise Stopped(folder.path if folder else None, asked.number) from None
        result = result_of(loop, folder)
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


def _opened(
    open_folder: Callable[[], RunFolder | None], processes: Processes
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
