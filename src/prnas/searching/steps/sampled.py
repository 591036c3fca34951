"""Steps that train one network of the supernet's: a candidate on every edge, or a cell."""

from abc import abstractmethod
from random import Random
from typing import TYPE_CHECKING

from torch import Tensor, nn

from prnas.nets.cell_paths import cell_logits
from prnas.nets.paths import path_logits
from prnas.nets.removal import undisturbed
from prnas.searchers.cells import CellSpace
from prnas.searching.steps.first_order import WeightStep
from prnas.space.genotype import Genotype
from prnas.space.paths import path_number

if TYPE_CHECKING:
    from prnas.searching.search import Search


class SampledStep(WeightStep):
    """Each step trains one candidate on every edge, drawn fairly; no architecture weights.

    So each candidate learns to work without the others of its edge, as it will in the final
    network, and a step costs a fraction of one that trains them all.
    """

    name = "sampled"
    weights_cost = 0.25

    def logits(self, images: Tensor) -> Tensor:
        state = self.search.state
        path = path_number(
            state.supernet.pools,
            self.search.config.seed,
            f"train/{state.position.cycle}",
            state.position.cycle_step,
        )
        return path_logits(state.supernet, images, path, state.generators["dropout"])

    def validated(self) -> nn.Module:
        return ValidatedPaths(self.search)


class ValidatedPaths(nn.Module):
    """Every batch of a validation takes another path, normalised by its own statistics."""

    def __init__(self, search: "Search") -> None:
        super().__init__()
        state = search.state
        self.supernet, self.number = state.supernet, 0
        self.drawn_by = (search.config.seed, f"validation/{state.position.cycle}")

    def forward(self, images: Tensor) -> Tensor:
        path = path_number(self.supernet.pools, *self.drawn_by, self.number)
        self.number += 1
        with undisturbed(self.supernet, training=True):
            return path_logits(self.supernet, images, path)


class CellStep(WeightStep):
    """Each step trains one cell, as it would be derived: no other edge is computed."""

    weights_cost = 0.25

    @abstractmethod
    def cell(self, purpose: str, number: int) -> Genotype:
        """A cell; the same for the same purpose and number."""

    def logits(self, images: Tensor) -> Tensor:
        state = self.search.state
        cell = self.cell("write", state.position.cycle_step)
        return cell_logits(state.supernet, images, cell, state.generators["dropout"])

    def validated(self) -> nn.Module:
        return ValidatedCells(self)


class RandomCellStep(CellStep):
    """The cell is drawn uniformly: different inputs for every node, an operation for every edge."""

    name = "sampled-cells"

    def cell(self, purpose: str, number: int) -> Genotype:
        config, state = self.search.config, self.search.state
        space = CellSpace.of_pools(state.supernet.pools, config.network.output)
        return space.draw(Random(f"{config.seed}/{purpose}/{state.position.cycle}/{number}"))


class ValidatedCells(nn.Module):
    """Every batch of a validation takes another cell, normalised by its own statistics."""

    def __init__(self, step: CellStep) -> None:
        super().__init__()
        self.supernet = step.search.state.supernet
        self._step, self._number = step, 0

    def forward(self, images: Tensor) -> Tensor:
        cell = self._step.cell("validation", self._number)
        self._number += 1
        with undisturbed(self.supernet, training=True):
            return cell_logits(self.supernet, images, cell)
