"""`prnas retrain`: a new or resumed training, from a genotype to a trained model."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from prnas.commands import dry_run
from prnas.commands.options import RetrainOptions
from prnas.commands.run_options import (
    RUNS,
    check_run_options,
    config_overrides,
    display_for,
    nothing_left,
    showing,
)
from prnas.config import recipes
from prnas.config.retrain import RetrainConfig
from prnas.config.undecided import Draft
from prnas.io.errors import UserError
from prnas.runs import named
from prnas.runs.training_draft import training_draft

if TYPE_CHECKING:
    from prnas.models.card import ModelCard
    from prnas.terminal.display import Display


def run(genotype: str | None, recipe: str | None, options: RetrainOptions) -> None:
    """Train, and show the progress. All mistakes in the options are found before it starts."""
    check_run_options(options, genotype=genotype, recipe=recipe)
    if nothing_left(options, "retrain"):
        return
    settled = None
    if options.resume is None:
        recipe, draft = _draft(genotype, recipe, options)
        settled = named.settle(draft)
        if options.dry_run:
            dry_run.show(settled, options)
            return

    from prnas.report.default_callbacks import with_default_callbacks
    from prnas.retraining import api, seeds
    from prnas.runs.events import Callback
    from prnas.terminal.brief_ends import print_folder, print_result
    from prnas.terminal.ends import show_seeds

    displays: list[Display] = []

    def watchers(number: int = 0, of: int = 1) -> list[Callback]:
        title = f"run {number + 1} of {of}" if of > 1 else ""
        displays.append(display_for(options, title))
        return with_default_callbacks([displays[-1]])

    result = None
    with showing(displays, "retrain", options.brief):
        if settled is None:
            assert options.resume is not None
            if seeds.is_group(options.resume):
                result = seeds.resume_seeds(
                    options.resume, overrides=config_overrides(options), watchers=watchers
                )
            else:
                api.resume(
                    options.resume, overrides=config_overrides(options), callbacks=watchers()
                )
        else:
            run: dict[str, Any] = {
                "runs": options.runs or RUNS,
                "name": options.name,
                "recipe": recipe,
            }
            if options.seeds is None or options.seeds == 1:
                reasons = settled.reasons
                api.start(settled.config, callbacks=watchers(), reasons=reasons, **run)
            else:
                config = settled.config
                result = seeds.start_seeds(config, options.seeds, watchers=watchers, **run)
    if result is not None and displays[-1].started:
        write_report(result.folder)
        if options.as_json:
            print_result(result)
        elif options.quiet:
            print_folder(result.folder)
        else:
            show_seeds(result)


def _draft(
    genotype: str | None, recipe: str | None, options: RetrainOptions
) -> tuple[str, Draft[RetrainConfig]]:
    """The recipe's name, and what it and the options say of the training."""
    start = options.start_from
    if start is not None and genotype is not None and recipe is None and _is_recipe(genotype):
        genotype, recipe = None, genotype  # The cells are those of the model to start from.
    card, network = _read_start(start)
    if genotype is None and card is None:
        raise UserError(
            "say what to train: a published cell (`prnas zoo` lists them), a genotype file, the "
            "folder of a search, or a plain network (resnet8, resnet20); or go on with --resume RUN"
        )
    if genotype is not None:
        trainable = named.what_to_train(genotype)
    else:
        assert card is not None
        trainable = named.Trainable(card.genotype, {})
    changes = config_overrides(options)
    return training_draft(trainable, recipe, options.data, changes, network)


def _is_recipe(name: str) -> bool:
    return name in recipes.names("retrain") or name.endswith((".yaml", ".yml"))


def _read_start(path: str | None) -> "tuple[ModelCard | None, dict[str, Any]]":
    """The card of the model to start from, if there is one, and its size for the config."""
    if path is None:
        return None, {}
    named.check_has_model(Path(path))

    from prnas.retraining.start import network_keys

    return network_keys(path)


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
