"""The draft of a training's config, from cells, a recipe and images. Light: without torch."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prnas.config.overrides import typed_overrides
from prnas.config.retrain import RetrainConfig
from prnas.config.undecided import AUTO, Draft
from prnas.runs import named

# Keys of the data section that a training inherits from the search whose cells it trains, unless
# its recipe chooses them by the images; a recipe that does takes all images, too.
INHERITED = (
    *("name", "root", "test_share", "broken", "storage", "workers"),
    *("flip", "padding_color"),
)
INHERITED_SIZES = ("image_size", "images", "crop_padding")


def training_draft(
    trainable: named.Trainable,
    config: RetrainConfig | str | Path | None,
    data: str | None,
    overrides: Sequence[str],
    network: Mapping[str, Any] | None = None,
) -> tuple[str, Draft[RetrainConfig]]:
    """The name of the recipe, and what it and the overrides say of a training.

    Without a config and other `data`, the images are those of the run that the cells come from.
    `network` has keys of that section which a model to start from decides.
    """
    inherited = trainable.data if config is None and data is None else None
    given = config
    if given is None:
        given = named.default_training(inherited["name"] if inherited else data, trainable.genotype)
    draft = named.draft_of(given, (), RetrainConfig)
    settings = trainable.put_into(draft.to_data())
    if trainable.any_size and "network.cells" in draft.open:
        settings["network"]["cells"] = AUTO  # The images decide the number of blocks.
    if inherited:
        keys = INHERITED if draft.open else (*INHERITED, *INHERITED_SIZES)
        settings["data"] |= {key: inherited[key] for key in keys}
    settings["network"] |= network or {}
    changes = [*overrides, *typed_overrides({"data.name": data})]
    name = "retrain" if isinstance(given, RetrainConfig) else Path(given).stem
    return name, named.honestly_described(RetrainConfig.draft(settings, changes))
