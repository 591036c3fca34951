"""`prnas recipes` and `prnas config`: what a search is told, written out."""

from pathlib import Path

from prnas.config import recipes
from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.io.text import write_text
from prnas.io.yaml_files import dump_yaml
from prnas.runs import named
from prnas.terminal.output import show, show_heading, show_json, show_next, table


def run_recipes(name: str | None, as_json: bool) -> None:
    if name is not None:
        if as_json:
            show_json(recipes.any_recipe(name).to_data())
        else:
            print(recipes.text(name), end="")
        return
    configs = {one: recipes.any_recipe(one) for one in recipes.names()}
    if as_json:
        show_json([{"name": one, **config.to_data()} for one, config in configs.items()])
        return
    searches = [
        [
            one,
            config.data.name,
            str(len(config.schedule.cycles)),
            str(config.schedule.num_epochs),
            config.description,
        ]
        for one, config in configs.items()
        if isinstance(config, SearchConfig)
    ]
    trainings = [
        [one, config.data.name, str(config.training.epochs), config.description]
        for one, config in configs.items()
        if isinstance(config, RetrainConfig)
    ]
    show_heading("Recipes for prnas search")
    show(table(["name", "data", "cycles", "epochs", "what it is"], searches, right=(2, 3)), "")
    show_heading("Recipes for prnas retrain")
    show(table(["name", "data", "epochs", "what it is"], trainings, right=(2,)))
    show_next("prnas config darts-like", "prnas recipes darts-like")


def run_config(name: str, overrides: list[str], as_json: bool, out: Path | None) -> None:
    config = named.config(name, overrides)
    if out is not None:
        write_text(out, dump_yaml(config.to_data()))
        show(f"wrote {out}")
        show_next(f"prnas config {out}")
    elif as_json:
        show_json(config.to_data())
    else:
        print(dump_yaml(config.to_data()), end="")
