"""Configs, genotypes and settings by what a person typed: a name, a file or a run's folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from prnas.config import recipes
from prnas.config.choosing import choose
from prnas.config.files import for_another_task, read_draft
from prnas.config.retrain import RetrainConfig
from prnas.config.search import read_setting
from prnas.config.sections import RunConfig
from prnas.config.undecided import Draft
from prnas.io.errors import FormatError, UserError, reading, suggestion
from prnas.io.paths import exists, is_file, is_folder
from prnas.io.text import read_text
from prnas.runs.integrity import check_genotype, check_run_config, read_config_data, written_by
from prnas.runs.names import CONFIG, GENOTYPE, MODEL
from prnas.space import zoo
from prnas.space.genotype import Genotype
from prnas.space.setting import SETTINGS, Setting

C = TypeVar("C", bound=RunConfig)


def genotype_and_data(name: str) -> tuple[Genotype, dict[str, Any] | None]:
    """A published cell, or the genotype in a file, or in a run's folder with the run's images."""
    folder = Path(name)
    if name in zoo.names():
        return zoo.get(name), None
    if not is_folder(folder):
        return _read_genotype(_existing(name, "published cell", zoo.names())), None
    config_file, genotype_file = folder / CONFIG, folder / GENOTYPE
    if not config_file.is_file():
        raise UserError(f"{folder} is not a run's folder: it has no {CONFIG}")
    data = read_config_data(config_file)
    check_run_config(folder, config_file, data)
    try:
        run = recipes.config_from_data(data)
    except FormatError as error:
        raise UserError(f"{config_file}: {error}{written_by(folder)}") from None
    if isinstance(run, RetrainConfig):
        return run.genotype, run.data.model_dump()
    if not genotype_file.is_file():
        raise _unfinished(folder)
    return _read_genotype(genotype_file), run.images.model_dump()


def _read_genotype(path: Path) -> Genotype:
    with reading(path):
        genotype = Genotype.loads(read_text(path))
    if path.name == GENOTYPE:  # In the folder of a search, it must be the search's result.
        check_genotype(path.parent, path, genotype)
    return genotype


def _unfinished(folder: Path) -> UserError:
    return UserError(
        f"the search in {folder} has not found its cells yet; go on with "
        f"`prnas search --resume {folder}`"
    )


def check_has_model(path: Path) -> None:
    """A `UserError` if `path` is the folder of a run that has no trained model."""
    if not is_file(path / CONFIG) or is_folder(path / MODEL):
        return
    if recipes.task_of(read_config_data(path / CONFIG)) != "search":
        raise UserError(
            f"the training in {path} has not ended; go on with `prnas retrain --resume {path}`"
        )
    if not is_file(path / GENOTYPE):
        raise _unfinished(path)
    raise UserError(
        f"{path} is a search, which trains no final network; train the network of its cells "
        f"first: `prnas retrain {path}`"
    )


def setting(name: str) -> Setting:
    """A setting of the paper by its name, or a user's own from a YAML file."""
    if name in SETTINGS:
        return SETTINGS[name]
    return read_setting(str(_existing(name, "setting", list(SETTINGS))))


@dataclass(frozen=True)
class Settled(Generic[C]):
    """A config with every value, and what was chosen by the images, with reasons."""

    config: C
    reasons: tuple[tuple[str, str], ...] = ()


def config_of(given: RunConfig | str | Path, overrides: Sequence[str], kind: type[C]) -> C:
    """A recipe by its name, the config in a YAML file, or a config, of that kind; overridden."""
    return settle(draft_of(given, overrides, kind)).config


def settle(draft: Draft[C]) -> Settled[C]:
    """The whole config; what is open is chosen after a look at the images."""
    if not draft.open:
        return Settled(draft.config)
    from prnas.data.survey import survey

    choice = choose(draft, survey(draft.config.images))
    return Settled(draft.settled(choice.values), choice.reasons)


def draft_of(given: RunConfig | str | Path, overrides: Sequence[str], kind: type[C]) -> Draft[C]:
    """A config as by `config_of`, in which what is left to the images is still open."""
    task = next((task for task, config in recipes.KINDS.items() if config is kind), "")
    draft = Draft(given) if isinstance(given, RunConfig) else read_draft(str(given), task)
    config = draft.config
    if not isinstance(config, kind):
        raise for_another_task(type(config).__name__, config.task, task)
    if not overrides:
        return Draft(config, draft.open)
    return honestly_described(type(config).draft(draft.to_data(), overrides))


def honestly_described(draft: Draft[C]) -> Draft[C]:
    """Without the description of a recipe, if that is not true of other images."""
    config = draft.config
    if recipes.data_of_description(config.description) in (None, config.images.name):
        return draft
    return Draft(config.model_copy(update={"description": ""}), draft.open)


def default_search(data: str | None) -> str:
    """The recipe of a search on these images, if none is named; `None`: on no images by name."""
    return "quick" if data in (None, "digits") else "pictures"


def default_training(data: str | None) -> str:
    """The recipe of a training on these images, if none is named."""
    own = data is not None and data.partition(":")[0] in ("folder", "npz")
    return "retrain-pictures" if own else "retrain-quick"


def _existing(name: str, what: str, names: list[str]) -> Path:
    if not exists(name):
        raise UserError(f"no {what} and no file is called '{name:.200}'." + suggestion(name, names))
    return Path(name)
