"""The step of MDENAS: sampled paths, whose accuracy moves probabilities after each epoch.

Zheng, Ji, Tang, Zhang, Liu, Tian: Multinomial Distribution Learning for Effective Neural
Architecture Search. ICCV 2019.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prnas.nets.paths import path_logits
from prnas.nets.removal import undisturbed
from prnas.runs.attempt import Outcome, attempt
from prnas.searching.steps.base import SearchStep
from prnas.space.paths import Path, path_number
from prnas.space.pools import Pools
from prnas.space.shape import Role

if TYPE_CHECKING:
    from prnas.searching.search import Search

Numbers = dict[Role, list[list[float]]]  # A number for each candidate of each edge.


class MultinomialStep(SearchStep):
    """A path is drawn by the candidates' probabilities, trained, and validated on the other half.

    After an epoch, of two candidates of an edge the one that did better although it was not trained
    more often takes some of the other's probability. In grace epochs paths are drawn fairly, and
    nothing is counted. There are no gradients of architecture weights.
    """

    name = "multinomial"
    architecture_cost = 0.1  # a path forward
    weights_cost = 0.25

    def __init__(self, search: "Search") -> None:
        super().__init__(search)
        self.path: Path = {}  # The path of the step under way.
        self.start_cycle()

    def start_cycle(self) -> None:
        pools = self.search.state.supernet.pools
        self.counts = _zeros(pools)  # Number of times that each was trained in this cycle.
        self.accuracies = _zeros(pools)  # Each one's accuracy in the last epoch that drew it.
        self.start_epoch()

    def start_epoch(self) -> None:
        pools = self.search.state.supernet.pools
        self.drawn, self.sums = _zeros(pools), _zeros(pools)

    def take(self) -> None:
        search, state = self.search, self.search.state
        self.path = self.draw()
        self.update("weights", attempt(search, ["weights"], lambda: self.gradients("weights")))
        if search.grace:
            return
        outcome = attempt(search, ["architecture"], self.validated_path)
        values = [outcome.loss.item(), outcome.correct.item()]
        loss, correct = search.processes.sum(values)
        size = search.processes.size
        images = search.batch.batch * size
        state.epoch.tallies["architecture"].add(loss / size, correct, images)
        for role, indices in self.path.items():
            for edge, index in enumerate(indices):
                self.drawn[role][edge][index] += 1
                self.sums[role][edge][index] += correct / images

    def draw(self) -> Path:
        """The path of the next step; all processes draw the same."""
        search, state = self.search, self.search.state
        pools, position = state.supernet.pools, state.position
        if search.grace:
            seed, purpose = search.config.seed, f"train/{position.cycle}"
            return path_number(pools, seed, purpose, position.cycle_step)
        generator = state.generators["dropout"]
        path: Path = {}
        for role, edges in self._probabilities().items():
            points = torch.rand(len(edges), dtype=torch.float64, generator=generator).tolist()
            path[role] = tuple(map(_drawn, edges, points))
        return path

    def logits(self, images: Tensor) -> Tensor:
        state = self.search.state
        return path_logits(state.supernet, images, self.path, state.generators["dropout"])

    @torch.no_grad()
    def validated_path(self) -> Outcome:
        """The loss and accuracy of the step's path on the next images of the architecture half."""
        state = self.search.state
        images, labels = self.search.next_images("architecture")
        with (
            state.timed("architecture"),
            undisturbed(state.supernet, training=True),
            self.search.processes.autocast(),
        ):
            logits = path_logits(state.supernet, images, self.path)
            return Outcome.of(F.cross_entropy(logits, labels), logits, labels)

    def end_epoch(self) -> None:
        if self.search.grace:
            return
        rate = self.search.config.architecture.transfer
        probabilities = self._probabilities()
        for role, parameters in self.search.state.supernet.all_architecture_weights().items():
            for edge, parameter in enumerate(parameters):
                drawn, counts = self.drawn[role][edge], self.counts[role][edge]
                accuracies = self.accuracies[role][edge]
                for index, number in enumerate(drawn):
                    counts[index] += number
                    if number:
                        accuracies[index] = self.sums[role][edge][index] / number
                after = transferred(probabilities[role][edge], counts, accuracies, rate)
                parameter.copy_(torch.tensor(after, dtype=torch.float64))
        self.start_epoch()

    def validated(self) -> nn.Module:
        return LikeliestPath(self.search, self._probabilities())

    def _probabilities(self) -> Numbers:
        weights = self.search.state.supernet.all_architecture_weights()
        return {
            role: [edge.detach().cpu().double().tolist() for edge in edges]
            for role, edges in weights.items()
        }

    def state(self) -> dict[str, Any]:
        names = ("counts", "accuracies", "drawn", "sums")
        return {name: getattr(self, name) for name in names}

    def load_state(self, saved: Mapping[str, Any]) -> None:
        pools = self.search.state.supernet.pools
        for name in self.state():
            setattr(self, name, _checked(saved[name], pools))


class LikeliestPath(nn.Module):
    """The most probable candidate of every edge, normalised by the batch's own statistics."""

    def __init__(self, search: "Search", probabilities: Numbers) -> None:
        super().__init__()
        self.supernet = search.state.supernet
        self.path: Path = {
            role: tuple(edge.index(max(edge)) for edge in edges)
            for role, edges in probabilities.items()
        }

    def forward(self, images: Tensor) -> Tensor:
        with undisturbed(self.supernet, training=True):
            return path_logits(self.supernet, images, self.path)


def transferred(
    probabilities: Sequence[float],
    counts: Sequence[float],
    accuracies: Sequence[float],
    rate: float,
) -> list[float]:
    """The probabilities of an edge's candidates after an epoch.

    Pair by pair, in the order of the candidates: the one that did better and was trained no more
    often takes `rate` from the other, or all that it has.
    """
    result = list(probabilities)
    for first in range(len(result)):
        for second in range(first + 1, len(result)):
            for better, worse in ((first, second), (second, first)):
                ahead = accuracies[better] > accuracies[worse]
                if ahead and counts[better] <= counts[worse]:
                    moved = min(rate, result[worse])
                    result[worse] -= moved
                    result[better] += moved
    return result


def _drawn(probabilities: Sequence[float], point: float) -> int:
    """The candidate at a point of [0, 1) on the line of all probabilities."""
    point *= sum(probabilities)
    for index, probability in enumerate(probabilities):
        point -= probability
        if point < 0:
            return index
    return max(range(len(probabilities)), key=probabilities.__getitem__)


def _zeros(pools: Pools) -> Numbers:
    return {
        role: [[0.0] * len(edge.candidates) for edge in pools.cell(role).edges]
        for role in pools.roles
    }


def _checked(saved: Any, pools: Pools) -> Numbers:
    """Numbers that fit these pools; a `ValueError` if they do not."""
    expected = _zeros(pools)
    numbers: Numbers = {
        role: [[float(value) for value in edge] for edge in saved[role]] for role in expected
    }
    shapes = [
        {role: [len(edge) for edge in edges] for role, edges in cells.items()}
        for cells in (numbers, expected)
    ]
    if shapes[0] != shapes[1]:
        raise ValueError("the step's numbers must have one for each candidate")
    return numbers
