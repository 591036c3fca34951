"""The network that the training after a search will have."""

from prnas.config.search import SearchConfig
from prnas.data.survey import shape_and_classes
from prnas.io.errors import FormatError, UserError
from prnas.runs.named import Trainable, settle
from prnas.runs.records import NextTraining
from prnas.runs.training_draft import training_draft
from prnas.space.genotype import Genotype
from prnas.space.network_size import network_size


def next_training(
    genotype: Genotype, config: SearchConfig, shape: tuple[int, int, int], classes: int
) -> NextTraining | None:
    """The size of the network that `prnas retrain RUN` will train, if it can be known.

    `shape` is that of the search's images: channels, height, width.
    """
    trainable = Trainable(genotype, {"kind": "cells"}, config.data.model_dump())
    try:
        _, draft = training_draft(trainable, None, None, ())
        training = settle(draft).config
        if training.data.image_size != config.data.image_size:
            shape, _ = shape_and_classes(training.data)
    except (UserError, FormatError, OSError):  # Cells of another shape, images that are gone.
        return None
    network = training.network
    channels, height, width = shape
    size = network_size(
        genotype,
        network.channels,
        network.cells,
        classes,
        stem=network.stem,
        output=network.output,
        input_channels=channels,
        image_size=(height, width),
    )
    return NextTraining(
        parameters=size.parameters,
        macs=size.macs,
        channels=network.channels,
        cells=network.cells,
        classes=classes,
        image=[height, width],
    )
