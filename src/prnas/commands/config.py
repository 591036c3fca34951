"""`prnas recipes` and `prnas config`: the recipes, and a run's whole config."""

from prnas.commands.options import ConfigOptions
from prnas.commands.run_options import config_overrides
from prnas.config import recipes
from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.config.sections import RunConfig
from prnas.config.undecided import AUTO
from prnas.io.text import write_text
from prnas.io.yaml_files import dump_yaml
from prnas.runs import named
from prnas.studies.config import read_study, ready_studies, ready_text
from prnas.terminal.output import (
    reason_lines,
    show,
    show_heading,
    show_json,
    show_next,
    table,
)


def run_recipes(name: str | None, as_json: bool) -> None:
    if name is not None:
        if name in ready_studies():
            _print_study(name, as_json)
        elif as_json:
            show_json(recipes.any_draft(name).to_data())
        else:
            print(recipes.text(name), end="")
        return
    drafts = {recipe: recipes.any_draft(recipe) for recipe in recipes.names()}
    studies = {study: read_study(study) for study in ready_studies()}
    if as_json:
        runs = [{"name": recipe, **draft.to_data()} for recipe, draft in drafts.items()]
        others = [
            {"name": name, "task": "study", **study.to_data()} for name, study in studies.items()
        ]
        show_json([*runs, *others])
        return
    searches: list[list[str]] = []
    trainings: list[list[str]] = []
    for recipe, draft in drafts.items():
        config = draft.config
        images = "any" if draft.open else config.images.name
        if isinstance(config, SearchConfig):
            epochs = AUTO if draft.open else str(config.schedule.num_epochs)
            cycles = str(len(config.schedule.cycles))
            if config.searcher.by_table:  # nothing is trained
                images, epochs, cycles = "a table", "-", "-"
            elif config.searcher.without_supernet:
                epochs, cycles = "-", "-"
            searches.append([recipe, images, cycles, epochs, config.description])
        elif isinstance(config, RetrainConfig):
            epochs = AUTO if draft.open else str(config.training.epochs)
            trainings.append([recipe, images, epochs, config.description])
    show_heading("Recipes for prnas search")
    show(table(["name", "data", "cycles", "epochs", "what it is"], searches, right=(2, 3)), "")
    show_heading("Recipes for prnas retrain")
    show(table(["name", "data", "epochs", "what it is"], trainings, right=(2,)), "")
    show_heading("Studies for prnas study")
    counts = [
        [name, str(len(study.rows)), str(study.seeds), str(study.trainings), study.description]
        for name, study in studies.items()
    ]
    show(table(["name", "rows", "seeds", "trainings", "what it is"], counts, right=(1, 2, 3)))
    show_next("prnas config darts-like", "prnas recipes darts-like")


def _print_study(name: str, as_json: bool) -> None:
    if as_json:
        show_json(read_study(name).to_data())
    else:
        print(ready_text(name), end="")


def run_config(name: str | None, options: ConfigOptions) -> None:
    name = name or named.default_search(options.data)
    settled = named.settle(named.draft_of(name, config_overrides(options), RunConfig))
    data = settled.config.to_data()
    # Comments, which whoever reads the file as a config does not see.
    reasons = "".join(f"# {line}\n" for line in reason_lines(settled.reasons))
    if options.out is not None:
        write_text(options.out, reasons + dump_yaml(data))
        show(f"wrote {options.out}")
        show_next(f"prnas config {options.out}")
    elif options.as_json:
        show_json(data)
    else:
        print(reasons + dump_yaml(data), end="")
