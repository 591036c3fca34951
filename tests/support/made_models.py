"""Tiny models with odd weights, for tests."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from prnas.models.card import ModelCard
from prnas.models.model import Model, load, network_of, save_model
from prnas.space import zoo

DIGITS = tuple(map(str, range(10)))


def card(**changes: Any) -> ModelCard:
    """For the embedded digits, if nothing is changed."""
    fields: dict[str, Any] = {
        "genotype": zoo.get("pr-darts-dl1"),
        "channels": 2,
        "cells": 3,
        "input_shape": (1, 8, 8),
        "class_names": DIGITS,
        "mean": (0.3,) * changes.get("input_shape", (1,))[0],
        "std": (0.4,) * changes.get("input_shape", (1,))[0],
        "config": {"data": {"name": "digits"}},
    }
    return ModelCard(**(fields | changes))


def save_tiny(folder: Path, **changes: Any) -> Path:
    """An untrained model that yet guesses various classes: its statistics are those of images."""
    model_card = card(**changes)
    network = network_of(model_card)
    generator = torch.Generator().manual_seed(0)
    channels, height, width = model_card.input_shape
    coarse = torch.randn(64, channels, 3, 3, generator=generator)
    images = nn.functional.interpolate(coarse, size=(height, width), mode="bilinear")
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None  # the mean of all that is seen
    with torch.no_grad():
        network.train()(images)
        logits = network.eval()(images)
        network.classifier.bias -= logits.mean(0)
        network.classifier.weight *= 3
    save_model(folder, network, model_card)
    return folder


def tiny(folder: Path, **changes: Any) -> Model:
    return load(save_tiny(folder, **changes))
