"""A session of any run: set up, run, stop on a signal, clean up."""

import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch

from prnas.config.sections import RunConfig
from prnas.data.dataset import DataSet, load
from prnas.io.errors import UserError
from prnas.io.memory import free_memory, is_out_of_memory
from prnas.runs.batch_size import MemoryProbe, probe_for
from prnas.runs.checkpoint import Checkpoint
from prnas.runs.context import RunContext
from prnas.runs.events import Callback, check_callbacks
from prnas.runs.folder import RunFolder, Session, read_config
from prnas.runs.processes import Processes
from prnas.runs.run import Run, Stopped
from prnas.runs.signals import stop_signals
from prnas.runs.threads import busy_warning, default_threads

C = TypeVar("C", bound=RunConfig)
R = TypeVar("R")
_OUT_OF_MEMORY = (
    "out of memory, outside of a training step. What was saved is kept. data.storage=stream, fewer "
    "data.workers or a smaller network need less"
)


def _with_threads(config: C, processes: Processes, step_macs: float) -> C:
    """The config with its number of threads: another number would round sums differently."""
    threads = config.compute.threads or default_threads(step_macs)
    threads = processes.broadcast(threads)
    torch.set_num_threads(threads)
    compute = config.compute.model_copy(update={"threads": threads})
    return config.model_copy(update={"compute": compute})


def start_run(
    kind: type[Run[C, Any, R]],
    config: C,
    *,
    runs: Path | None = Path("runs"),
    name: str | None = None,
    recipe: str | None = None,
    callbacks: Sequence[Callback] = (),
    probe: MemoryProbe | None = None,
    processes: Processes | None = None,
    reasons: tuple[tuple[str, str], ...] = (),
    loaded: DataSet | None = None,
) -> R:
    """A new run, and its result. What cannot work is found before anything is written.

    It is written to a new folder in `runs`, if given. `processes` are those of an earlier run in
    the same program, which cannot be launched twice. `reasons`, for values of the config that were
    chosen by the images, are for callbacks. `loaded` are the config's images if someone has
    them already; the caller closes them.
    """
    create = partial(RunFolder.create, runs, name, recipe or config.task) if runs else None
    rest: dict[str, Any] = {"reasons": reasons, "loaded": loaded}
    return _run(kind, config, processes, callbacks, create, probe, new=True, **rest)


def resume_run(
    kind: type[Run[C, Any, R]],
    folder: Path,
    *,
    overrides: Sequence[str] = (),
    callbacks: Sequence[Callback] = (),
    probe: MemoryProbe | None = None,
    processes: Processes | None = None,
    loaded: DataSet | None = None,
) -> R:
    """Continue a run in its own folder, bit for bit as if it had never stopped; its result.

    `overrides` may change how it is computed (`compute`, `checkpoints`), not what. `loaded` as in
    `start_run`.
    """
    # A new limit is given because the old decisions about the batch size were wrong.
    new_limit = any(override.startswith("compute.memory_limit") for override in overrides)
    config: C = read_config(folder, kind.config_type, overrides)
    reopen = partial(RunFolder.open, folder, forget_batches=new_limit)
    return _run(
        kind, config, processes, callbacks, reopen, probe, replay=not new_limit, loaded=loaded
    )


def _run(
    kind: type[Run[C, Any, R]],
    config: C,
    processes: Processes | None,
    callbacks: Sequence[Callback],
    open_folder: Callable[[C, Session], RunFolder] | None,
    probe: MemoryProbe | None,
    replay: bool = True,
    new: bool = False,
    reasons: tuple[tuple[str, str], ...] = (),
    loaded: DataSet | None = None,
) -> R:
    """Run from wherever the folder stands to the end. Only the first process has callbacks."""
    processes = processes or Processes(config.compute)
    session: Session = {
        "command": sys.argv,
        "device": str(processes.device),
        "processes": processes.size,
        "precision": config.compute.precision,
    }
    check_callbacks(callbacks)
    first = processes.rank == 0
    callbacks = list(callbacks) if first else []
    folder: RunFolder | None = None
    data = loaded
    failed = True
    processes.begin()

    def say(text: str) -> None:
        for callback in callbacks:
            callback.on_message(text)

    def opened() -> tuple[Checkpoint | None, list[str], str | None]:
        nonlocal folder
        if open_folder is None:
            return None, [], None
        folder = open_folder(config, session)
        folder.warn = say
        return *folder.newest_checkpoint(), str(folder.path)

    try:
        limit = config.compute.memory_limit
        limit = None if limit is None else limit * 1e9
        if data is None:
            room = free_memory(processes.local_size, limit)
            data = load(config.images, processes.device, say, room)
        indices = kind.prepare(config, data, processes.size)
        if new:
            kind.check_start(config, data)
        batch = min(config.batch.max, len(indices[kind.weights_part]))
        config = _with_threads(config, processes, batch * kind.image_macs(config, data))
        threads = config.compute.threads
        if first and threads and (warning := busy_warning(threads)):
            say(warning)
        probe = probe or probe_for(processes.device, limit, processes.local_size)
        processes.barrier()  # if a process fails before this point, nothing is written
        with stop_signals() as signals:
            checkpoint, problems, path = processes.from_first(opened)
            processes.begin(_recovery_hint(config, path))
            for problem in problems:
                say(f"{problem}; going on from the one before it")
            context = RunContext(
                config, data, indices, processes, probe, folder, callbacks, signals, replay
            )
            run = _resumed(kind, context, checkpoint) if checkpoint else kind(context, None)
            run.emit("on_start", replace(run.start_event(), reasons=(*reasons, *run.notes())))
            try:
                run.go()
            except Stopped as stopped:
                run.save()
                processes.barrier()
                stopped.so_far = run.so_far()
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
            if data is not None and loaded is None:
                stack.callback(data.close)
            for callback in callbacks:
                stack.callback(callback.close)
            stack.callback(processes.done, failed)  # called first: nobody waits for the rest


def _recovery_hint(config: RunConfig, folder: str | None) -> str:
    if folder is None:
        return "This run has no folder, so nothing was saved."
    return (
        f"The last checkpoint is kept: `prnas {config.task} --resume {shlex.quote(folder)}` "
        "goes on from it, with any number of processes (--devices)."
    )


def _resumed(
    kind: type[Run[C, Any, R]], context: RunContext[C], checkpoint: Checkpoint
) -> Run[C, Any, R]:
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
