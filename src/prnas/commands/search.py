"""`prnas search`: from a recipe, or a run that stopped, to cells."""

import importlib.util
import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prnas.commands import files
from prnas.commands.output import show
from prnas.errors import UserError
from prnas.reporting.picture import SUFFIXES
from prnas.training.callbacks import Callback, SearchResult
from prnas.training.run_rules import check_name, fixed

DEFAULT_RECIPE = "quick"
RUNS = Path("runs")
SIGNAL_EXIT = 128  # exit codes of processes that a signal ended, as shells have them


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was typed; `None` is what was not. `compute` has the names of the config's section."""

    recipe: str | None
    data: str | None
    data_root: str | None
    seed: int | None
    overrides: list[str]
    runs: Path | None
    name: str | None
    resume: Path | None
    compute: dict[str, Any]
    quiet: bool
    picture: Path | None


def run(wanted: Wanted) -> None:
    """Search, showing what goes on. All that can be wrong with the words is found first."""
    if wanted.picture is not None:
        _check_picture(wanted.picture)
    if wanted.resume is not None:
        _check_resume(wanted, wanted.resume)
    if wanted.name is not None:
        check_name(wanted.name, "--name")
    compute = _settings({f"compute.{key}": value for key, value in wanted.compute.items()})
    overrides = [*wanted.overrides, *compute]
    config = None
    if wanted.resume is None:
        science = {"data.name": wanted.data, "data.root": wanted.data_root, "seed": wanted.seed}
        overrides += _settings(science)
        config = files.config(wanted.recipe or DEFAULT_RECIPE, overrides)

    # Only now: these take seconds to import.
    from prnas.commands.display import Display
    from prnas.training import search as engine
    from prnas.training.report_callback import ReportCallback
    from prnas.training.tensorboard_callback import TensorboardCallback

    display = Display(quiet=wanted.quiet)
    # The report comes first, so that the display can tell of it at the end.
    report = ReportCallback(display.on_message)
    callbacks: list[Callback] = [report, display, *TensorboardCallback.if_available()]
    command = ["prnas", *sys.argv[1:]]
    try:
        if config is None:
            assert wanted.resume is not None
            result = engine.resume(
                wanted.resume, overrides=overrides, callbacks=callbacks, command=command
            )
        else:
            result = engine.start(
                config,
                runs=wanted.runs or RUNS,
                name=wanted.name,
                recipe=Path(wanted.recipe or DEFAULT_RECIPE).stem,
                callbacks=callbacks,
                command=command,
            )
    except engine.Stopped as stopped:
        if display.started:  # with several processes, the first speaks for all
            _show_stopped(stopped.folder)
        sys.exit(SIGNAL_EXIT + stopped.number)
    finally:
        display.close()
    if wanted.picture is not None and display.started:
        _draw(result, wanted.picture)


def _settings(values: dict[str, Any]) -> list[str]:
    """Overrides that set each value as it is: quoted, so that YAML makes no number of a name."""
    return [
        f"{key}={json.dumps(value, ensure_ascii=False)}"
        for key, value in values.items()
        if value is not None
    ]


def _check_resume(wanted: Wanted, folder: Path) -> None:
    if not folder.is_dir():
        raise UserError(f"there is no run folder {folder}")
    typed = {
        f"the recipe '{wanted.recipe}'": wanted.recipe,
        "--data": wanted.data,
        "--data-root": wanted.data_root,
        "--seed": wanted.seed,
        "--runs": wanted.runs,
        "--name": wanted.name,
    }
    refused = [name for name, value in typed.items() if value is not None]
    refused += [f"--set {one}" for one in fixed(wanted.overrides)]
    if refused:
        raise UserError(
            f"--resume goes on with the run's own config; leave out {', '.join(refused)}. "
            f"Only what it computes on and its checkpoints can change."
        )


def _check_picture(path: Path) -> None:
    """A search may take days: better to hear now that its picture cannot be drawn."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UserError(f"--picture must end in {', '.join(SUFFIXES)}, got '{path.name}'")
    if not path.parent.is_dir():
        raise UserError(f"--picture: there is no folder {path.parent}")
    if suffix != ".svg" and importlib.util.find_spec("matplotlib") is None:
        raise UserError(
            "--picture: PNG and PDF need matplotlib: pip install 'prnas[figures]', or write .svg"
        )


def _show_stopped(folder: Path | None) -> None:
    if folder is None:
        show("stopped; nothing was to be saved")
        return
    show("stopped; the state is saved. To go on:")
    show(f"  prnas search --resume {shlex.quote(str(folder))}")


def _draw(result: SearchResult, path: Path) -> None:
    from prnas.commands.pictures import save_picture
    from prnas.reporting.drawing import draw_genotype

    title = result.folder.name if result.folder else None
    save_picture(draw_genotype(result.genotype, title), path)
