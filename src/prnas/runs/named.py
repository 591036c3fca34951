"""From what a person typed, a name or a file, to a value; and out to files again."""

from pathlib import Path
from typing import Any

from prnas.config import recipes
from prnas.config.retrain import RetrainConfig
from prnas.config.search import RunConfig, SearchConfig
from prnas.io.errors import FormatError, UserError, suggestion
from prnas.io.text import read_text
from prnas.io.yaml_files import parse_yaml
from prnas.runs.integrity import check_genotype, check_run_config, read_config_data, written_by
from prnas.space import zoo
from prnas.space.genotype import Genotype
from prnas.space.setting import SETTINGS, Setting, setting_from_data

GENOTYPE = "genotype.json"


def genotype(name: str) -> Genotype:
    """A published cell by its name, or the genotype in a file."""
    if name in zoo.names():
        return zoo.get(name)
    path = _existing(name, "published cell", zoo.names())
    try:
        found = Genotype.loads(read_text(path))
    except FormatError as error:
        raise _in_file(path, error) from None
    if path.name == GENOTYPE:  # in the folder of a search, it must be what was found there
        check_genotype(path.parent, path, found)
    return found


def genotype_and_data(name: str) -> tuple[Genotype, dict[str, Any] | None]:
    """A genotype as `genotype` finds it, or that of a run's folder; then with the run's images."""
    folder = Path(name)
    if name in zoo.names() or not _is_folder(folder):
        return genotype(name), None
    config_file, found = folder / "config.yaml", folder / GENOTYPE
    if not config_file.is_file():
        raise UserError(f"{folder} is not a run's folder: it has no config.yaml")
    data = read_config_data(config_file)
    check_run_config(folder, config_file, data)
    try:
        run = recipes.config_from_data(data)
    except FormatError as error:
        raise UserError(f"{config_file}: {error}{written_by(folder)}") from None
    if isinstance(run, RetrainConfig):
        return run.genotype, run.data.model_dump()
    if not found.is_file():
        raise UserError(
            f"the search in {folder} has not found its cells yet; go on with "
            f"`prnas search --resume {folder}`"
        )
    return genotype(str(found)), run.images.model_dump()


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # too long, or with a null byte: no file has that name
        return False


def setting(name: str) -> Setting:
    """A setting of the paper by its name, or a user's own from a YAML file."""
    if name in SETTINGS:
        return SETTINGS[name]
    path = _existing(name, "setting", list(SETTINGS))
    try:
        return setting_from_data(parse_yaml(read_text(path)))
    except FormatError as error:
        raise _in_file(path, error) from None


def config(name: str, overrides: list[str], task: str | None = None) -> RunConfig:
    """A recipe by its name, or a config from a YAML file; then the overrides.

    `task`: what it must be for.
    """
    path = None
    if name in recipes.names():
        text = recipes.text(name)
    else:
        path = _existing(name, "recipe", recipes.names(task))
        text = read_text(path)
    try:
        data = parse_yaml(text)
        found = recipes.task_of(data)
        if task is not None and found in recipes.KINDS and found != task:
            raise UserError(
                f"'{name:.200}' is for `prnas {found}`; recipes for `prnas {task}`: "
                + ", ".join(recipes.names(task))
            )
        base = recipes.config_from_data(data)
    except FormatError as error:
        if path is None:
            raise
        raise _in_file(path, error) from None
    return base.from_data(base.to_data(), overrides)


def search_config(name: str, overrides: list[str]) -> SearchConfig:
    found = config(name, overrides, "search")
    assert isinstance(found, SearchConfig)
    return found


def _existing(name: str, what: str, known: list[str]) -> Path:
    try:
        if Path(name).exists():
            return Path(name)
    except (OSError, ValueError):  # too long, or with a null byte: no file has that name
        pass
    raise UserError(f"no {what} and no file is called '{name:.200}'." + suggestion(name, known))


def _in_file(path: Path, error: FormatError) -> UserError:
    return UserError(f"{path}: {error}")
