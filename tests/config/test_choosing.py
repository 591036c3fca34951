"""What is chosen by the images: a table of examples, and what holds for all."""

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.config import recipes
from prnas.config.choosing import LARGEST_CELL, ImageFacts, choose
from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.config.undecided import Draft
from prnas.io.yaml_files import parse_yaml
from prnas.space.nasbench201.cells import genotype_of, index_of_string

FOLDER = ["data.name=folder:x"]
CELL_OF_THE_SPACE = json.dumps(genotype_of(index_of_string(LARGEST_CELL)).to_json())


def facts(train: int, side: int | tuple[int, int, int] = 32, channels: int = 3) -> ImageFacts:
    sides = (side, side, side) if isinstance(side, int) else side
    names = ("ant", "bee", "cat", "dog")
    quarter = train // 4
    return ImageFacts((quarter, quarter, quarter, train - 3 * quarter), sides, channels, names)


@cache
def search(*overrides: str) -> Draft[SearchConfig]:
    return SearchConfig.draft(parse_yaml(recipes.text("pictures")), [*FOLDER, *overrides])


@cache
def training(*overrides: str) -> Draft[RetrainConfig]:
    text = recipes.text("retrain-pictures")
    return RetrainConfig.draft(parse_yaml(text), [*FOLDER, *overrides])


def settled(draft: Draft[Any], known: ImageFacts) -> Any:
    return draft.settled(choose(draft, known).values)


PHOTOS = (200, 260, 400)


@pytest.mark.parametrize(
    ("known", "size", "images", "network", "epochs", "batch", "shift"),
    [
        (facts(32), 32, None, (3, 8), 100, 8, 4),  # few: not all the time that there is
        (facts(32, PHOTOS), 32, None, (3, 8), 100, 8, 4),
        (facts(240, PHOTOS), 64, None, (3, 8), 100, 8, 8),
        (facts(350), 32, None, (3, 16), 100, 8, 4),
        (facts(800), 32, None, (3, 8), 100, 16, 4),  # a thousand pictures, of which 200 are to test
        (facts(800, PHOTOS), 64, None, (3, 8), 60, 16, 8),
        (facts(800, 28, 1), 28, None, (3, 8), 100, 16, 3),
        (facts(300, 16), 16, None, (6, 16), 100, 8, 2),
        (facts(200, 8, 1), 8, None, (6, 16), 100, 8, 1),  # small images: a large network
        (facts(4_000), 32, None, (3, 8), 50, 64, 4),
        (facts(1_000_000, PHOTOS), 16, 29_500, (3, 8), 20, 64, 2),
        (facts(80, 7), 7, None, (3, 8), 100, 8, 0),
        (facts(4, 1), 1, None, (3, 8), 100, 2, 0),
        (facts(800, (10, 12, 90)), 12, None, (6, 16), 100, 16, 1),
    ],
)
def test_searches(
    known: ImageFacts,
    size: int,
    images: int | None,
    network: tuple[int, int],
    epochs: int,
    batch: int,
    shift: int,
) -> None:
    config = settled(search(), known)
    chosen = config.network.cells, config.network.channels
    assert (config.data.image_size, config.data.images, chosen) == (size, images, network)
    assert config.schedule.num_epochs == epochs
    assert (config.batch.min, config.batch.max, config.data.crop_padding) == (batch, batch, shift)


@pytest.mark.parametrize(
    ("known", "size", "network", "epochs", "batch", "cutout"),
    [
        (facts(32), 32, (5, 8), 100, 8, 8),
        (facts(160, PHOTOS), 32, (5, 8), 100, 8, 8),
        (facts(200, PHOTOS), 64, (5, 8), 80, 8, 16),
        (facts(320, PHOTOS), 48, (5, 8), 80, 8, 12),
        (facts(800), 32, (5, 8), 80, 24, 8),
        (facts(800, PHOTOS), 32, (5, 8), 80, 24, 8),
        (facts(200, 28, 1), 28, (5, 16), 100, 8, 0),
        (facts(4_000), 16, (5, 8), 60, 64, 4),
        (facts(50_000), 16, (5, 8), 10, 64, 4),  # longer than the time: all images are trained
    ],
)
def test_trainings(
    known: ImageFacts, size: int, network: tuple[int, int], epochs: int, batch: int, cutout: int
) -> None:
    config = settled(training(), known)
    assert config.data.image_size == size
    assert (config.network.cells, config.network.channels) == network
    assert config.training.epochs == epochs
    assert (config.batch.min, config.batch.max, config.data.cutout) == (batch, batch, cutout)


def test_the_cycles_have_the_papers_shape() -> None:
    """The first two are longer, and three tenths of each are grace."""
    (one,) = [{"epochs": "auto", "grace_epochs": "auto", "morphisms": 0, "candidates": 1}]
    trained = ("architecture.step=first-order", "architecture.scoring=weights")
    nine = f"schedule.cycles={json.dumps([one] * 9)}"
    cycles = settled(search(*trained, nine), facts(300, 16))
    lengths = [(cycle.epochs, cycle.grace_epochs) for cycle in cycles.schedule.cycles]
    assert lengths == [(15, 4)] * 2 + [(10, 3)] * 7
    fewest = settled(search(*trained), facts(1_000_000, PHOTOS)).schedule.cycles
    assert [(cycle.epochs, cycle.grace_epochs) for cycle in fewest] == [(10, 3)] * 2


@pytest.mark.parametrize(
    ("step", "grace"),
    [("first-order", 15), ("multinomial", 15), ("sampled", 0), ("none", 0)],
)
def test_only_steps_that_learn_have_grace_epochs(step: str, grace: int) -> None:
    scoring = "weights" if step in ("first-order", "multinomial") else "removal"
    relaxation = "multinomial" if step == "multinomial" else "softmax"
    settings = {"step": step, "scoring": scoring, "relaxation": relaxation}
    draft = search(*(f"architecture.{name}={value}" for name, value in settings.items()))
    cycles = draft.settled(choose(draft, facts(1000)).values).schedule.cycles
    assert [(cycle.epochs, cycle.grace_epochs) for cycle in cycles] == [(50, grace)] * 2


def test_without_architecture_steps_no_epoch_is_grace() -> None:
    assert search().config.architecture.step == "none"
    cycles = settled(search(), facts(800)).schedule.cycles
    assert [(cycle.epochs, cycle.grace_epochs) for cycle in cycles] == [(50, 0)] * 2


@pytest.mark.parametrize(
    ("channels", "side", "names", "flipped"),
    [
        (3, 32, ("cat", "dog"), True),
        (3, 300, (), True),
        (1, 200, ("lung", "heart"), True),  # large and grey: photos
        (1, 64, ("bag", "boot"), False),
        (1, 28, (), False),
        (3, 32, ("0", "1"), False),  # house numbers
        (3, 300, ("A", "ß"), False),
        (3, 300, ("1", "10"), True),  # numbered classes
        (3, 300, ("-", "a"), True),
    ],
)
def test_what_is_flipped(channels: int, side: int, names: tuple[str, ...], flipped: bool) -> None:
    known = ImageFacts((200, 200), (side, side, side), channels, names)
    for draft in (search(), training()):
        choice = choose(draft, known)
        assert choice.values["data.flip"] is flipped
        told = dict(choice.reasons)["augment"]
        assert told.startswith("flipped" if flipped else "not flipped")


def test_what_is_said_already_stays_and_counts() -> None:
    known = facts(800)
    free = settled(search(), known)
    overrides = ["data.image_size=32", "data.flip=false", "schedule.cycles.0.epochs=7"]
    draft = search(*overrides, "data.images=500", "network.channels=48", "batch.max=16")
    config = settled(draft, known)
    assert (config.data.image_size, config.data.flip, config.data.images) == (32, False, 500)
    assert (config.network.channels, config.schedule.cycles[0].epochs) == (48, 7)
    assert (config.batch.min, config.batch.max) == (8, 16)
    assert config.data.crop_padding == 4  # an eighth of the size that was given
    assert config.schedule.cycles[1].epochs < free.schedule.cycles[1].epochs  # it takes longer
    told = dict(choose(draft, known).reasons)
    assert "size" not in told
    assert told["network"].startswith("3 cells of 48 channels")
    assert settled(search("batch.min=100"), known).batch.max == 100


def test_a_whole_schedule_that_is_given() -> None:
    cycles = "schedule.cycles=[{epochs: 3, grace_epochs: 0, morphisms: 0, candidates: 1}]"
    config = settled(search(cycles), facts(800))
    assert [(one.epochs, one.grace_epochs) for one in config.schedule.cycles] == [(3, 0)]
    assert config.data.image_size == 32  # so few epochs leave time for it
    fewer = search("schedule.cycles.0.grace_epochs=9", "schedule.cycles.1.epochs=1")
    cycles = settled(fewer, facts(4_000)).schedule.cycles
    assert (cycles[0].epochs, cycles[0].grace_epochs) == (25, 9)
    assert (cycles[1].epochs, cycles[1].grace_epochs) == (1, 0)


def test_the_images_own_size_is_none_but_for_a_folder() -> None:
    arrays = SearchConfig.draft(parse_yaml(recipes.text("pictures")), ["data.name=npz:x.npz"])
    assert settled(arrays, facts(200, 16)).data.image_size is None
    assert settled(search(), facts(200, 16)).data.image_size == 16


def test_residual_networks_have_three_equal_parts() -> None:
    config = settled(search(), facts(300, 16))
    assert (config.network.cells, config.network.channels) == (6, 16)  # of at most eight cells


def test_the_reasons() -> None:
    uneven = replace(facts(800), class_sizes=(2, 320, 100, 70))
    told = dict(choose(search(), uneven).reasons)
    assert told["images"] == (
        "492 training images of 4 classes (2 to 320 each), colour, short side 32 pixels"
    )
    assert told["note"].startswith("the largest class has 160 times the smallest one's images")
    assert told["size"] == "32 x 32 pixels: their own size"
    large = dict(choose(search(), facts(2_000, PHOTOS)).reasons)
    assert large["size"] == "48 x 48 pixels: larger ones leave no time for 40 epochs"
    assert "chance" in dict(choose(search(), facts(32)).reasons)["note"]
    many = dict(choose(search(), facts(40_000, PHOTOS)).reasons)
    assert many["of these"] == "29,500, as many as there is time for"
    assert many["images"].endswith("short side 200 to 400 pixels, median 260")
    assert many["work"].endswith("minutes of one core")


@given(
    sizes=st.lists(st.integers(0, 30_000), min_size=2, max_size=12).filter(
        lambda one: sum(one) > 3
    ),
    sides=st.lists(st.integers(1, 5_000), min_size=3, max_size=3).map(sorted),
    channels=st.sampled_from([1, 3, 4]),
)
def test_every_choice_is_a_valid_config(sizes: list[int], sides: list[int], channels: int) -> None:
    low, middle, high = sides
    known = ImageFacts(tuple(sizes), (low, middle, high), channels)
    config = settled(search(), known)
    assert config.data.image_size <= max(middle, low)  # never enlarged
    assert config.data.images is None or 4 <= config.data.images < known.train
    weights = round((config.data.images or known.train) * 0.5)
    assert config.batch.min == config.batch.max <= max(weights, 1)
    assert SearchConfig.from_data(config.to_data()) == config
    for cell in (CELL_OF_THE_SPACE, '"darts-v2"'):
        trained = settled(training(f"genotype={cell}"), known)
        assert trained.data.images is None
        assert trained.data.image_size <= max(middle, low)
        assert RetrainConfig.from_data(trained.to_data()) == trained
    choice = choose(search(), known)
    assert choice == choose(search(), known)
    assert set(choice.values) == set(search().open)
