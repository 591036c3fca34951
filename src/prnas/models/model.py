"""A trained model in memory and on disk: safetensors and JSON, nothing that runs code."""

import hashlib
import os
from pathlib import Path

import torch
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from prnas.io.atomic import write_atomically
from prnas.io.checked_files import read_file, read_verified, tensors_in
from prnas.io.errors import UserError, cannot, reading
from prnas.io.paths import is_file, is_folder
from prnas.models.card import ModelCard
from prnas.models.names import CARD, FOLDER, WEIGHTS
from prnas.nets.network import Network, build
from prnas.nets.resnet import ResNet, build_resnet
from prnas.space.network_size import NetworkSize, network_size
from prnas.space.resnet import resnet_size

TrainedNetwork = Network | ResNet
MOST_CARD_BYTES = 16_000_000
_MOST_HEADER, _MOST_RATIO = 2**26, 64  # bytes of a weights file, and for each parameter


class Model(nn.Module):
    """A network with what it needs to be used: normalisation and names of the classes.

    `model(images)` takes pixels from 0 to 1, n x C x H x W, and gives logits; `model.network` takes
    normalised images.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, network: TrainedNetwork, card: ModelCard) -> None:
        super().__init__()
        self.network, self.card = network, card
        self.register_buffer("mean", torch.tensor(card.mean)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(card.std)[:, None, None], persistent=False)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the logits."""
        return self.card.class_names

    def forward(self, images: Tensor) -> Tensor:
        """Logits of pixels from 0 to 1."""
        return self.network((images - self.mean) / self.std)


def network_of(card: ModelCard) -> TrainedNetwork:
    """The card's network, its weights still to be filled in; without an auxiliary head."""
    sizes, channels = (card.channels, card.cells, card.num_classes), card.input_shape[0]
    if card.genotype is None:
        return build_resnet(*sizes, input_channels=channels)
    looks = {"stem": card.stem, "output": card.output}
    return build(card.genotype, *sizes, **looks, input_channels=channels)  # pyright: ignore[reportArgumentType]


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    """All tensors on the CPU, in single precision, without the head that only training needs."""
    return {
        name: (tensor.float() if tensor.is_floating_point() else tensor).detach().cpu().contiguous()
        for name, tensor in network.state_dict().items()
        if not name.startswith("auxiliary.")
    }


def save_model(folder: Path, network: nn.Module, card: ModelCard) -> None:
    """Write `model.safetensors` and `model.json` into a folder, which is made if need be."""
    data = save_tensors(weights_of(network), {"format": "pt"})
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / WEIGHTS, data)
    write_atomically(folder / CARD, card.dumps(hashlib.sha256(data).hexdigest()).encode())


def is_saved(folder: Path, network: nn.Module, card: ModelCard) -> bool:
    """Whether a folder holds this very model, undamaged.

    The config in its card may be as an older release wrote it, without fields that came later.
    """
    try:
        saved = load(folder)
    except UserError:
        return False
    weights, theirs = weights_of(network), saved.network.state_dict()
    return (
        saved.card.model_copy(update={"config": card.config}) == card
        and _shapes(weights) == _shapes(theirs)
        and all(torch.equal(weights[name], theirs[name]) for name in weights)
    )


def _model_files(path: Path) -> tuple[Path, Path]:
    """The weights and the card of a model; `path` is what `load` takes."""
    pairs = [(folder / WEIGHTS, folder / CARD) for folder in (path, path / FOLDER)]
    if path.name in (WEIGHTS, CARD) and is_file(path):
        return path.with_name(WEIGHTS), path.with_name(CARD)
    if path.suffix in (".safetensors", ".json"):
        pairs.insert(0, (path.with_suffix(".safetensors"), path.with_suffix(".json")))
    for weights, card in pairs:
        if is_file(weights) and is_file(card):
            return weights, card
    if is_folder(path) and any(path.glob("seed-*")):
        raise UserError(f"{path} holds the trainings of several seeds; choose one of its folders")
    raise UserError(
        f"{path!s:.200} is not a trained model. Expected a folder with {CARD} and {WEIGHTS}, or "
        f"the folder of a finished training, which has them in {FOLDER}{os.sep}"
    )


def load(path: Path | str) -> Model:
    """A trained model, in evaluation mode, by its folder, one of its files, or a run's folder."""
    return load_verified(path)[0]


def read_card(path: Path | str) -> ModelCard:
    """The card of a trained model; `path` is what `load` takes."""
    return _read_card(_model_files(Path(path))[1])[0]


def _read_card(file: Path) -> tuple[ModelCard, str]:
    with reading(file):
        return ModelCard.loads(read_file(file, MOST_CARD_BYTES).decode())


def load_verified(path: Path | str) -> tuple[Model, str]:
    """A model as by `load`, and the checksum of its weights."""
    weights_file, card_file = _model_files(Path(path))
    card, checksum = _read_card(card_file)
    with cannot(f"read {weights_file}"):
        most = _MOST_HEADER + _MOST_RATIO * num_parameters(card)
        data = read_verified(weights_file, checksum, most)
    if data is None:
        raise UserError(
            f"{weights_file} is damaged, or of another model: {card_file.name} has another checksum"
        )
    try:
        tensors = tensors_in(data)
    except ValueError as error:
        raise UserError(f"{weights_file} cannot be read: {error}") from None
    # A card of a few lines may ask for a network that no memory holds: it is built last.
    large_enough = num_parameters(card) <= sum(tensor.numel() for tensor in tensors.values())
    network = network_of(card) if large_enough else None
    if network is None or _shapes(tensors) != _shapes(network.state_dict()):
        raise UserError(
            f"{weights_file} does not hold the weights of the network in {card_file.name}"
        )
    network.load_state_dict(tensors)
    return Model(network, card).eval(), checksum


def _shapes(tensors: dict[str, Tensor]) -> dict[str, tuple[torch.Size, torch.dtype]]:
    return {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()}


def num_parameters(card: ModelCard) -> int:
    return size_of(card, 1).parameters


def size_of(card: ModelCard, image_size: int | tuple[int, int] | None = None) -> NetworkSize:
    """The size of the card's network, for images of its own size unless another is given."""
    sizes = (card.channels, card.cells, card.num_classes)
    channels, height, width = card.input_shape
    pixels = (height, width) if image_size is None else image_size
    if card.genotype is None:
        return resnet_size(*sizes, input_channels=channels, image_size=pixels)
    return network_size(
        card.genotype,
        *sizes,
        stem=card.stem,
        output=card.output,
        input_channels=channels,
        image_size=pixels,
    )
