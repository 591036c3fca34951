"""Models on disk: what is loaded is what was saved, or a message says why not."""

import hashlib
import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

import prnas
from prnas.io.errors import UserError
from prnas.models import model as module
from prnas.models.card import ModelCard
from prnas.models.model import CARD, FOLDER, WEIGHTS, Model, load, save_model
from prnas.nets.network import Network
from prnas.space import zoo


def card(**changes: object) -> ModelCard:
    fields: dict[str, object] = {
        "genotype": zoo.get("pr-darts-dl1"),
        "channels": 4,
        "cells": 3,
        "input_shape": (1, 8, 8),
        "class_names": ("no", "yes", "<maybe>"),
        "mean": (0.25,),
        "std": (0.5,),
        "results": {"test_error": 0.5},
    }
    return ModelCard(**(fields | changes))  # pyright: ignore[reportArgumentType]


@pytest.fixture
def trained() -> Model:
    known = card()
    assert known.genotype is not None
    network = prnas.build(known.genotype, 4, 3, 3, input_channels=1, auxiliary=True)
    generator = torch.Generator().manual_seed(1)
    for tensor in network.state_dict().values():  # statistics of BN, too
        if tensor.is_floating_point():
            tensor.uniform_(0.1, 1.0, generator=generator)
    return Model(network, known).eval()


def logits(model: Model) -> torch.Tensor:
    images = torch.rand(2, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        return model(images)


@pytest.mark.parametrize("which", ["", FOLDER, f"{FOLDER}/{WEIGHTS}", f"{FOLDER}/{CARD}"])
def test_a_loaded_model_is_the_saved_one(tmp_path: Path, trained: Model, which: str) -> None:
    save_model(tmp_path / FOLDER, trained.network, trained.card)
    again = prnas.load(tmp_path / which)
    assert again.card == trained.card
    assert not again.training
    assert torch.equal(logits(again), logits(trained))
    assert isinstance(again.network, Network)
    assert again.network.auxiliary is None


def test_normalisation_is_inside(trained: Model) -> None:
    images = torch.rand(2, 1, 8, 8)
    with torch.no_grad():
        assert torch.equal(trained(images), trained.network((images - 0.25) / 0.5))


@pytest.mark.parametrize("name", [WEIGHTS, CARD])
def test_a_flipped_bit_never_passes(tmp_path: Path, trained: Model, name: str) -> None:
    save_model(tmp_path, trained.network, trained.card)
    whole = (tmp_path / name).read_bytes()
    for place in range(0, len(whole), -(-len(whole) // 97)):
        data = bytearray(whole)
        data[place] ^= 1 << place % 8
        (tmp_path / name).write_bytes(data)
        with pytest.raises(UserError):
            load(tmp_path)
    (tmp_path / name).write_bytes(whole)
    assert load(tmp_path).card == trained.card


def test_a_card_that_was_changed_on_purpose(tmp_path: Path, trained: Model) -> None:
    save_model(tmp_path, trained.network, trained.card)
    data = json.loads((tmp_path / CARD).read_text(encoding="utf-8"))
    data["class_names"][0] = "renamed"
    (tmp_path / CARD).write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(UserError, match="delete the line with card_sha256"):
        load(tmp_path)
    del data["card_sha256"]
    (tmp_path / CARD).write_text(json.dumps(data), encoding="utf-8")
    assert load(tmp_path).class_names[0] == "renamed"


def test_what_is_no_model_is_refused(tmp_path: Path, trained: Model) -> None:
    with pytest.raises(UserError, match="is not a trained model"):
        load(tmp_path)
    with pytest.raises(UserError, match="is not a trained model"):
        load("a\0b")
    save_model(tmp_path, trained.network, trained.card)
    (tmp_path / CARD).write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="not a text file"):
        load(tmp_path)


def test_weights_of_another_network_are_refused(tmp_path: Path, trained: Model) -> None:
    save_model(tmp_path, trained.network, card(channels=6))
    with pytest.raises(UserError, match="does not hold the weights"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cells": "3"}, "cells"),
        ({"mean": [0.1, 0.2]}, "mean must have 1 values"),
        ({"std": [0.0]}, "std"),
        ({"class_names": []}, "class_names"),
        ({"version": 2}, "version"),
        ({"format": "other"}, "format"),
        ({"weights_sha256": "abc"}, "weights_sha256"),
        ({"surprise": 1}, "unknown key"),
        ({"stem": "imagenet", "channels": 5}, "even"),
        ({"genotype": {}}, "genotype"),
    ],
)
def test_a_wrong_card_is_refused_with_its_place(
    tmp_path: Path, trained: Model, changes: dict[str, object], said: str
) -> None:
    save_model(tmp_path, trained.network, trained.card)
    data = json.loads((tmp_path / CARD).read_text(encoding="utf-8"))
    (tmp_path / CARD).write_text(json.dumps(data | changes), encoding="utf-8")
    with pytest.raises(UserError, match=said):
        load(tmp_path)


def forged(folder: Path, model: Model, **changes: object) -> Path:
    """A card that says other things, of weights that are whole."""
    save_model(folder, model.network, model.card)
    data = json.loads((folder / CARD).read_text(encoding="utf-8"))
    del data["card_sha256"]
    (folder / CARD).write_text(json.dumps(data | changes), encoding="utf-8")
    return folder


def test_a_card_cannot_ask_for_all_memory(
    tmp_path: Path, trained: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = forged(tmp_path / "network", trained, channels=10_000, cells=200)
    monkeypatch.setattr(module, "build", lambda *_, **__: pytest.fail("it was built"))
    with pytest.raises(UserError, match="does not hold the weights"):
        load(folder)
    for side in (1_200, 100_000):  # with few channels a network is small, its images are not
        folder = forged(tmp_path / f"images-{side}", trained, input_shape=[1, side, side])
        with pytest.raises(UserError, match="input_shape"):
            load(folder)


@pytest.mark.parametrize("dtype", ["F4", "C64", "F64"])
def test_weights_of_other_types_are_refused(tmp_path: Path, trained: Model, dtype: str) -> None:
    save_model(tmp_path, trained.network, trained.card)
    raw = (tmp_path / WEIGHTS).read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    if dtype == "F64":
        tensors = {key: one.double() for key, one in load_tensors(raw).items()}
        raw = save_tensors(tensors)
    else:
        text = json.dumps({"x": {"dtype": dtype, "shape": [2, 8], "data_offsets": [0, 8]}}).encode()
        raw = len(text).to_bytes(8, "little") + text + bytes(8)
        assert "x" not in header
    (tmp_path / WEIGHTS).write_bytes(raw)
    data = json.loads((tmp_path / CARD).read_text(encoding="utf-8"))
    data["weights_sha256"] = hashlib.sha256(raw).hexdigest()
    del data["card_sha256"]
    (tmp_path / CARD).write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(UserError, match=r"cannot be read|does not hold"):
        load(tmp_path)


@pytest.mark.parametrize("name", [WEIGHTS, CARD])
def test_pipes_are_not_waited_for(tmp_path: Path, trained: Model, name: str) -> None:
    save_model(tmp_path, trained.network, trained.card)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(UserError):
        load(tmp_path)


@pytest.mark.parametrize("known", [True, False])
def test_a_file_with_a_hole_is_refused_before_it_fills_the_memory(
    tmp_path: Path, trained: Model, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """By its size, or, where that could be, by its checksum."""
    if not known:
        monkeypatch.setattr(module, "_MOST_HEADER", 2**40)
    save_model(tmp_path, trained.network, trained.card)
    with (tmp_path / WEIGHTS).open("wb") as file:
        file.truncate(3 * 2**28)
    read = Path.read_bytes
    monkeypatch.setattr(
        Path,
        "read_bytes",
        lambda path: pytest.fail("it was read") if path.name == WEIGHTS else read(path),
    )
    with pytest.raises(UserError, match="another checksum"):
        load(tmp_path)
