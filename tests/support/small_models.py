"""Small models to export: as if they were trained, with logits of ordinary size."""

import torch
from torch import Tensor, nn

from prnas.models.card import ModelCard
from prnas.models.model import Model, network_of
from prnas.space.genotype import Cell, Edge, Genotype
from prnas.space.operations import Conv, Conv1x7x1, Pool, Skip

# Few operations, but all of them: exporters take their time for each.
SMALL = Genotype(
    Cell(((Edge(0, Conv(3, 2, (2,))), Edge(1, Skip())),), (2,)),
    Cell(
        ((Edge(0, Pool("max")), Edge(1, Skip())), (Edge(0, Pool("avg")), Edge(2, Conv(5)))), (3, 2)
    ),
)
ROWS = Genotype(
    Cell(((Edge(1, Conv1x7x1()), Edge(1, Pool("avg", 5))),), (2,), repeated_inputs=True),
    Cell(((Edge(0, Conv1x7x1()), Edge(1, Conv(3, 3))), (Edge(0, Skip()), Edge(2, Skip()))), (2, 3)),
)


def card(**changes: object) -> ModelCard:
    fields: dict[str, object] = {
        "genotype": SMALL,
        "channels": 4,
        "cells": 3,
        "input_shape": (1, 8, 8),
        "class_names": ("no", "yes", '"maybe"'),
        "mean": (0.25,),
        "std": (0.5,),
        "config": {"seed": 1},
    }
    return ModelCard(**(fields | changes))  # pyright: ignore[reportArgumentType]


def colour_card(**changes: object) -> ModelCard:
    colours = {"input_shape": (3, 16, 16), "mean": (0.5, 0.25, 0.1), "std": (0.5, 0.3, 0.2)}
    return card(**(colours | changes))


def trained(model_card: ModelCard) -> Model:
    """Every parameter and every statistic of BN differs from what it would be by itself."""
    network = network_of(model_card)
    generator = torch.Generator().manual_seed(1)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.weight.data.uniform_(0.5, 1.5, generator=generator)
            module.bias.data.uniform_(-0.5, 0.5, generator=generator)
            module.momentum = 0.9
    with torch.no_grad():
        for _ in range(2):
            network(torch.randn(8, *model_card.input_shape, generator=generator))
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 0.1
    return Model(network, model_card).eval()


def some_pixels(model_card: ModelCard, batch: int = 2) -> Tensor:
    return torch.rand(batch, *model_card.input_shape, generator=torch.Generator().manual_seed(7))


def logits_of(model: Model, pixels: Tensor) -> Tensor:
    with torch.no_grad():
        return model(pixels)
