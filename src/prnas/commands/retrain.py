"""`prnas retrain`: a new or resumed training, from a genotype to a trained model."""

import sys
from pathlib import Path

from prnas.commands.options import RetrainOptions
from prnas.commands.run_options import RUNS, check_run_options, config_overrides, show_stopped
from prnas.config.retrain import RetrainConfig
from prnas.io.errors import UserError
from prnas.runs import named, signals

DEFAULT_RECIPE = "retrain-quick"
# Keys of the data section that a training inherits from the search whose cells it trains.
INHERITED = (
    *("name", "root", "image_size", "images", "test_share", "broken", "storage", "workers"),
    *("flip", "crop_padding"),
)


def run(genotype: str | None, recipe: str | None, options: RetrainOptions) -> None:
    """Train, and show the progress. All mistakes in the options are outcome before it starts."""
    check_run_options(options, genotype=genotype, recipe=recipe)
    overrides = config_overrides(options)
    config = None
    if options.resume is None:
        if options.seeds is not None and options.seeds < 1:
            raise UserError(f"--seeds must be 1 or more, got {options.seeds}")
        # The images are those of the search, unless a recipe or --data names others.
        inherits = recipe is None and options.data is None
        config = _config(genotype, recipe or DEFAULT_RECIPE, inherits).override(overrides)
    _train(Path(recipe or DEFAULT_RECIPE).stem, options, config, overrides)


def _config(genotype: str | None, recipe: str, inherits: bool) -> RetrainConfig:
    if genotype is None:
        raise UserError(
            "say what to train: a published cell (`prnas zoo` lists them), a genotype file, or the "
            "folder of a search; or go on with --resume RUN"
        )
    cells, searched = named.genotype_and_data(genotype)
    config = named.config_of(recipe, (), "retrain")
    data = config.data
    if searched is not None and inherits:
        data = data.model_copy(update={key: searched[key] for key in INHERITED})
    return config.model_copy(update={"genotype": cells, "data": data})


def _train(
    recipe: str, options: RetrainOptions, config: RetrainConfig | None, overrides: list[str]
) -> None:
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
        display = Display(quiet=options.quiet, title=title)
        displays.append(display)
        return with_default_callbacks([display])

    runs = options.runs or RUNS
    outcome = None
    try:
        if config is None:
            assert options.resume is not None
            folder = options.resume
            if seeds.is_group(folder):
                outcome = seeds.resume_seeds(
                    folder, overrides=overrides, watchers=watchers, command=command
                )
            else:
                retrain.resume(
                    folder, overrides=overrides, callbacks=watchers(0, 1), command=command
                )
        elif options.seeds is None or options.seeds == 1:
            retrain.start(
                config,
                runs=runs,
                name=options.name,
                recipe=recipe,
                callbacks=watchers(0, 1),
                command=command,
            )
        else:
            outcome = seeds.start_seeds(
                config,
                options.seeds,
                runs=runs,
                name=options.name,
                recipe=recipe,
                watchers=watchers,
                command=command,
            )
    except retrain.Stopped as stopped:
        if displays and displays[-1].started:  # With several processes, only the first one prints.
            show_stopped(stopped.folder, "retrain")
        sys.exit(signals.EXIT + stopped.number)
    finally:
        for display in displays:
            display.close()
    if outcome is not None and displays[-1].started:
        write_report(outcome.folder)
        show_seeds(outcome)


def write_report(folder: Path | None) -> None:
    """The page of all seeds; whatever is wrong with it, the training is done."""
    from prnas.report.page import write_page
    from prnas.report.read_run import read_group, read_view, runs_in
    from prnas.runs.names import REPORT
    from prnas.terminal.output import show

    if folder is None:
        return
    try:
        views = [read_view(path) for path in runs_in(folder)]
        write_page(folder / REPORT, views, group=read_group(folder))
    except Exception as error:
        show(f"note: cannot write {folder / REPORT} ({error}); the results are whole")
