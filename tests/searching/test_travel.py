"""The rate of architecture steps that follows from their travel."""

from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prnas
from prnas.config import recipes
from prnas.config.search import SearchConfig
from prnas.io.yaml_files import parse_yaml
from prnas.runs.attempt import Outcome
from prnas.runs.events import Callback, RunStart
from prnas.searching.steps import FirstOrderStep, Part
from prnas.searching.travel import architecture_rate, little_travel
from tests.support.settings import small_config
from tests.support.watching import Watch


@pytest.mark.parametrize(
    ("travel_left", "images_left", "batch", "rate"),
    [
        (1.0, 100, 10, 0.1),  # ten steps
        (1.0, 101, 10, 1 / 11),  # the last one is full as well: its surplus is the next epoch's
        (1.0, 7 * 25_000, 128, 1 / 1368),  # the paper's cycles of ten epochs, three of grace
        (0.5, 10, 10, 0.5),  # the last step takes what is left
        (0.5, 3, 10, 0.5),
        (0.4, 80, 20, 0.1),  # half of the images at twice the batch: twice the rate
        (0.4, 80, 5, 0.025),  # fewer images a step: a lower rate
        (0.0, 8, 8, 0.0),  # one more step than was thought has nothing left to travel
        (-1e-17, 8, 8, 0.0),  # nor by rounding
        (0.25, 0, 8, 0.25),  # a step of one's own that trains the weights first
    ],
)
def test_examples(travel_left: float, images_left: int, batch: int, rate: float) -> None:
    assert architecture_rate(travel_left, images_left, batch) == pytest.approx(rate, rel=1e-12)


@given(
    st.floats(1e-3, 100),
    st.integers(1, 500),
    st.lists(st.integers(1, 64), min_size=1, max_size=20),
)
def test_all_of_the_travel_is_spent(travel: float, images: int, batches: list[int]) -> None:
    """However the batch size changes; and it is one rate while it does not."""
    travelled, seen, rates = 0.0, 0, list[tuple[int, float]]()
    while seen < images:
        batch = batches[min(len(rates), len(batches) - 1)]
        rate = architecture_rate(travel - travelled, images - seen, batch)
        rates.append((batch, rate))
        travelled += rate
        seen += batch
    assert travelled == pytest.approx(travel)
    for (batch, rate), (next_batch, next_rate) in pairwise(rates):
        if batch == next_batch:
            assert next_rate == pytest.approx(rate, rel=1e-6)
        elif next_batch > batch:
            assert next_rate >= rate * (1 - 1e-6)


@pytest.mark.parametrize(
    ("settings", "images", "told"),
    [
        ({"lr": 6e-4}, 160, "by 0.006 in a cycle at most (10 steps at a rate of 0.0006)"),
        ({"lr": 6e-4}, 25_000, None),  # 1,563 steps: as in the paper
        ({"lr": "auto"}, 160, None),
        ({"lr": 6e-4, "scoring": "blend"}, 160, "can move by 0.006"),
        ({"lr": 6e-4, "scoring": "removal"}, 160, None),  # weights decide nothing
        ({"lr": 6e-4, "scoring": "removal", "step": "none"}, 160, None),
    ],
)
def test_too_little_travel_is_told(settings: dict[str, Any], images: int, told: str | None) -> None:
    cycle = {"epochs": 2, "grace_epochs": 1, "morphisms": 0, "candidates": 1}
    config = small_config(Path("x.npz"), architecture=settings, schedule={"cycles": [cycle]})
    text = little_travel(config, images, 16)
    assert (text is None) == (told is None)
    assert told is None or told in (text or "")


def test_the_papers_recipe_is_told_on_few_images_only() -> None:
    config = SearchConfig.from_data(parse_yaml(recipes.text("darts-like")))
    assert little_travel(config, 500, config.batch.min) is not None  # half of a thousand
    assert little_travel(config, 25_000, config.batch.max) is None


def test_too_little_travel_is_told_before_a_search(images: Path) -> None:
    class Ears(Callback):
        reasons: ClassVar[list[tuple[str, str]]] = []

        def on_start(self, start: RunStart) -> None:
            self.reasons.extend(start.reasons)

    prnas.search(small_config(images, architecture={"lr": 6e-4}), callbacks=[Ears()])
    ((label, text),) = Ears.reasons
    assert label == "note"
    assert "architecture.lr=auto takes a rate" in text


class _Rates(FirstOrderStep):
    """Remembers with which rate each architecture step was really taken."""

    taken: ClassVar[list[tuple[int, float]]] = []

    def update(self, part: Part, outcome: Outcome) -> None:
        super().update(part, outcome)
        if part == "architecture":
            (group,) = self.search.state.architecture_optimizer.param_groups
            self.taken.append((self.search.state.position.cycle, group["lr"]))


@pytest.mark.parametrize("largest", [8, 16, 24])
def test_a_search_travels_as_far_in_every_cycle(
    images: Path, monkeypatch: pytest.MonkeyPatch, largest: int
) -> None:
    """With a batch of 8, and with one that grows among the architecture steps."""
    monkeypatch.setattr(_Rates, "taken", [])
    monkeypatch.setattr("prnas.searching.steps._CLASSES", {"first-order": _Rates})
    watch = Watch()
    config = small_config(
        images,
        architecture={"travel": 0.7},
        batch={"min": 8, "multiple": 4, "max": largest, "every": 2},
    )
    found = prnas.search(config, callbacks=[watch])
    assert {one.batch for one in watch.batches} == {8, min(16, largest), largest}
    for cycle in (1, 2, 3):
        rates = [rate for number, rate in _Rates.taken if number == cycle - 1]
        assert sum(rates) == pytest.approx(0.7)
        epochs = [one for one in found.epochs if one.cycle == cycle]
        assert epochs[-1].architecture_lr == rates[-1]
        assert all(one.architecture_lr is None for one in epochs if one.grace)
    assert (len({round(rate, 9) for number, rate in _Rates.taken if number == 2}) == 1) == (
        largest == 8
    )


def test_a_number_stays_what_it_was(images: Path) -> None:
    found = prnas.search(small_config(images, architecture={"lr": 0.003}))
    assert [one.architecture_lr for one in found.epochs] == [None, 0.003, None, 0.003, 0.003]
