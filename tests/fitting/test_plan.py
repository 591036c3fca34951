"""The plan of a fit: within the budget, better with more of it, and explained."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.config.choosing import LARGEST_CELL, ImageFacts
from prnas.config.retrain import DEFAULT_GENOTYPE
from prnas.fitting.configs import SEARCHED, SMALL_FINALS, ZOO, contenders
from prnas.fitting.plan import (
    AIM,
    CYCLES,
    ENOUGH_TRAINING,
    FEWEST,
    FEWEST_TRAINING,
    FINALS,
    FOUND,
    FOUND_WITHIN,
    Plan,
    Rung,
    RungTimes,
    SearchTimes,
    StepTimes,
    Task,
    cycle_lengths,
    decide,
    ladder,
    on_rung,
    plan_trainings,
    search_seconds,
)
from prnas.fitting.request import Request
from prnas.fitting.variants import augmentation
from prnas.io.errors import UserError
from prnas.space import zoo
from prnas.space.genotype import Genotype
from prnas.space.nasbench201.cells import genotype_of, index_of_string
from prnas.space.network_size import network_size

NAMES = ("found", "zoo", "plain")
seconds = st.floats(1e-4, 0.5)
small = st.floats(0.0, 0.01)


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    sizes = draw(st.lists(st.integers(2, 3_000), min_size=2, max_size=5))
    side = draw(st.sampled_from([8, 28, 32, 200]))
    channels = draw(st.sampled_from([1, 3]))
    facts = ImageFacts(tuple(sizes), (side, side, side), channels)
    return Task(facts, draw(st.integers(1, 2_000)), NAMES)


@st.composite
def rung_times(draw: st.DrawFn) -> RungTimes:
    growth = tuple(draw(st.lists(st.floats(0.3, 3), min_size=CYCLES, max_size=CYCLES)))
    rest = (draw(small), draw(seconds), draw(seconds))
    search = SearchTimes(draw(seconds), *rest, growth)
    networks = {
        name: StepTimes(draw(seconds), draw(small), draw(small), draw(seconds))
        for name in NAMES[1:]
    }
    return RungTimes(search, networks)


def decided(task: Task, budget: float, times: RungTimes) -> tuple[Plan | None, list[int]]:
    """As a fit does it: rungs are measured when the plan asks for them."""
    rungs = ladder(task)
    work = [2.0**number for number in range(len(rungs))]
    measured: dict[int, RungTimes] = {}
    while True:
        try:
            step = decide(task, budget, 3.0, measured, work)
        except UserError:
            return None, list(measured)
        if isinstance(step, Plan):
            return step, list(measured)
        assert step not in measured
        measured[step] = times


@given(tasks(), rung_times(), st.floats(10, 5_000))
def test_a_plan_keeps_the_budget_and_says_why(task: Task, times: RungTimes, budget: float) -> None:
    plan, measured = decided(task, budget, times)
    if plan is None:
        assert measured == [0]
        return
    assert plan.seconds <= AIM * budget
    assert plan.seconds == pytest.approx(
        3.0 + plan.search.seconds + sum(t.seconds for t in plan.trainings.values()) + plan.ending
    )
    assert plan.search.epochs >= FEWEST
    assert plan.search.images <= task.train
    took = search_seconds(times.search, task, plan.search.images, plan.search.epochs)
    assert took == plan.search.seconds
    assert list(plan.trainings) == list(NAMES)
    assert all(
        FEWEST_TRAINING <= each.epochs <= ENOUGH_TRAINING for each in plan.trainings.values()
    )
    said = dict(plan.reasons)
    assert {"size", "network", "search", "trainings"} <= set(said)
    assert str(plan.rung.size) in said["size"]
    assert ladder(task).index(plan.rung) in measured


@given(tasks(), rung_times(), st.floats(10, 3_000), st.floats(1, 3_000))
def test_more_time_is_never_worse(task: Task, times: RungTimes, budget: float, more: float) -> None:
    rung = ladder(task)[0]
    less, was_good = on_rung(rung, times, task, budget, 0.0)
    larger, is_good = on_rung(rung, times, task, budget + more, 0.0)
    if less is None:
        return
    assert larger is not None
    assert is_good >= was_good
    assert larger.search.epochs * larger.search.images >= less.search.epochs * less.search.images


@given(tasks(), rung_times(), st.floats(1, 1_000), st.floats(0, 1_000))
def test_networks_have_the_same_time(
    task: Task, times: RungTimes, left: float, more: float
) -> None:
    plans = plan_trainings(times.networks, task, left)
    share = left / len(NAMES)
    for each in plans.values():
        assert each.seconds <= share * (1 + 1e-9) or each.epochs == FEWEST_TRAINING
    longer = plan_trainings(times.networks, task, left + more)
    assert all(longer[name].epochs >= plans[name].epochs for name in NAMES)


@given(st.integers(FEWEST, 400))
def test_cycles_share_the_epochs(epochs: int) -> None:
    lengths = cycle_lengths(epochs)
    assert len(lengths) == CYCLES
    assert sum(lengths) <= epochs
    assert sum(lengths) > epochs - CYCLES


def test_too_little_time_names_how_much_would_do() -> None:
    task = Task(ImageFacts((400, 400), (32, 32, 32), 3), 200, NAMES)
    search = SearchTimes(0.15, 0.001, 0.1, 0.5)
    times = RungTimes(search, {name: StepTimes(0.1, 0.001, 0.1, 0.5) for name in NAMES[1:]})
    with pytest.raises(UserError, match=r"1 minute, and .* takes about ([\d.]+) minutes") as e:
        decide(task, 60.0, 1.0, {0: times}, [1.0] * 9)
    needed = float(str(e.value).split("about ")[1].split()[0])
    assert isinstance(decide(task, 60 * needed, 1.0, {0: times}, [9e9**n for n in range(9)]), Plan)


def test_a_rung_is_measured_only_if_it_may_be_good() -> None:
    task = Task(ImageFacts((400, 400), (64, 64, 64), 3), 200, NAMES)
    fast = StepTimes(0.001, 0.0, 0.0, 0.0)
    times = RungTimes(SearchTimes(0.001, 0.0, 0.0, 0.0), {"zoo": fast, "plain": fast})
    top = len(ladder(task)) - 1
    assert decide(task, 600.0, 0.0, {0: times}, [1.0] * (top + 1)) == top
    slow = RungTimes(replace(times.search, step=100.0), times.networks)
    plan = decide(task, 600.0, 0.0, {0: times, top: slow}, [1.0, *([1e12] * top)])
    assert isinstance(plan, Plan)
    assert plan.rung == ladder(task)[0]


@pytest.mark.parametrize("published", [*FINALS, *SMALL_FINALS])
def test_found_cells_have_a_network_of_about_the_size_of_published_ones(
    published: tuple[int, int],
) -> None:
    def macs(genotype: Genotype, size: tuple[int, int]) -> int:
        return network_size(genotype, size[1], size[0], 10, image_size=32).macs

    usual = macs(zoo.get(DEFAULT_GENOTYPE), published)
    convolutions = ("|{0}~0|+|skip_connect~0|{1}~1|+|{1}~0|skip_connect~1|{0}~2|", LARGEST_CELL)
    typical, largest = (
        macs(genotype_of(index_of_string(cell.format("nor_conv_3x3", "nor_conv_1x1"))), own)
        for cell, own in zip(convolutions, [FOUND_WITHIN[published]] * 2, strict=True)
    )
    assert typical < usual
    assert largest < 1.75 * usual


def test_what_is_found_has_a_size_of_its_own() -> None:
    task = Task(ImageFacts((400, 400), (32, 32, 32), 3), 200, NAMES)
    for limited, sizes in ((False, FOUND), (True, FOUND_WITHIN)):
        rungs = ladder(replace(task, limited=limited))
        assert {rung.final: rung.found for rung in rungs} == {key: sizes[key] for key in FINALS}
        fewest = min(rung.found[1] for rung in rungs)
        assert fewest == (8 if limited else 16)
    assert Rung(32, (3, 8), (5, 8)).found == (5, 8)  # as a fit of an older release has it
    for rung in ladder(task):
        networks = contenders(rung, task, Request("folder:x", 15.0), None)
        sizes = {
            name: (each.network["cells"], each.network["channels"])
            for name, each in networks.items()
        }
        assert (sizes[SEARCHED], sizes[ZOO]) == (rung.found, rung.final)


def test_what_is_given_stays() -> None:
    task = Task(ImageFacts((400, 400), (64, 64, 64), 3), 200, NAMES, size=40)
    assert {rung.size for rung in ladder(task)} == {40}
    few = Task(ImageFacts((9, 9), (64, 64, 64), 3), 2, NAMES)
    assert len({rung.final for rung in ladder(few)}) == 1


@pytest.mark.parametrize(
    ("sizes", "channels", "side", "keys"),
    [
        ((500, 500), 1, 8, set()),
        ((500, 500), 3, 64, {"data.rand_augment", "data.rand_magnitude", "data.color_jitter"}),
        ((500, 500), 1, 300, {"data.rand_augment", "data.rand_magnitude"}),
        ((30_000, 30_000), 3, 64, set()),
        ((500, 900), 1, 8, {"training.class_weights"}),
        ((30_000, 90), 3, 64, {"training.mixup", "training.class_weights"}),
    ],
)
def test_variants_follow_from_the_data(
    sizes: tuple[int, ...], channels: int, side: int, keys: set[str]
) -> None:
    task = Task(ImageFacts(sizes, (side, side, side), channels), 10, NAMES)
    values, lines = augmentation(task, 32)
    assert set(values) == keys
    assert lines
