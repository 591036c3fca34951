"""Configs in files: one may extend a recipe or another file, and name a space that is in a file.

Both are read at once, so a config that is written down again stands by itself.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from prnas.config import recipes
from prnas.config.search import read_setting
from prnas.config.sections import RunConfig
from prnas.config.undecided import Draft
from prnas.io.errors import FormatError, UserError, reading, suggestion
from prnas.io.paths import exists
from prnas.io.text import read_text
from prnas.io.yaml_files import parse_yaml
from prnas.space.setting import SETTINGS, setting_to_data

BASE = "base"
MOST_BASES = 20
# Values that are replaced as a whole: half of one and half of another would be neither.
_INDIVISIBLE = ("space", "genotype", "network.shape", "final.latency")


def read_draft(name: str, task: str = "") -> Draft[RunConfig]:
    """The config of a recipe by its name, or in a YAML file; of this task, if one is given."""
    with reading(name):
        data = _read(name, task, Path(), ())
        own_task = recipes.task_of(data)
        if task and own_task in recipes.KINDS and own_task != task:
            raise UserError(for_another_task(f"'{name:.200}'", own_task, task))
        return recipes.draft_from_data(data)


def for_another_task(name: str, own_task: str, task: str) -> str:
    """The message about a config of another task, with the recipes that could be used."""
    names = ", ".join(recipes.names(task))
    return f"{name} is a recipe for {own_task}; recipes for {task}: {names}"


def _for(task: str) -> str:
    return f" for {task}" if task else ""


def _read(name: str, task: str, folder: Path, extending: tuple[Path, ...]) -> Any:
    """Plain data of a recipe, or of a file, with what it extends and the space that it names."""
    if name in recipes.names():
        return parse_yaml(recipes.text(name))
    file = _file(name, folder)
    if file is None:
        names = recipes.names(task)
        near = suggestion(name, names) or f" Recipes{_for(task)}: {', '.join(names)}."
        raise UserError(f"no recipe and no file is called '{name:.200}'.{near}")
    chain = (*extending, file.resolve())
    if chain[-1] in extending:
        raise FormatError([f"{' extends '.join(path.name for path in chain)}: a circle"])
    if len(chain) > MOST_BASES:
        raise FormatError([f"more than {MOST_BASES} files extend each other"])
    data = parse_yaml(read_text(file))
    if not isinstance(data, dict):
        return data
    own = cast(dict[str, Any], data)
    base = own.pop(BASE, None)
    _read_space(own, file.parent)
    wanted = recipes.task_of(own) if "task" in own else task
    if wanted not in recipes.KINDS:
        wanted = ""
    return own if base is None else _extended(base, own, wanted, file.parent, chain)


def _extended(
    base: Any, own: dict[str, Any], task: str, folder: Path, chain: tuple[Path, ...]
) -> Any:
    """The base with what the file itself says; of this task, if one is given."""
    if not isinstance(base, str):
        raise FormatError([f"{BASE}: must be the name of a recipe or a file, got {base!r:.60}"])
    name = f"{BASE} '{base:.200}'"
    try:
        data = _read(base, task, folder, chain)
    except FormatError as error:
        raise FormatError([f"{name}: {problem}" for problem in error.problems]) from None
    except UserError as error:
        raise FormatError([f"{name}: {error}"]) from None
    if not isinstance(data, dict):
        raise FormatError([f"{name} holds no config"])
    values = cast(dict[str, Any], data)
    own_task = recipes.task_of(values)
    if task and own_task in recipes.KINDS and own_task != task:
        raise FormatError([for_another_task(name, own_task, task)])
    # What a recipe says of itself is not true of what others make of it.
    return merged({key: values[key] for key in values if key != "description"}, own)


def merged(base: Mapping[str, Any], own: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """`base` with what `own` says: sections key by key, lists and single values as a whole."""
    result = dict(base)
    for key, value in own.items():
        where, before = f"{path}{key}", result.get(key)
        sections = isinstance(before, dict) and isinstance(value, dict)
        if sections and where not in _INDIVISIBLE:
            value = merged(cast(Any, before), cast(Any, value), f"{where}.")
        result[key] = value
    return result


def _read_space(data: dict[str, Any], folder: Path) -> None:
    """Put the content of the file that `space` names in its place."""
    space = data.get("space")
    if not isinstance(space, str) or space in SETTINGS:
        return
    file = _file(space, folder)
    if file is None:
        choices = suggestion(space, SETTINGS)
        raise FormatError([f"space: no setting and no file is called '{space:.60}'.{choices}"])
    data["space"] = setting_to_data(read_setting(str(file)))


def _file(name: str, folder: Path) -> Path | None:
    """The file beside the one that names it or, if there is none, in the current folder."""
    return next((path for path in (folder / name, Path(name)) if exists(path)), None)
