"""The weights that a training starts with: fresh ones, or those of a model trained before."""

from pathlib import Path
from typing import Any

from torch import Tensor, nn

from prnas.config.retrain import PLAIN, RetrainConfig
from prnas.data.dataset import DataSet
from prnas.io.errors import UserError
from prnas.models.card import ModelCard
from prnas.models.model import load_verified, read_card
from prnas.runs.records import StartedFrom

CLASSIFIER, AUXILIARY = "classifier", "auxiliary"
SIZES = ("kind", "channels", "cells", "stem", "output")  # Keys of the network that a card has too.


def network_keys(path: Path | str) -> tuple[ModelCard, dict[str, Any]]:
    """The card of a model to start from, and the config's section `network` that fits it."""
    card = read_card(path)
    plain = {} if card.kind == "cells" else PLAIN
    return card, plain | {name: getattr(card, name) for name in SIZES} | {"start_from": str(path)}


def read_start(
    config: RetrainConfig, data: DataSet
) -> tuple[dict[str, Tensor], StartedFrom] | None:
    """The weights that a training starts with, by name; none if all are fresh.

    A `UserError` says what does not fit. Nothing is unpickled: see `prnas.models.model.load`.
    """
    path = config.network.start_from
    if path is None:
        return None
    model, checksum = load_verified(Path(path))
    card = model.card
    if problems := _problems(config, data, card):
        raise UserError(f"cannot start with the weights of {path:.200}: {'; '.join(problems)}")
    new = [AUXILIARY] if config.network.auxiliary_weight > 0 else []  # No model is saved with it.
    if card.class_names != data.class_names:
        new.insert(0, CLASSIFIER)
    weights = {
        name: tensor
        for name, tensor in model.network.state_dict().items()
        if name.partition(".")[0] not in new
    }
    return weights, StartedFrom(model=path, weights_sha256=checksum, new=new)


def take_weights(network: nn.Module, config: RetrainConfig, data: DataSet) -> StartedFrom | None:
    """Give a new network the weights that its training starts with; say whose these are."""
    start = read_start(config, data)
    if start is None:
        return None
    weights, origin = start
    network.load_state_dict(network.state_dict() | weights)
    return origin


def _problems(config: RetrainConfig, data: DataSet, card: ModelCard) -> list[str]:
    problems: list[str] = []
    if card.kind == config.network.kind and card.genotype != config.genotype:
        problems.append("its cells are others than those to train")
    for name in SIZES:
        ours, theirs = getattr(config.network, name), getattr(card, name)
        if ours != theirs:
            problems.append(f"it has network.{name} {theirs}, this training {ours}")
    if card.input_shape[0] != data.shape[0]:
        problems.append(
            f"it takes images of {card.input_shape[0]} channels, {data.name:.200} has those of "
            f"{data.shape[0]}"
        )
    return problems
