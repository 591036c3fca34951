"""Predictions: the right files, read as in training, with the network's probabilities."""

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from prnas.data.image_files import read_picture
from prnas.io.errors import UserError
from prnas.models.model import Model
from prnas.models.predict import ClassScore, Prediction, find_images, predict, predict_each
from tests.support.made_data import picture
from tests.support.made_models import tiny

NAMES = ("ant", "bee", "cow", "dog")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("models")
    return tiny(folder, class_names=NAMES, input_shape=(3, 12, 12))


def by_hand(model: Model, path: Path) -> dict[str, float]:
    channels, height, _ = model.card.input_shape
    pixels = torch.from_numpy(np.array(read_picture(path, height, channels)))
    with torch.no_grad():
        values = model(pixels[None] / 255)[0].softmax(0).tolist()
    return dict(zip(model.class_names, values, strict=True))


@pytest.mark.parametrize("batch", [1, 4, 64])
def test_predictions_are_the_network_s_probabilities(
    model: Model, tmp_path: Path, batch: int
) -> None:
    kinds = ["a.png", "b.jpg", "c.bmp", "d.gif", "e.webp", "f.png", "g.tif"]
    paths = [picture(tmp_path / name, seed) for seed, name in enumerate(kinds)]
    found = predict(model, paths, top=4, batch=batch)
    assert [one.path for one in found.predictions] == paths
    assert (found.broken, found.ignored) == ((), 0)
    firsts = set()
    for path, prediction in zip(paths, found.predictions, strict=True):
        expected = by_hand(model, path)
        shown = {one.name: one.probability for one in prediction.classes}
        assert shown == pytest.approx(expected, abs=1e-6)
        order = [one.probability for one in prediction.classes]
        assert order == sorted(order, reverse=True)
        assert sum(order) == pytest.approx(1)
        firsts.add(prediction.classes[0].name)
    assert len(firsts) > 1, "a dull model tests little"


def test_as_many_classes_as_asked_for_and_as_there_are(model: Model, tmp_path: Path) -> None:
    path = picture(tmp_path / "a.png")
    every = predict(model, path, top=99).predictions[0].classes
    assert {one.name for one in every} == set(NAMES)
    assert predict(model, str(path)).predictions[0].classes == every[:1]
    assert predict(model, [path], top=2).predictions[0].classes == every[:2]
    with pytest.raises(UserError, match="1 or more, got 0"):
        predict(model, path, top=0)


def test_equal_logits_are_shown_in_the_order_of_the_classes(tmp_path: Path) -> None:
    model = tiny(tmp_path / "m", class_names=NAMES, input_shape=(3, 12, 12))
    with torch.no_grad():
        model.network.classifier.weight.zero_()
        model.network.classifier.bias.zero_()
    prediction = predict(model, picture(tmp_path / "a.png"), top=3).predictions[0]
    assert prediction.classes == tuple(ClassScore(name, 0.25) for name in NAMES[:3])
    assert prediction.to_json()["classes"][1] == {"name": "bee", "probability": 0.25}


def test_folders_are_searched_in_order(tmp_path: Path) -> None:
    root = tmp_path / "all"
    names = ["b.png", "a.png", "in/z.PNG", "in/deep/a.jpg", ".hidden/a.png", ".a.png"]
    for name in names:
        picture(root / name)
    (root / "notes.txt").write_text("x")
    (root / "in" / "README").write_text("x")
    os.mkfifo(root / "in" / "pipe.png")
    (root / "loop").symlink_to(root, target_is_directory=True)
    (root / "link.png").symlink_to(root / "a.png")
    extra = tmp_path / "not-an-image.txt"
    found = find_images([extra, root])
    assert [path.relative_to(tmp_path).as_posix() for path in found.paths] == [
        "not-an-image.txt",  # named by a person: then it is tried
        "all/a.png",
        "all/b.png",
        "all/link.png",
        "all/in/z.PNG",
        "all/in/deep/a.jpg",
    ]
    assert (found.ignored, found.broken) == (3, ())


def test_what_is_broken_does_not_stop_the_others(model: Model, tmp_path: Path) -> None:
    good = picture(tmp_path / "c.png")
    text, missing, cut = tmp_path / "a.png", tmp_path / "b.png", tmp_path / "d.jpg"
    text.write_text("no image")
    cut.write_bytes(picture(tmp_path / "whole.jpg").read_bytes()[:300])
    strange = tmp_path / ("x" * 400)
    found = predict(model, [text, missing, good, cut, strange, good], batch=2)
    assert [one.path for one in found.predictions] == [good, good]
    assert [one.path for one in found.broken] == [text, missing, cut, strange]
    assert "no known image format" in str(found.broken[0])
    assert "No such file" in str(found.broken[1])
    nothing = predict(model, [text, missing])
    assert (nothing.predictions, len(nothing.broken)) == ((), 2)
    assert predict(model, []).predictions == ()


def test_a_closed_folder_is_named(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture(tmp_path / "a" / "1.png")
    picture(tmp_path / "b" / "2.png")
    scan = os.scandir

    def refuse(path: Any) -> Any:
        if Path(path).name == "a":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = predict(model, tmp_path)
    assert [one.path.name for one in found.predictions] == ["2.png"]
    assert [str(one) for one in found.broken] == [
        f"{tmp_path / 'a'} cannot be read as an image: Permission denied"
    ]


def test_predictions_come_one_after_the_other(model: Model, tmp_path: Path) -> None:
    good, bad = picture(tmp_path / "a.png"), tmp_path / "b.png"
    shown: list[tuple[str, int, int]] = []
    predict(model, [good, bad], progress=lambda *one: shown.append(one))
    assert shown == [("looking at images", 1, 2), ("looking at images", 2, 2)]
    stream = predict_each(model, [good, bad, good], batch=1)
    assert isinstance(next(stream), Prediction)
    assert not isinstance(next(stream), Prediction)


def test_images_become_what_the_model_takes(tmp_path: Path) -> None:
    grey = tiny(tmp_path / "grey", class_names=NAMES, input_shape=(1, 8, 8))
    coloured = picture(tmp_path / "a.png", 3)
    expected = by_hand(grey, coloured)
    prediction = predict(grey, coloured, top=4).predictions[0]
    assert {one.name: one.probability for one in prediction.classes} == pytest.approx(expected)
    wide = tiny(tmp_path / "wide", class_names=NAMES, input_shape=(3, 6, 10))
    pixels = np.random.default_rng(1).integers(0, 256, (6, 10, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "exact.png")
    with torch.no_grad():
        image = torch.from_numpy(pixels.transpose(2, 0, 1).copy())[None] / 255
        values = wide(image)[0].softmax(0).tolist()
    prediction = predict(wide, tmp_path / "exact.png", top=4).predictions[0]
    assert {one.name: one.probability for one in prediction.classes} == pytest.approx(
        dict(zip(NAMES, values, strict=True)), abs=1e-6
    )
    assert predict(wide, coloured).predictions  # any other size is cut and scaled
    four = tiny(tmp_path / "four", class_names=NAMES, input_shape=(4, 8, 8))
    with pytest.raises(UserError, match="4 channels; those in image files are grey"):
        predict(four, coloured)


def test_a_model_in_training_mode_predictions_the_same(model: Model, tmp_path: Path) -> None:
    path = picture(tmp_path / "a.png")
    expected = predict(model, path)
    model.train()
    try:
        assert predict(model, path) == expected
        assert model.training
    finally:
        model.eval()
