"""What a training is told: cells, a recipe, images. Light: it imports no torch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prnas.config.overrides import typed_overrides
from prnas.config.retrain import RetrainConfig
from prnas.config.undecided import Draft
from prnas.runs import named
from prnas.space.genotype import Genotype

# Keys of the data section that a training inherits from the search whose cells it trains, unless
# its recipe chooses them by the images; a recipe that does takes all images, too.
INHERITED = (
    *("name", "root", "test_share", "broken", "storage", "workers"),
    *("flip", "padding_color"),
)
INHERITED_SIZES = ("image_size", "images", "crop_padding")


def training_draft(
    cells: Genotype,
    searched: dict[str, Any] | None,
    config: RetrainConfig | str | Path | None,
    data: str | None,
    overrides: Sequence[str],
) -> tuple[str, Draft[RetrainConfig]]:
    """The name of the recipe, and what it and the overrides say of the training of these cells.

    Without a config and other `data`, the images are those of the search that found the cells:
    `searched`, the data section of its config.
    """
    inherited = searched if config is None and data is None else None
    given = config
    if given is None:
        given = named.default_training(inherited["name"] if inherited else data)
    draft = named.draft_of(given, (), RetrainConfig)
    whole = draft.to_data() | {"genotype": cells.to_json()}
    if inherited:
        keys = INHERITED if draft.open else (*INHERITED, *INHERITED_SIZES)
        whole["data"] |= {key: inherited[key] for key in keys}
    changes = [*overrides, *typed_overrides({"data.name": data})]
    name = "retrain" if isinstance(given, RetrainConfig) else Path(given).stem
    return name, named.honestly_described(RetrainConfig.draft(whole, changes))
