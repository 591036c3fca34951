"""`prnas retrain`: from a genotype, or a training that stopped, to a trained model."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prnas.commands.run_options import RUNS, check_resume, settings, show_stopped
from prnas.config.retrain import RetrainConfig
from prnas.io.errors import UserError
from prnas.runs import named, signals
from prnas.runs.names import check_name

DEFAULT_RECIPE = "retrain-quick"
# What a training takes over from the search whose cells it trains.
TAKEN_OVER = (
    *("name", "root", "image_size", "images", "test_share", "broken", "storage", "workers"),
    *("flip", "crop_padding"),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was typed; `None` is what was not. `compute` has the names of the config's section."""

    genotype: str | None
    recipe: str | None
    data: str | None
    data_root: str | None
    seed: int | None
    seeds: int | None
    overrides: list[str]
    runs: Path | None
    name: str | None
    resume: Path | None
    compute: dict[str, Any]
    quiet: bool


def run(wanted: Wanted) -> None:
    """Train, showing what goes on. All that can be wrong with the words is found first."""
    compute = settings({f"compute.{key}": value for key, value in wanted.compute.items()})
    overrides = [*wanted.overrides, *compute]
    config = None
    if wanted.resume is not None:
        typed = {
            f"the genotype '{wanted.genotype}'": wanted.genotype,
            f"the recipe '{wanted.recipe}'": wanted.recipe,
            "--data": wanted.data,
            "--data-root": wanted.data_root,
            "--seed": wanted.seed,
            "--seeds": wanted.seeds,
            "--runs": wanted.runs,
            "--name": wanted.name,
        }
        check_resume(wanted.resume, typed, wanted.overrides)
    else:
        if wanted.name is not None:
            check_name(wanted.name, "--name")
        if wanted.seeds is not None and wanted.seeds < 1:
            raise UserError(f"--seeds must be 1 or more, got {wanted.seeds}")
        config = _config(wanted, overrides)
    _train(wanted, config, overrides)


def _config(wanted: Wanted, overrides: list[str]) -> RetrainConfig:
    if wanted.genotype is None:
        raise UserError(
            "say what to train: a published cell (`prnas zoo` lists them), a genotype file, or the "
            "folder of a search; or go on with --resume RUN"
        )
    genotype, searched = named.genotype_and_data(wanted.genotype)
    base = named.config(wanted.recipe or DEFAULT_RECIPE, [], "retrain")
    assert isinstance(base, RetrainConfig)
    data = base.to_data()
    data["genotype"] = genotype.to_json()
    # A search's own images, unless a recipe or --data says otherwise.
    if searched is not None and wanted.recipe is None and wanted.data is None:
        data["data"] |= {name: searched[name] for name in TAKEN_OVER if name in searched}
    typed = settings({"data.name": wanted.data, "data.root": wanted.data_root, "seed": wanted.seed})
    return RetrainConfig.from_data(data, [*overrides, *typed])


def _train(wanted: Wanted, config: RetrainConfig | None, overrides: list[str]) -> None:
    from prnas.report.default_callbacks import with_default_callbacks
    from prnas.retraining import api as retrain
    from prnas.retraining import seeds
    from prnas.runs.events import Callback
    from prnas.terminal.display import Display
    from prnas.terminal.ends import show_seeds

    command = ["prnas", *sys.argv[1:]]
    displays: list[Display] = []

    def watchers(number: int, of: int) -> list[Callback]:
        title = f"run {number + 1} of {of}" if of > 1 else ""
        display = Display(quiet=wanted.quiet, title=title)
        displays.append(display)
        return with_default_callbacks([display])

    recipe = Path(wanted.recipe or DEFAULT_RECIPE).stem
    runs = wanted.runs or RUNS
    found = None
    try:
        if config is None:
            assert wanted.resume is not None
            folder = wanted.resume
            if seeds.is_group(folder):
                found = seeds.resume_seeds(
                    folder, overrides=overrides, watchers=watchers, command=command
                )
            else:
                retrain.resume(
                    folder, overrides=overrides, callbacks=watchers(0, 1), command=command
                )
        elif wanted.seeds is None or wanted.seeds == 1:
            retrain.start(
                config,
                runs=runs,
                name=wanted.name,
                recipe=recipe,
                callbacks=watchers(0, 1),
                command=command,
            )
        else:
            found = seeds.start_seeds(
                config,
                wanted.seeds,
                runs=runs,
                name=wanted.name,
                recipe=recipe,
                watchers=watchers,
                command=command,
            )
    except retrain.Stopped as stopped:
        if displays and displays[-1].started:  # with several processes, the first speaks for all
            show_stopped(stopped.folder, "retrain")
        sys.exit(signals.EXIT + stopped.number)
    finally:
        for display in displays:
            display.close()
    if found is not None and displays[-1].started:
        write_report(found.folder)
        show_seeds(found)


def write_report(folder: Path | None) -> None:
    """The page of all seeds; whatever is wrong with it, the training is done."""
    from prnas.report.page import FILE, write_page
    from prnas.report.read_run import read_group, read_view, runs_in
    from prnas.terminal.output import show

    if folder is None:
        return
    try:
        views = [read_view(path) for path in runs_in(folder)]
        write_page(folder / FILE, views, group=read_group(folder))
    except Exception as error:
        show(f"note: cannot write {folder / FILE} ({error}); the results are whole")
