"""Testing a model: the same numbers as image by image, on the right images, or a clear refusal."""

import copy
import json
import math
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from prnas.config.search import DataConfig
from prnas.data.dataset import DataSet, InMemory, load
from prnas.io.errors import UserError
from prnas.models import evaluate as room
from prnas.models.evaluate import Evaluation, evaluate
from prnas.models.inference import choose_device
from prnas.models.matching_data import check_fit, data_config, data_settings
from prnas.models.model import Model
from tests.support.made_data import images, picture_folder
from tests.support.made_models import DIGITS, card, tiny

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def digits() -> DataSet:
    return load(DataConfig(name="digits"), CPU)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return tiny(tmp_path_factory.mktemp("made") / "model")


@pytest.fixture
def model(made: Model) -> Model:
    return copy.deepcopy(made)


def quick(model: Model, data: DataSet | str | None = None, **options: Any) -> Evaluation:
    return evaluate(model, data, speed=False, **options)


def one_by_one(model: Model, pixels: Tensor, labels: Tensor) -> dict[str, Any]:
    """The textbook: one image, one number at a time."""
    classes = len(model.class_names)
    matrix = [[0] * classes for _ in range(classes)]
    in_five, losses = 0, []
    for image, label in zip(pixels, labels.tolist(), strict=True):
        with torch.no_grad():
            logits = model(image[None] / 255)[0].double().tolist()
        order = sorted(range(classes), key=lambda one, logits=logits: (-logits[one], one))
        matrix[label][order[0]] += 1
        in_five += label in order[:5]
        most = max(logits)
        losses.append(most + math.log(sum(math.exp(x - most) for x in logits)) - logits[label])
    return {
        "confusion": tuple(map(tuple, matrix)),
        "top5": in_five / len(labels),
        "loss": math.fsum(losses) / len(labels),
    }


@pytest.fixture(scope="module")
def small(digits: DataSet) -> DataSet:
    test = digits.test
    few = InMemory(test.fetch(torch.arange(120)), test.labels[:120])
    return DataSet("some digits", digits.train, few, digits.class_names)


@pytest.fixture(scope="module")
def expected(made: Model, small: DataSet) -> dict[str, Any]:
    return one_by_one(made, small.test.fetch(torch.arange(120)), small.test.labels)


@pytest.mark.parametrize("batch", [1, 50, 1000])
def test_the_numbers_are_those_of_the_textbook(
    model: Model, small: DataSet, expected: dict[str, Any], batch: int
) -> None:
    found = quick(model, small, batch=batch)
    assert found.confusion == expected["confusion"]
    assert found.top5 == expected["top5"]
    assert found.loss == pytest.approx(expected["loss"], rel=1e-5)
    assert len({row.index(max(row)) for row in found.confusion}) > 1, "a dull model tests little"
    assert (found.data, found.part, found.images) == ("some digits", "test", 120)
    correct = sum(found.confusion[i][i] for i in range(10))
    assert found.top1 == correct / 120
    assert 0 < found.top1 < expected["top5"] < 1
    assert found.top1_interval[0] < found.top1 < found.top1_interval[1]
    assert [one.images for one in found.classes] == torch.bincount(small.test.labels).tolist()
    assert sum(one.correct for one in found.classes) == correct
    assert found.speeds == ()


def test_parts(model: Model) -> None:
    test, train, both = (quick(model, part=part) for part in ("test", "train", "all"))
    assert (test.images, train.images, both.images) == (359, 1438, 1797)
    summed = np.array(test.confusion) + np.array(train.confusion)
    assert np.array_equal(both.confusion, summed)
    assert both.loss == pytest.approx((359 * test.loss + 1438 * train.loss) / 1797)
    with pytest.raises(UserError, match="test, train or all"):
        quick(model, part="tst")


def test_speed_is_measured_at_one_and_at_a_batch(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prnas.models.speed.WARM_UP_SECONDS", 0.0)
    monkeypatch.setattr("prnas.models.speed.SECONDS", 0.0)
    told: list[tuple[str, int, int]] = []
    found = evaluate(model, batch=500, progress=lambda *one: told.append(one))
    assert [one.batch for one in found.speeds] == [1, 500]  # more than there are images
    assert all(one.calls == 5 and one.median_seconds > 0 for one in found.speeds)
    assert told[0] == ("testing", 0, 359)
    assert ("testing", 359, 359) in told
    assert told[-1] == ("measuring speed", 2, 2)
    assert [one.batch for one in evaluate(model, batch=1).speeds] == [1]


def test_json_says_it_all(model: Model) -> None:
    found = quick(model)
    data = json.loads(json.dumps(found.to_json()))
    assert data["confusion"] == [list(row) for row in found.confusion]
    assert list(data)[-1] == "confusion"
    assert (data["data"], data["part"], data["images"]) == ("digits", "test", 359)
    assert data["classes"][4] == {
        "name": "4",
        "images": sum(found.confusion[4]),
        "right": found.confusion[4][4],
        "accuracy": found.confusion[4][4] / sum(found.confusion[4]),
    }
    assert data["top1_interval_95"] == list(found.top1_interval)
    with pytest.raises(FrozenInstanceError):
        found.loss = 0.0  # pyright: ignore[reportAttributeAccessIssue]


class Greedy(torch.nn.Module):
    """Runs out of memory with more than `most` images."""

    def __init__(self, network: torch.nn.Module, most: int) -> None:
        super().__init__()
        self.network, self.most = network, most
        self.failed = 0

    def forward(self, images: Tensor) -> Tensor:
        if len(images) > self.most:
            self.failed += 1
            raise torch.OutOfMemoryError
        return self.network(images)


def test_the_batch_is_halved_when_memory_runs_out(model: Model) -> None:
    expected = quick(model)
    greedy = Greedy(model.network, 20)
    model.network = greedy  # pyright: ignore[reportAttributeAccessIssue]
    found = quick(model, batch=128)
    assert (found.batch, greedy.failed) == (16, 3)
    assert found.confusion == expected.confusion
    greedy.most = 0
    with pytest.raises(UserError, match="out of memory with a single image"):
        quick(model)


def test_other_errors_of_a_network_are_not_hidden(model: Model) -> None:
    class Broken(torch.nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            raise RuntimeError("a bug")

    model.network = Broken()  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(RuntimeError, match="a bug"):
        quick(model)


def test_outputs_that_are_no_numbers_are_told(model: Model) -> None:
    with torch.no_grad():
        model.network.classifier.bias[3] = math.nan
    with pytest.raises(UserError, match="not finite"):
        quick(model)


def test_the_mode_and_the_statistics_stay_as_they_were(model: Model) -> None:
    before = {name: one.clone() for name, one in model.state_dict().items()}
    expected = quick(model)
    model.train()
    assert quick(model).confusion == expected.confusion
    assert model.training
    for name, one in model.state_dict().items():
        assert torch.equal(one, before[name]), name


def test_top_five_needs_more_than_five_classes(tmp_path: Path) -> None:
    for classes in (5, 6):
        names = tuple(map(str, range(classes)))
        shape = (3, 4, 5)
        model = tiny(tmp_path / str(classes), class_names=names, input_shape=shape)
        made = DataSet("made", images(9, shape, classes), images(12, shape, classes), names)
        found = quick(model, made)
        assert (found.top5 is None) == (classes == 5)


def test_a_class_without_images(tmp_path: Path) -> None:
    names, shape = ("a", "b", "c"), (3, 4, 5)
    model = tiny(tmp_path / "m", class_names=names, input_shape=shape)
    found = quick(model, DataSet("made", images(6, shape, 3), images(6, shape, 2), names))
    assert [one.accuracy is None for one in found.classes] == [False, False, True]
    assert found.to_json()["classes"][2]["accuracy"] is None


def test_bounds(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="at least one image, got 0"):
        quick(model, batch=0)
    monkeypatch.setattr(room, "MOST_CLASSES", 9)
    with pytest.raises(UserError, match="at most 9 classes"):
        quick(model)


def test_an_empty_part_is_told(model: Model, digits: DataSet) -> None:
    empty = InMemory(digits.test.fetch(torch.arange(0)), digits.test.labels[:0])
    made = DataSet("made", digits.train, empty, DIGITS)
    with pytest.raises(UserError, match="the test part of made has no images"):
        quick(model, made)
    assert quick(model, made, part="all").images == 1438


# ------------------------------------------------------------------------------ which images


def folder_card(root: Path, **changes: Any) -> dict[str, Any]:
    data = {"name": f"folder:{root}", "image_size": 20, "test_share": 0.4, "surprise": 1}
    known = {
        "class_names": ("cat", "dog"),
        "input_shape": (3, 8, 8),
        "config": {"data": data, "seed": 1},
    }
    return known | changes


@pytest.mark.parametrize("storage", ["memory", "stream"])
def test_a_folder_is_resized_and_split_as_the_card_says(tmp_path: Path, storage: str) -> None:
    root = picture_folder(tmp_path / "pictures", 5)
    model = tiny(tmp_path / "model", **folder_card(root))
    settings = data_settings(model.card) | {"storage": storage, "workers": 0}
    loaded = load(data_config(model.card, settings), CPU)
    assert loaded.shape == (3, 8, 8)
    found = quick(model, loaded)
    assert found.images == 4  # 40 % of five of each class
    assert found.to_json() | {"seconds": 0} == quick(model).to_json() | {"seconds": 0}
    assert quick(model, f"folder:{root}", part="all").images == 10


@pytest.mark.parametrize("config", [{}, {"data": None}, {"data": {"name": 3}}, {"data": {}}])
def test_a_card_that_names_no_set(tmp_path: Path, config: dict[str, Any]) -> None:
    model = tiny(tmp_path / "m", config=config)
    with pytest.raises(UserError, match="does not name the data of its training"):
        quick(model)
    assert quick(model, "digits").images == 359


def test_settings_of_another_computer(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    known = card(config={"data": {"name": "fashion-mnist", "root": gone}})
    assert data_settings(known)["root"] is None
    assert data_settings(known, root=gone)["root"] == gone  # what is asked for is not changed
    kept = card(config={"data": {"name": "digits", "root": str(tmp_path)}})
    assert data_settings(kept)["root"] == str(tmp_path)
    moved = card(**folder_card(tmp_path / "gone"))
    with pytest.raises(UserError, match=r"trained on folder:.*gone, which is not here.*--data"):
        data_settings(moved)
    strange = card(config={"data": {"name": "digits", "test_share": 7}})
    with pytest.raises(UserError, match="test_share"):
        data_config(strange, data_settings(strange))


@pytest.mark.parametrize(
    ("changes", "name", "said"),
    [
        ({}, "cifar10", "cifar10 has colour images, the model takes grey images of 8x8"),
        ({}, "cifar100", "cifar100 has 100 classes, the model 10: '0', '1', '2', '3', '4' and 5"),
        ({}, "digts", "Did you mean 'digits'"),
        ({"input_shape": (3, 6, 4)}, "folder:.", "4x6, and those of a folder become squares"),
        ({"input_shape": (4, 8, 8)}, "digits", "the model takes 4-channel images of 8x8"),
    ],
)
def test_what_cannot_fit_is_refused_before_it_is_loaded(
    changes: dict[str, Any], name: str, said: str
) -> None:
    known = card(**changes)
    with pytest.raises(UserError, match=said):
        data_config(known, data_settings(known, name))


SHAPE = (1, 8, 8)


@pytest.mark.parametrize(
    ("shape", "names", "said"),
    [
        ((3, 8, 8), DIGITS, "made has colour images of 8x8, the model takes grey images of 8x8"),
        ((1, 6, 8), DIGITS, "made has grey images of 8x6"),
        (
            SHAPE,
            ("zero", *DIGITS[1:]),
            "other classes than the model: only the model has '0'; only the data has 'zero'",
        ),
        (SHAPE, DIGITS[:9], "only the model has '9'$"),
        (SHAPE, (*DIGITS, *"abcdefg"), "only the data has 'a', 'b', 'c', 'd', 'e' and 2 more"),
        (SHAPE, ("1", "0", *DIGITS[2:]), "another order: class 0 is '0' for the model, '1' in"),
        (SHAPE, (*DIGITS, "9"), "made has 11 classes, the model 10"),
    ],
)
def test_what_differs_is_told(
    shape: tuple[int, int, int], names: tuple[str, ...], said: str
) -> None:
    made = DataSet("made", images(4, shape), images(4, shape), names)
    with pytest.raises(UserError, match=said):
        check_fit(card(), made)


def test_images_that_are_no_squares(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (12, 6, 9, 3), np.uint8)
    path = tmp_path / "wide.npz"
    np.savez(path, x_train=pixels, y_train=np.arange(12) % 2)
    model = tiny(
        tmp_path / "m",
        input_shape=(3, 6, 9),
        class_names=("0", "1"),
        config={"data": {"name": f"npz:{path}"}},
    )
    assert quick(model, part="all").images == 12


def test_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert choose_device("auto") == CPU
    with pytest.raises(UserError, match="cannot compute on 'cuda': PyTorch finds here only cpu"):
        choose_device("cuda")
    with pytest.raises(UserError, match="threads must be from 1 to 1024, got 0"):
        choose_device("cpu", 0)
    before = torch.get_num_threads()
    try:
        choose_device("cpu", 2)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("auto").type == "cuda"
