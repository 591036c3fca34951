"""`prnas search`: from a recipe, or a run that stopped, to cells."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prnas.commands.pictures import check_picture, save_picture
from prnas.commands.run_options import RUNS, check_resume, settings, show_stopped
from prnas.runs import named, signals
from prnas.runs.names import check_name

if TYPE_CHECKING:
    from prnas.runs.events import SearchResult

DEFAULT_RECIPE = "quick"


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
        check_picture(wanted.picture)
    if wanted.resume is not None:
        typed = {
            f"the recipe '{wanted.recipe}'": wanted.recipe,
            "--data": wanted.data,
            "--data-root": wanted.data_root,
            "--seed": wanted.seed,
            "--runs": wanted.runs,
            "--name": wanted.name,
        }
        check_resume(wanted.resume, typed, wanted.overrides)
    if wanted.name is not None:
        check_name(wanted.name, "--name")
    compute = settings({f"compute.{key}": value for key, value in wanted.compute.items()})
    overrides = [*wanted.overrides, *compute]
    config = None
    if wanted.resume is None:
        science = {"data.name": wanted.data, "data.root": wanted.data_root, "seed": wanted.seed}
        overrides += settings(science)
        config = named.search_config(wanted.recipe or DEFAULT_RECIPE, overrides)

    from prnas.report.default_callbacks import with_default_callbacks
    from prnas.searching import api as engine
    from prnas.terminal.display import Display

    display = Display(quiet=wanted.quiet)
    callbacks = with_default_callbacks([display])
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
            show_stopped(stopped.folder, "search")
        sys.exit(signals.EXIT + stopped.number)
    finally:
        display.close()
    if wanted.picture is not None and display.started:
        _draw(result, wanted.picture)


def _draw(result: "SearchResult", path: Path) -> None:
    from prnas.drawing.cells import draw_genotype

    title = result.folder.name if result.folder else None
    save_picture(draw_genotype(result.genotype, title), path)
