"""Recipes: a YAML file for each experiment. What a recipe leaves out is the paper's."""

from functools import cache
from importlib.resources import files
from typing import Any, cast

from prnas.config.retrain import RetrainConfig
from prnas.config.search import RunConfig, SearchConfig
from prnas.io.errors import FormatError, suggestion
from prnas.io.yaml_files import parse_yaml

KINDS: dict[str, type[RunConfig]] = {"search": SearchConfig, "retrain": RetrainConfig}


def names(task: str | None = None) -> list[str]:
    """The names of the shipped recipes; those of one task if it is given."""
    found = (item.name for item in files("prnas.config.recipes").iterdir())
    known = sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml"))
    return [name for name in known if task in (None, task_of(parse_yaml(_text(name))))]


def task_of(data: Any) -> str:
    """What the config in parsed YAML is for; a search, unless it says otherwise."""
    return cast(Any, data).get("task", "search") if isinstance(data, dict) else "search"


def config_from_data(data: Any, overrides: list[str] | None = None) -> RunConfig:
    """A config of whatever kind."""
    kind = KINDS.get(str(task_of(data)), SearchConfig)
    return kind.from_data(data, overrides or [])


def _text(name: str) -> str:
    return (files("prnas.config.recipes") / f"{name}.yaml").read_text(encoding="utf-8")


def text(name: str) -> str:
    """A recipe as it was written; an unknown name is answered with the known ones."""
    if name not in names():
        raise FormatError([f"no recipe is called '{name:.60}'." + suggestion(name, names())])
    return _text(name)


@cache
def data_of_description(description: str) -> str | None:
    """The name of the data of the recipe that has this description."""
    for name in names():
        recipe = parse_yaml(_text(name))
        if cast(dict[str, Any], recipe).get("description") == description:
            return config_from_data(recipe).to_data()["data"]["name"]
    return None


def any_recipe(name: str) -> RunConfig:
    """A recipe of whatever kind as a config."""
    return config_from_data(parse_yaml(text(name)))


def get(name: str) -> SearchConfig:
    """A search's recipe as a config."""
    return SearchConfig.from_data(parse_yaml(text(name)))


def get_retrain(name: str) -> RetrainConfig:
    """A training's recipe as a config."""
    return RetrainConfig.from_data(parse_yaml(text(name)))
