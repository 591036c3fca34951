"""Configs, genotypes and settings by what a person typed: a name, a file or a run's folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from prnas.config import recipes
from prnas.config.choosing import choose
from prnas.config.files import for_another_task, read_draft
from prnas.config.retrain import PLAIN, RetrainConfig
from prnas.config.search import SearchConfig, read_setting
from prnas.config.sections import RunConfig
from prnas.config.undecided import Draft
from prnas.data.catalog import is_absent
from prnas.io.errors import FormatError, UserError, reading, suggestion
from prnas.io.paths import exists, is_file, is_folder
from prnas.io.text import read_text
from prnas.runs.integrity import check_genotype, check_run_config, read_config_data, written_by
from prnas.runs.names import CONFIG, GENOTYPE, MODEL
from prnas.space import zoo
from prnas.space.genotype import Genotype
from prnas.space.resnet import RESNET, resnet_blocks
from prnas.space.setting import SETTINGS, Setting

C = TypeVar("C", bound=RunConfig)


@dataclass(frozen=True)
class Trainable:
    """A network to train: its genotype, none if it is plain; values of the config's `network`.

    `data` has the images of the run that it comes from, if it does.
    """

    genotype: Genotype | None
    network: dict[str, Any]
    data: dict[str, Any] | None = None
    any_size: bool = False  # Whether a recipe may choose the number of blocks.

    def put_into(self, config: dict[str, Any]) -> dict[str, Any]:
        """The plain data of a training's config, with this to train."""
        genotype = None if self.genotype is None else self.genotype.to_json()
        return config | {"genotype": genotype, "network": config["network"] | self.network}


def what_to_train(name: str) -> Trainable:
    """A plain network such as `resnet8`, or a genotype as by `genotype_and_data`."""
    blocks = None
    if not exists(name):
        try:
            blocks = resnet_blocks(name)
        except ValueError as error:
            raise UserError(str(error)) from None
    if blocks is not None:
        return Trainable(None, _plain(blocks), any_size=name == RESNET)
    if is_folder(name) and (Path(name) / CONFIG).is_file():
        run = _config_in(Path(name))
        if isinstance(run, RetrainConfig) and run.genotype is None:
            return Trainable(None, _plain(run.network.cells), run.data.model_dump())
    genotype, data = genotype_and_data(name)
    return Trainable(genotype, {"kind": "cells"}, data)


def _plain(blocks: int) -> dict[str, Any]:
    return {**PLAIN, "kind": RESNET, "cells": blocks}


def _config_in(folder: Path) -> RunConfig:
    """The config of a run."""
    file = folder / CONFIG
    data = read_config_data(file)
    check_run_config(folder, file, data)
    try:
        return recipes.config_from_data(data)
    except FormatError as error:
        raise UserError(f"{file}: {error}{written_by(folder)}") from None


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
    run = _config_in(folder)
    if isinstance(run, RetrainConfig):
        if run.genotype is None:
            raise UserError(f"{folder} is the training of a plain ResNet, which has no cells")
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


def ended_without_images(folder: Path, task: str) -> bool:
    """Whether a run of a task has its result, and its images would have to be downloaded."""
    run = _config_in(folder)
    by_table = isinstance(run, SearchConfig) and run.searcher.by_table  # A table needs no images.
    if run.task != task or by_table:
        return False
    result = folder / (MODEL if isinstance(run, RetrainConfig) else GENOTYPE)
    return result.exists() and is_absent(run.images.name, run.images.root)


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
        raise UserError(for_another_task(type(config).__name__, config.task, task))
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


def default_training(data: str | None, genotype: Genotype | None = None) -> str:
    """The recipe of a training of these cells on these images, if none is named.

    Cells of residual networks, such as `pictures` finds, need one that chooses their number.
    """
    own = data is not None and data.partition(":")[0] in ("folder", "npz")
    residual = genotype is not None and genotype.shape.network == "residual"
    return "retrain-pictures" if own or residual else "retrain-quick"


def _existing(name: str, what: str, names: list[str]) -> Path:
    if not exists(name):
        raise UserError(f"no {what} and no file is called '{name:.200}'." + suggestion(name, names))
    return Path(name)
