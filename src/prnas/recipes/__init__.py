"""Recipes: a YAML file for each experiment. What a recipe leaves out is the paper's."""

from importlib.resources import files

from prnas.config import SearchConfig
from prnas.space.problems import FormatError, suggestion
from prnas.yaml_files import parse_yaml


def names() -> list[str]:
    """The names of the shipped recipes."""
    found = (item.name for item in files("prnas.recipes").iterdir())
    return sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml"))


def text(name: str) -> str:
    """A recipe as it was written; an unknown name is answered with the known ones."""
    if name not in names():
        raise FormatError([f"no recipe is called '{name:.60}'." + suggestion(name, names())])
    return (files("prnas.recipes") / f"{name}.yaml").read_text(encoding="utf-8")


def get(name: str) -> SearchConfig:
    """A recipe as a config."""
    return SearchConfig.from_data(parse_yaml(text(name)))
