"""ENAS's controller: its probabilities, its gradients, and what it learns."""

import json
import math
from collections.abc import Iterator
from random import Random
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

from prnas.config.searcher import ControllerConfig
from prnas.nets.controller import Controller, Written
from prnas.searchers.cells import CellSpace
from prnas.searching.controller_search import ControllerSearch, Experience
from prnas.space.genotype import Genotype
from prnas.space.operations import Conv, Operation, PlainConv, Pool, Skip, Zero
from prnas.space.shape import NASBENCH201, CellShape

ONE_CELL = CellShape(("normal",), inputs=2, reads="two")
SPACES = {
    "two inputs": CellSpace.uniform((Skip(), Conv(3)), 2, ONE_CELL),
    "all inputs": CellSpace.uniform((Zero(), Skip(), PlainConv(3)), 2, NASBENCH201, "last"),
    "two cells": CellSpace.uniform((Skip(), Pool("max", 3)), 1),
}


def controller(space: str, seed: int = 0) -> Controller:
    """With weights so large that choices are not all alike."""
    made = Controller(SPACES[space], 5, torch.Generator().manual_seed(seed))
    with torch.no_grad():
        for weight in made.parameters():
            weight.mul_(10)
    return made


def everything(made: Controller) -> Iterator[Written]:
    """All that it can write, each sequence of choices once."""
    stack: list[list[int]] = [[]]
    while stack:
        start = stack.pop()
        sizes: list[int] = []

        def follow(logs: Tensor, start: list[int] = start, sizes: list[int] = sizes) -> int:
            sizes.append(len(logs))
            place = len(sizes) - 1
            return start[place] if place < len(start) else 0

        written = made.written(follow)
        yield written
        for place in range(len(start), len(sizes)):
            stack += [[*written.actions[:place], one] for one in range(1, sizes[place])]


@pytest.mark.parametrize(
    ("space", "number"),
    [("two inputs", 2 * 2**2 * 6 * 2**2), ("all inputs", 3**3), ("two cells", (2 * 2**2) ** 2)],
)
def test_probabilities_of_all_cells_are_one_together(space: str, number: int) -> None:
    made = controller(space)
    every = list(everything(made))
    assert len({written.actions for written in every}) == len(every) == number
    assert math.isclose(sum(math.exp(one.log_probability.item()) for one in every), 1)
    cells = {one.genotype for one in every}
    generator = Random(0)
    assert all(SPACES[space].draw(generator) in cells for _ in range(50))
    logs = [one.log_probability.item() for one in every]
    assert max(logs) - min(logs) > 0.3, "they are not all alike"


@pytest.mark.parametrize("space", SPACES)
def test_the_same_choices_write_the_same_cell(space: str) -> None:
    made = controller(space)
    for written in list(everything(made))[::5]:
        again = made.again(written.actions)
        assert again.genotype == written.genotype
        assert torch.equal(again.log_probability, written.log_probability)
        steps: list[float] = []
        left = iter(written.actions)

        def forced(logs: Tensor, left: Any = left, steps: list[float] = steps) -> int:
            index = next(left)
            steps.append(float(logs[index]))
            return index

        made.written(forced)
        assert math.isclose(sum(steps), written.log_probability.item())


@pytest.mark.parametrize("space", SPACES)
def test_the_entropy_of_choices_is_on_average_that_of_cells(space: str) -> None:
    every = list(everything(controller(space)))
    chances = [math.exp(one.log_probability.item()) for one in every]
    of_cells = -sum(chance * math.log(chance) for chance in chances)
    pairs = zip(chances, every, strict=True)
    assert math.isclose(sum(chance * one.entropy.item() for chance, one in pairs), of_cells)


def reward(genotype: Genotype) -> float:
    return sum(isinstance(op, Skip) for op in genotype.normal.operations) / 2


def search(update: Literal["reinforce", "ppo"] = "reinforce", **more: Any) -> ControllerSearch:
    settings = ControllerConfig(update=update, hidden=5, **more)
    made = ControllerSearch(SPACES["two cells"], Random(1), settings)
    made.controller = controller("two cells")
    return made


def gradients(made: ControllerSearch, loss: Tensor) -> list[Tensor]:
    weights = list(made.controller.parameters())
    found = torch.autograd.grad(loss, weights, allow_unused=True)
    return [
        torch.zeros_like(w) if one is None else one for w, one in zip(weights, found, strict=True)
    ]


def mean_gradient(made: ControllerSearch, value: Any) -> list[Tensor]:
    """Of the searcher's loss, over all that it can write."""
    total = [torch.zeros_like(weight) for weight in made.controller.parameters()]
    for written in list(everything(made.controller)):
        log = written.log_probability.item()
        loss = made.loss([Experience(written.actions, log, value(written.genotype))])
        for sum_, one in zip(total, gradients(made, loss), strict=True):
            sum_ += math.exp(log) * one
    return total


@pytest.mark.parametrize("update", ["reinforce", "ppo"])
def test_the_mean_gradient_is_that_of_the_mean_reward(update: Literal["reinforce", "ppo"]) -> None:
    """Also of PPO, at the policy by which cells were written: the ratio is 1."""
    made = search(update)
    every = everything(made.controller)
    mean = torch.stack([one.log_probability.exp() * reward(one.genotype) for one in every]).sum()
    expected = gradients(made, -mean)
    found = mean_gradient(made, reward)
    assert max(float(one.abs().max()) for one in expected) > 1e-3
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-12)


def test_a_reward_has_the_entropy_and_is_compared_with_the_baseline_before_it() -> None:
    """The published code leaves open whether the baseline takes a reward in before or after."""
    made, baseline = search(entropy=0.5, baseline=0.9), 0.0
    for score in (0.3, 0.8, 0.1, 0.6):
        cell = made.ask()
        assert made.entropy
        made.tell(cell, score)
        rewarded = score + 0.5 * made.entropy
        assert math.isclose(made._batch[-1].advantage, rewarded - baseline)
        baseline = 0.9 * baseline + 0.1 * rewarded
        assert math.isclose(made.baseline, baseline)


def test_a_constant_reward_has_no_mean_gradient() -> None:
    for one in mean_gradient(search(), lambda _: 0.7):
        assert float(one.abs().max()) < 1e-12


@pytest.mark.parametrize(
    ("before", "advantage", "moves"),
    [
        (0.0, 1.0, True),
        (-0.5, 1.0, False),  # more likely by now, beyond the bound, and good: enough
        (0.5, 1.0, True),
        (0.5, -1.0, False),  # less likely by now, and bad: enough
        (-0.5, -1.0, True),
    ],
)
def test_the_clip_stops_what_went_far_enough(before: float, advantage: float, moves: bool) -> None:
    """`before`: by how much likelier the cell was when it was written."""
    made = search("ppo", clip=0.2)
    written = made.write()
    log = written.log_probability.item() + before
    loss = made.loss([Experience(written.actions, log, advantage)])
    changed = any(float(one.abs().max()) > 0 for one in gradients(made, loss))
    assert changed == moves


@pytest.mark.parametrize("update", ["reinforce", "ppo"])
def test_one_that_is_saved_goes_on_exactly(update: Literal["reinforce", "ppo"]) -> None:
    settings = ControllerConfig(update=update, hidden=6, batch=4)

    def new(seed: int) -> ControllerSearch:
        return ControllerSearch(SPACES["two cells"], Random(seed), settings)

    def asked(made: ControllerSearch, number: int) -> list[Genotype]:
        cells: list[Genotype] = []
        for _ in range(number):
            cells.append(made.ask())
            made.tell(cells[-1], reward(cells[-1]))
        return cells

    whole = new(3)
    expected = asked(whole, 22)
    for at, pending in ((0, False), (6, True), (12, False)):
        cut = new(3)
        found = asked(cut, at)
        if pending:
            cut.ask()
        resumed = new(9)
        resumed.load_state(json.loads(json.dumps(cut.state())))
        assert found + asked(resumed, 22 - at) == expected
        assert resumed.state() == whole.state()


@pytest.mark.parametrize("rewarded", [Pool, Conv])
@pytest.mark.parametrize(("update", "seeds"), [("reinforce", 10), ("ppo", 3)])
def test_it_learns_what_is_rewarded(
    update: Literal["reinforce", "ppo"], seeds: int, rewarded: type[Operation]
) -> None:
    """As far as its bounded logits let it, in 15 updates, with every seed.

    Pooling, which is unlikely at first; or separable convolutions, which are likely already.
    """
    space = CellSpace.uniform((Skip(), Pool("avg", 3), Conv(3, 1, (1,))), 1, ONE_CELL)

    def share(genotype: Genotype) -> float:
        return sum(isinstance(op, rewarded) for op in genotype.normal.operations) / 2

    def mean(made: ControllerSearch) -> float:
        every = everything(made.controller)
        return sum(math.exp(one.log_probability.item()) * share(one.genotype) for one in every)

    for seed in range(seeds):
        settings = ControllerConfig(update=update, hidden=8, lr=0.05, baseline=0.9, passes=2)
        made = ControllerSearch(space, Random(seed), settings)
        before = mean(made)
        for _ in range(150):
            cell = made.ask()
            made.tell(cell, share(cell))
        assert mean(made) > before + 0.05
        assert made.best is not None
        assert made.best.score == 1


FIVE: tuple[Operation, ...] = (
    Skip(),
    Pool("avg", 3),
    Pool("max", 3),
    Conv(3, 1, (1,)),
    Conv(5, 1, (1,)),
)


def taught(seed: int, updates: int, first_bias: float | None) -> list[float]:
    """How likely each of ENAS's five operations is, when sep 3 was rewarded with its settings."""
    space, planted = CellSpace.uniform(FIVE, 1, ONE_CELL), FIVE[3]
    made = ControllerSearch(space, Random(seed), ControllerConfig())
    if first_bias is not None:
        with torch.no_grad():
            made.controller.bias.fill_(first_bias)
    for _ in range(updates * made.settings.batch):
        cell = made.ask()
        made.tell(cell, cell.normal.operations.count(planted) / 2)
    shares = dict.fromkeys(FIVE, 0.0)
    for one in everything(made.controller):
        for op in one.genotype.normal.operations:
            shares[op] += math.exp(one.log_probability.item()) / 2
    return list(shares.values())


def test_it_finds_the_rewarded_of_five_operations() -> None:
    """In 60 updates, with every seed; all is ENAS's but the first bias, which is 0.

    Its bounds allow sep 3 to become no likelier than 0.461.
    """
    for seed in range(10):
        *others, sep_3, sep_5 = taught(seed, 60, first_bias=0.0)
        assert sep_3 > 0.4
        assert sep_3 > 2 * sep_5 > max(others)


def test_with_the_published_bias_it_cannot_prefer_one_convolution() -> None:
    """The bias of 10 is so deep in the tanh that no gradient comes through: both stay alike."""
    before, after = (taught(0, updates, first_bias=None) for updates in (0, 60))
    assert after[3] == pytest.approx(after[4], abs=1e-6)
    assert after[3] > before[3] + 0.005, "what is no convolution becomes less likely"


def test_a_batch_is_settled_before_its_scores_are_known() -> None:
    settings = ControllerConfig(batch=4, hidden=5)
    searcher, scores = ControllerSearch(SPACES["two inputs"], Random(0), settings), Random(1)
    for expected in (4, 4, 4):
        settled = searcher.upcoming(9)
        assert len(settled) == expected
        for proposal in settled:
            assert searcher.proposal == proposal
            searcher.tell(proposal.genotype, scores.random())
