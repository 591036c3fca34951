"""The benchmarks measure what they say."""

import itertools

import pytest
import torch

from benchmarks.measure import CountCalls, interleaved, number_of, ratio
from benchmarks.search_step import STAGES, batches, our_step, stage_pools, textbook_step
from prnas.nets.supernet import build_supernet
from prnas.space.genotype import ROLES
from tests.support.supernets import plain_of


def test_ways_take_turns_after_a_warm_up() -> None:
    order: list[str] = []
    seconds = interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 2)
    assert order == ["a", "b"] * 3
    assert {name: len(times) for name, times in seconds.items()} == {"a": 2, "b": 2}


def test_a_ratio_shows_its_spread() -> None:
    assert ratio([4.0, 9.0, 6.0], [2.0, 3.0, 2.0]) == "3.00 (2.00-3.00)"


def test_calls_of_the_backward_pass_count() -> None:
    x = torch.ones(3, requires_grad=True)
    with CountCalls() as forward_only:
        y = (x * 2).sum()
    with CountCalls() as both:
        (x * 2).sum().backward()
    assert y.item() == 6
    assert both.calls > forward_only.calls >= 2


@pytest.mark.parametrize("stage", STAGES)
def test_stages_are_fixed_and_full(stage: str) -> None:
    pools = stage_pools(stage)
    assert pools == stage_pools(stage)
    sizes = [len(edge.candidates) for role in ROLES for edge in pools.cell(role).edges]
    assert max(sizes) == (4 if stage == "initial" else 6)
    assert sizes.count(max(sizes)) > 0.9 * len(sizes)  # a small space may leave no child to add


def test_both_steps_train_alike() -> None:
    pools, data = stage_pools("initial", num_nodes=2), batches(4, size=8, classes=5)
    ours = build_supernet(pools, 4, 3, 5).double()
    theirs = plain_of(ours)
    data = tuple((images.double(), labels) for images, labels in data)
    steps = our_step(ours, data), textbook_step(theirs, data)  # pyright: ignore[reportArgumentType]
    for step in itertools.chain(*[steps] * 3):
        step()
    for mine, their in zip(
        ours.architecture_parameters(), theirs.architecture_parameters(), strict=True
    ):
        assert mine.abs().max() > 0
        torch.testing.assert_close(mine, their, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(ours.classifier.weight, theirs.classifier.weight)


@pytest.mark.parametrize("stage", STAGES)
def test_the_fused_supernet_makes_no_more_calls_than_the_textbook(stage: str) -> None:
    """Views aside, with the paper's channels; on a GPU every such call is a launch."""
    pools, data = stage_pools(stage, num_nodes=3), batches(2, size=16)
    ours = build_supernet(pools, 16, 3)
    calls: list[int] = []
    for step in (our_step(ours, data), textbook_step(plain_of(ours), data)):
        step()  # plans and momenta are made
        with CountCalls() as counter:
            step()
        calls.append(counter.calls - counter.views)
    assert 0 < calls[0] <= calls[1]


@pytest.mark.slow
def test_peaks_are_those_of_the_step() -> None:
    arguments = ("--stages", "initial", "--batch", "8", "--peak")
    peaks = {
        way: number_of("benchmarks.supernet", *arguments, way) for way in ("textbook", "recompute")
    }
    assert peaks["textbook"] > 2 * peaks["recompute"] > 0
