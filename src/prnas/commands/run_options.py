"""The options and the end that `prnas search` and `prnas retrain` share."""

import shlex
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from prnas.commands.options import ConfigOptions, RunOptions
from prnas.config.overrides import typed_overrides
from prnas.io.errors import UserError
from prnas.runs import signals
from prnas.runs.named import ended_without_images
from prnas.runs.names import CONFIG, check_name, not_resumable
from prnas.terminal.output import show, show_next, visible

if TYPE_CHECKING:
    from prnas.terminal.display import Display

RUNS = Path("runs")
COMPUTE = ("accelerator", "devices", "precision", "threads", "compile", "recompute", "memory_limit")
DATA = {"data.name": "data", "data.root": "data_root", "seed": "seed"}
FINAL = ("max_params", "max_macs", "max_latency", "latency")


def config_overrides(options: RunOptions | ConfigOptions) -> list[str]:
    """The overrides that were typed, and those that other options stand for."""
    # A resumed run has its own data and seed.
    resumed = getattr(options, "resume", None) is not None
    keys = {f"compute.{name}": name for name in COMPUTE} | ({} if resumed else DATA)
    values = {key: getattr(options, name, None) for key, name in keys.items()}
    given = {key: value for key, value in values.items() if value is not False}
    return [*options.overrides, *typed_overrides(given), *_final_overrides(options)]


def _final_overrides(options: RunOptions | ConfigOptions) -> list[str]:
    """Limits on the final network, of a search that has any."""
    given = {name: value for name in FINAL if (value := getattr(options, name, None)) is not None}
    return typed_overrides({f"final.{name}": str(value) for name, value in given.items()})


def check_run_options(options: RunOptions, **arguments: str | None) -> None:
    """Refuse options and arguments that do not fit a new run, or one that is resumed."""
    if options.dry_run and getattr(options, "seeds", None) is not None:
        raise UserError(
            "--dry-run is for a single run: leave out --seeds; `prnas study FILE --dry-run` "
            "measures several"
        )
    if options.resume is None:
        if options.name is not None:
            check_name(options.name, "--name")
        return
    if not options.resume.is_dir():
        raise UserError(f"there is no run folder {options.resume}")
    refused = [f"the {name} '{value}'" for name, value in arguments.items() if value is not None]
    names = ("data", "data_root", "seed", "seeds", "runs", "name", *FINAL)
    given = [name for name in names if getattr(options, name, None) is not None]
    refused += [f"--{name.replace('_', '-')}" for name in given]
    refused += ["--dry-run"] if options.dry_run else []
    refused += ["--from"] if getattr(options, "start_from", None) is not None else []
    refused += [f"--set {override}" for override in not_resumable(options.overrides)]
    if refused:
        raise UserError(
            f"--resume goes on with the run's own config; leave out {', '.join(refused)}. "
            f"Only what it computes on and its checkpoints can change."
        )


def nothing_left(options: RunOptions, task: str) -> bool:
    """Say so if a run has ended and only its images are missing: nobody downloads for nothing."""
    folder = options.resume
    if folder is None or options.as_json or not (folder / CONFIG).is_file():
        return False
    try:
        if not ended_without_images(folder, task):
            return False
    except UserError:  # Whoever resumes it says what is wrong, or mends it.
        return False
    if options.quiet:
        show(str(folder))
    else:
        show(
            f"{folder} has ended: nothing is left to compute",
            "(its images are not here; they would be needed only to mend damaged files)",
        )
        show_next(f"prnas report {shlex.quote(str(folder))}")
    return True


def display_for(options: RunOptions, title: str = "") -> "Display":
    """The display that the options ask for."""
    from prnas.terminal.brief_ends import print_folder, print_result
    from prnas.terminal.display import Display

    if options.as_json:
        return Display(quiet=True, title=title, ending=print_result)
    if options.quiet:
        return Display(quiet=True, title=title, ending=lambda end: print_folder(end.folder))
    return Display(title=title)


@contextmanager
def showing(displays: "Sequence[Display]", command: str, brief: bool = False) -> Generator[None]:
    """Close the displays at the end. If the run is stopped, say how to go on, and exit."""
    from prnas.runs.run import Stopped

    try:
        yield
    except Stopped as stopped:
        # With several processes, only the first one prints.
        if displays and displays[-1].started and stopped.folder is not None:
            say_stopped(command, stopped.folder, brief)
        sys.exit(signals.EXIT + stopped.number)
    finally:
        for display in displays:
            display.close()


@contextmanager
def measuring() -> Generator[None]:
    """Exit without a word if a signal stops what is only measured: nothing goes on with it."""
    from prnas.runs.run import Stopped

    try:
        yield
    except Stopped as stopped:
        sys.exit(signals.EXIT + stopped.number)


def say_stopped(command: str, folder: Path, brief: bool) -> None:
    """Say that a run was stopped, and how it goes on."""
    again = f"  prnas {command} --resume {shlex.quote(str(folder))}"
    lines = "stopped; the state is saved. To go on:", again
    if brief:  # No script expects it among the output.
        print(*map(visible, lines), sep="\n", file=sys.stderr)
    else:
        show(*lines)
