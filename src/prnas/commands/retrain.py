"""`prnas retrain`: a new or resumed training, from a genotype to a trained model."""

from pathlib import Path
from typing import Any

from prnas.commands.options import RetrainOptions
from prnas.commands.run_options import RUNS, check_run_options, config_overrides, showing
from prnas.config.retrain import RetrainConfig
from prnas.io.errors import UserError
from prnas.runs import named

DEFAULT_RECIPE = "retrain-quick"
# Keys of the data section that a training inherits from the search whose cells it trains.
INHERITED = (
    *("name", "root", "image_size", "images", "test_share", "broken", "storage", "workers"),
    *("flip", "crop_padding", "padding_color"),
)


def run(genotype: str | None, recipe: str | None, options: RetrainOptions) -> None:
    """Train, and show the progress. All mistakes in the options are found before it starts."""
    check_run_options(options, genotype=genotype, recipe=recipe)
    overrides = config_overrides(options)
    config = None
    if options.resume is None:
        # The images are those of the search, unless a recipe or --data names others.
        inherits = recipe is None and options.data is None
        config = _config(genotype, recipe or DEFAULT_RECIPE, inherits).override(overrides)

    from prnas.report.default_callbacks import with_default_callbacks
    from prnas.retraining import api, seeds
    from prnas.runs.events import Callback
    from prnas.terminal.display import Display
    from prnas.terminal.ends import show_seeds

    displays: list[Display] = []

    def watchers(number: int = 0, of: int = 1) -> list[Callback]:
        title = f"run {number + 1} of {of}" if of > 1 else ""
        displays.append(Display(quiet=options.quiet, title=title))
        return with_default_callbacks([displays[-1]])

    result = None
    with showing(displays, "retrain"):
        if config is None:
            assert options.resume is not None
            if seeds.is_group(options.resume):
                result = seeds.resume_seeds(options.resume, overrides=overrides, watchers=watchers)
            else:
                api.resume(options.resume, overrides=overrides, callbacks=watchers())
        else:
            stem = Path(recipe or DEFAULT_RECIPE).stem
            run: dict[str, Any] = {
                "runs": options.runs or RUNS,
                "name": options.name,
                "recipe": stem,
            }
            if options.seeds is None or options.seeds == 1:
                api.start(config, callbacks=watchers(), **run)
            else:
                result = seeds.start_seeds(config, options.seeds, watchers=watchers, **run)
    if result is not None and displays[-1].started:
        write_report(result.folder)
        show_seeds(result)


def _config(genotype: str | None, recipe: str, inherits: bool) -> RetrainConfig:
    if genotype is None:
        raise UserError(
            "say what to train: a published cell (`prnas zoo` lists them), a genotype file, or the "
            "folder of a search; or go on with --resume RUN"
        )
    cells, searched = named.genotype_and_data(genotype)
    config = named.config_of(recipe, (), RetrainConfig)
    data = config.data
    if searched is not None and inherits:
        data = data.model_copy(update={key: searched[key] for key in INHERITED})
    return config.model_copy(update={"genotype": cells, "data": data})


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
