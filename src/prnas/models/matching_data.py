"""The images for a model: those that it was trained on, or others that fit it."""

from collections.abc import Sequence
from typing import Any, cast

from pydantic import TypeAdapter

from prnas.config.search import DataConfig
from prnas.data.catalog import ABOUT, check_name
from prnas.data.dataset import DataSet
from prnas.io.errors import FormatError, UserError
from prnas.io.paths import exists, expanded, is_folder
from prnas.io.reading import validated
from prnas.models.card import ModelCard

# The other keys of a data section concern training: augmentation and splits.
KEYS = ("name", "root", "image_size", "test_share", "broken", "storage", "workers")
_MOST_NAMED = 5  # Number of classes that a message names.
_ADAPTER = TypeAdapter(DataConfig)


def data_settings(
    card: ModelCard, name: str | None = None, root: str | None = None
) -> dict[str, Any]:
    """The images for a model, as the data section of a config.

    By default the set of its training, with the same test part; `name` and `root` replace it. The
    size of the images is always the model's.
    """
    section = cast(Any, card.config.get("data"))
    trained: dict[str, Any] = section if isinstance(section, dict) else {}
    settings = {key: trained[key] for key in KEYS if key in trained}
    if name is not None:
        settings["name"] = name
    elif isinstance(trained_on := settings.get("name"), str):
        kind, _, path = trained_on.partition(":")
        if kind in ("folder", "npz") and path and not exists(expanded(path)):
            raise UserError(
                f"the model was trained on {trained_on:.200}, which is not here: name it by --data "
                f"{kind}:PATH"
            )
    else:
        raise UserError(
            "the model's card does not name the data of its training: name a set by --data"
        )
    if root is not None:
        settings["root"] = root
    elif isinstance(path := settings.get("root"), str) and not is_folder(expanded(path)):
        del settings["root"]  # A folder of another computer: the default one is tried.
    _, height, width = card.input_shape
    settings["image_size"] = height if height == width else None
    return {**DataConfig().model_dump(include=set(KEYS)), **settings}


def data_config(card: ModelCard, settings: dict[str, Any]) -> DataConfig:
    """The settings as a config, checked as far as possible before images are read."""
    try:
        config = validated(_ADAPTER, settings, "data")
    except FormatError as error:
        raise UserError(f"data: {error}") from None
    check_name(config.name)
    channels, height, width = card.input_shape
    if config.name.startswith("folder:") and height != width:
        raise UserError(
            f"the model takes images of {width}x{height}, and those of a folder become squares: "
            "test it on an npz file of such images"
        )
    about = ABOUT.get(config.name)
    if about is not None:
        if about.classes != card.num_classes:
            raise UserError(
                f"{config.name} has {about.classes} classes, the model {card.num_classes}: "
                f"{_listed(card.class_names)}"
            )
        if about.shape[0] != channels:
            raise UserError(
                f"{config.name} has {_kind(about.shape[0])} images, the model takes "
                f"{_phrase(card.input_shape)}"
            )
    return config


def check_fit(card: ModelCard, data: DataSet) -> None:
    """A `UserError` that says what differs, if the model is not for such images and classes."""
    if data.shape != card.input_shape:
        raise UserError(
            f"{data.name} has {_phrase(data.shape)}, the model takes {_phrase(card.input_shape)}"
        )
    ours, theirs = card.class_names, data.class_names
    if ours == theirs:
        return
    our_set, their_set = set(ours), set(theirs)
    missing = [name for name in ours if name not in their_set]
    strange = [name for name in theirs if name not in our_set]
    if missing or strange:
        differences = [f"only the model has {_listed(missing)}"] if missing else []
        differences += [f"only the data has {_listed(strange)}"] if strange else []
        raise UserError(f"{data.name} has other classes than the model: {'; '.join(differences)}")
    if len(ours) != len(theirs):
        raise UserError(f"{data.name} has {len(theirs)} classes, the model {len(ours)}")
    number = next(index for index, name in enumerate(ours) if name != theirs[index])
    raise UserError(
        f"{data.name} has the model's classes in another order: class {number} is "
        f"'{ours[number]:.60}' for the model, '{theirs[number]:.60}' in the data"
    )


def _phrase(shape: tuple[int, int, int]) -> str:
    channels, height, width = shape
    return f"{_kind(channels)} images of {width}x{height}"


def _kind(channels: int) -> str:
    return {1: "grey", 3: "colour"}.get(channels, f"{channels}-channel")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name:.60}'" for name in names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown
