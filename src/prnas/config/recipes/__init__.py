"""Recipes: a YAML file for each experiment. What a recipe leaves out is the paper's."""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, cast

from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.config.sections import RunConfig
from prnas.config.undecided import Draft
from prnas.io.errors import FormatError, suggestion
from prnas.io.yaml_files import parse_yaml

KINDS: dict[str, type[RunConfig]] = {"search": SearchConfig, "retrain": RetrainConfig}


def names(task: str = "") -> list[str]:
    """The names of the shipped recipes; only those for `task` if it is given."""
    entries = (item.name for item in files("prnas.config.recipes").iterdir())
    shipped = sorted(name.removesuffix(".yaml") for name in entries if name.endswith(".yaml"))
    return [name for name in shipped if not task or task_of(parse_yaml(_text(name))) == task]


def task_of(data: Any) -> str:
    """The task of the config in parsed YAML; a search, unless it says otherwise."""
    task = cast(Any, data).get("task", "search") if isinstance(data, dict) else "search"
    return f"{task!s:.60}"


def config_from_data(data: Any, overrides: Sequence[str] = ()) -> RunConfig:
    """The config of a search or a training in parsed YAML."""
    kind = KINDS.get(task_of(data), SearchConfig)
    return kind.from_data(data, overrides)


def draft_from_data(data: Any, overrides: Sequence[str] = ()) -> Draft[RunConfig]:
    """The same, of which some values may be left to the images."""
    kind = KINDS.get(task_of(data), SearchConfig)
    return kind.draft(data, overrides)


def _text(name: str) -> str:
    return (files("prnas.config.recipes") / f"{name}.yaml").read_text(encoding="utf-8")


def text(name: str) -> str:
    """The text of a recipe; the error for an unknown name lists the recipes."""
    if name not in names():
        raise FormatError([f"no recipe is called '{name:.60}'." + suggestion(name, names())])
    return _text(name)


@cache
def data_of_description(description: str) -> str | None:
    """The name of the data of the recipe that has this description, unless it suits any data."""
    for name in names():
        recipe = parse_yaml(_text(name))
        if cast(dict[str, Any], recipe).get("description") == description:
            draft = draft_from_data(recipe)
            return None if draft.open else draft.config.images.name
    return None


def any_recipe(name: str) -> RunConfig:
    """The config in a recipe for a search or a training that leaves nothing open."""
    return config_from_data(parse_yaml(text(name)))


def any_draft(name: str) -> Draft[RunConfig]:
    """The same of any recipe."""
    return draft_from_data(parse_yaml(text(name)))
