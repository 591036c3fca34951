"""A session of any run: set up, run, stop on a signal, clean up."""

import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from prnas.config.sections import RunConfig
from prnas.data.dataset import load
from prnas.io.errors import FormatError, UserError
from prnas.io.memory import free_memory, is_out_of_memory
from prnas.runs.batch_size import MemoryProbe, probe_for
from prnas.runs.checkpoint import Checkpoint
from prnas.runs.events import check_callbacks
from prnas.runs.folder import RunFolder, read_config
from prnas.runs.names import not_resumable
from prnas.runs.processes import Processes
from prnas.runs.run import Run, RunContext, Stopped
from prnas.runs.signals import stop_signals

C = TypeVar("C", bound=RunConfig)
_OUT_OF_MEMORY = (
    "out of memory, outside of a training step. What was saved is kept. data.storage=stream, fewer "
    "data.workers or a smaller network need less"
)


def check_overrides(overrides: Sequence[str]) -> None:
    """Refuse what cannot change in a run that goes on."""
    if wrong := not_resumable(overrides):
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
class NewFolder:
    """Where a new run is written, if anywhere, and by which command."""

    runs: Path | None
    name: str | None
    recipe: str
    command: Sequence[str] | None


def start_run(
    kind: type[Run[Any, Any]],
    config: RunConfig,
    new: NewFolder,
    callbacks: Sequence[Any],
    probe: MemoryProbe | None,
    processes: Processes | None = None,
) -> Any:
    """A new run, and its result. What cannot work is found before anything is written."""
    processes = processes or Processes(config.compute)
    config = with_threads(config, processes)

    def open_folder() -> RunFolder | None:
        if new.runs is None:
            return None
        command = new.command or sys.argv
        facts = processes.facts
        return RunFolder.create(new.runs, new.name, new.recipe, config, command, facts)

    return _run(kind, config, processes, callbacks, open_folder, probe)


def resume_run(
    kind: type[Run[Any, Any]],
    folder: Path,
    overrides: Sequence[str],
    callbacks: Sequence[Any],
    command: Sequence[str] | None,
    probe: MemoryProbe | None,
    processes: Processes | None = None,
) -> Any:
    """Continue a run in its own folder, and return its result."""
    check_overrides(overrides)
    # A new limit is given because the old decisions about the batch size were wrong.
    new_limit = any(override.startswith("compute.memory_limit") for override in overrides)
    config = read_config(folder, kind.config_type, overrides)
    processes = processes or Processes(config.compute)
    config = with_threads(config, processes)

    def open_folder() -> RunFolder:
        return RunFolder.open(
            folder, config, command or sys.argv, processes.facts, forget_batches=new_limit
        )

    return _run(kind, config, processes, callbacks, open_folder, probe, replay=not new_limit)


def _run(
    kind: type[Run[Any, Any]],
    config: RunConfig,
    processes: Processes,
    callbacks: Sequence[Any],
    open_folder: Callable[[], RunFolder | None],
    probe: MemoryProbe | None,
    replay: bool = True,
) -> Any:
    """Run from wherever the folder stands to the end. Only the first process has callbacks."""
    check_callbacks(callbacks)
    first = processes.rank == 0
    callbacks = list(callbacks) if first else []
    folder: RunFolder | None = None
    data = None
    failed = True
    processes.begin()

    def say(text: str) -> None:
        for callback in callbacks:
            callback.on_message(text)

    try:
        limit = config.compute.memory_limit
        limit = None if limit is None else limit * 1e9
        data = load(config.images, processes.device, say, free_memory(processes.local_size, limit))
        indices = kind.prepare(config, data, processes.size)
        probe = probe or probe_for(processes.device, limit, processes.local_size)
        processes.barrier()  # if a process fails before this point, nothing is written
        with stop_signals() as signals:
            folder, checkpoint, problems, path = _opened(open_folder, processes, say)
            processes.begin(_recovery_hint(config, path))
            for problem in problems:
                say(f"{problem}; going on from the one before it")
            context = RunContext(
                config,
                data,
                indices,
                processes,
                probe,
                folder,
                callbacks,
                signals.wanted,
                signals.take_save,
                replay,
            )
            run = _resumed(kind, context, checkpoint) if checkpoint else kind(context, None)
            run.emit("on_start", run.start_event())
            try:
                run.go()
            except Stopped:
                run.save()
                processes.barrier()
                failed = False
                raise
        result = run.result()
        run.emit("on_end", result)
        failed = False
        return result
    except (UserError, RuntimeError, MemoryError) as error:
        expected = isinstance(error, UserError)
        if (expected and first) or (not expected and not is_out_of_memory(error)):
            raise
        text = str(error) if expected else _OUT_OF_MEMORY
        raise UserError(text if first else f"process {processes.rank}: {text}") from None
    finally:
        with ExitStack() as stack:  # whatever one of them raises, all are closed
            if folder is not None:
                stack.callback(folder.close)
            if data is not None:
                stack.callback(data.close)
            for callback in callbacks:
                stack.callback(callback.close)
            stack.callback(processes.done, failed)  # called first: nobody waits for the rest


def _recovery_hint(config: RunConfig, folder: str | None) -> str:
    if folder is None:
        return "This run has no folder, so nothing was saved."
    task = config.to_data()["task"]
    return (
        f"The last checkpoint is kept: `prnas {task} --resume {shlex.quote(folder)}` goes on from "
        "it, with any number of processes (--devices)."
    )


def _resumed(
    kind: type[Run[Any, Any]], context: RunContext[Any], checkpoint: Checkpoint
) -> Run[Any, Any]:
    """A checkpoint may be of another release, or made up, whatever its checksums say."""
    try:
        return kind(context, checkpoint)
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
    """The first process opens the folder and reads the checkpoint; the others get what it found."""
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
    opened = processes.broadcast((checkpoint, problems, path, failure))
    checkpoint, problems, path, failure = opened
    if failure is not None:
        raise UserError(failure)
    return folder, checkpoint, problems, path
