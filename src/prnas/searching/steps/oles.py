"""Operation-level early stopping: a candidate that overfits the weights' half trains no more.

Jiang, Ji, Zhu, Yuan, Huang: Operation-Level Early Stopping for Robustifying Differentiable NAS.
NeurIPS 2023.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from prnas.nets.supernet import Supernet
from prnas.runs.attempt import attempt
from prnas.searching.steps.first_order import FirstOrderStep

if TYPE_CHECKING:
    from prnas.searching.search import Search

Gradients = list[list[Tensor | None]]  # The gradients of each candidate's weights.


class OlesStep(FirstOrderStep):
    """First-order DARTS that compares, candidate by candidate, what the two halves of images want.

    The architecture step has the gradients of the network's weights too. Where they point another
    way than those of the weight step, a candidate learns what does not hold for other images.
    """

    name = "oles"
    architecture_cost = 1.0  # with the gradients of the network's weights

    def __init__(self, search: "Search") -> None:
        super().__init__(search)
        self.start_cycle()

    def start_cycle(self) -> None:
        settings = self.search.config.architecture
        rule = (settings.oles_threshold, settings.oles_checks)
        self.stopping = EarlyStopping(self.search.state.supernet, *rule)

    def take(self) -> None:
        if self.search.grace:
            self.train("weights")
            return
        search, stopping = self.search, self.stopping
        both = lambda: self.gradients("architecture", "weights")  # noqa: E731
        outcome = attempt(search, ["architecture"], both)
        validation = self._averaged(stopping.gradients())
        for weight in search.state.weight_parameters:
            weight.grad = None
        self.update("architecture", outcome)
        outcome = attempt(search, ["weights"], lambda: self.gradients("weights"))
        stopping.compare(validation, self._averaged(stopping.gradients()))
        stopping.hold()
        self.update("weights", outcome)

    def _averaged(self, gradients: Gradients) -> Gradients:
        """The same, averaged over all processes, which then stop the same candidates."""
        tensors = [tensor for candidate in gradients for tensor in candidate if tensor is not None]
        self.search.processes.average(tensors)
        return gradients

    def facts(self) -> dict[str, Any]:
        return {"stopped_candidates": len(self.stopping.stopped)}

    def state(self) -> dict[str, Any]:
        return self.stopping.state()

    def load_state(self, saved: Mapping[str, Any]) -> None:
        self.stopping.load_state(saved)


class EarlyStopping:
    """The stopping of single candidates of single cells, by the cosines of their gradients.

    After every `checks` comparisons those are stopped whose mean cosine is below `threshold`, for
    the rest of the cycle. Candidates without weights never are.
    """

    def __init__(self, supernet: Supernet, threshold: float, checks: int) -> None:
        self.threshold, self.checks = threshold, checks
        self.weights: list[list[nn.Parameter]] = []
        for cell in supernet.search_cells:
            for edge in cell.operations:
                for module in edge.children():
                    if own := list(module.parameters()):
                        self.weights.append(own)
        like = supernet.classifier.weight
        self.stopped: set[int] = set()
        self.checked = 0
        self.sums, self.counts = (like.new_zeros(len(self.weights)) for _ in range(2))

    def gradients(self) -> Gradients:
        """The present gradients of each candidate's weights."""
        return [[weight.grad for weight in candidate] for candidate in self.weights]

    @torch.no_grad()
    def compare(self, validation: Gradients, training: Gradients) -> None:
        """Count the cosines of two passes' gradients; stop candidates when it is time."""
        pairs = zip(validation, training, strict=True)
        cosines = torch.stack([cosine(*pair, like=self.sums) for pair in pairs])
        finite = cosines.isfinite()
        self.sums += torch.where(finite, cosines, 0.0)
        self.counts += finite
        self.checked += 1
        if self.checked < self.checks:
            return
        low = (self.counts > 0) & (self.sums < self.threshold * self.counts)
        self.stopped |= {number for number, is_low in enumerate(low.tolist()) if is_low}
        self.checked = 0
        self.sums.zero_()
        self.counts.zero_()

    def hold(self) -> None:
        """Stopped candidates have no gradient: neither momentum nor decay moves their weights."""
        for number in self.stopped:
            for weight in self.weights[number]:
                weight.grad = None

    def state(self) -> dict[str, Any]:
        return {
            "checked": self.checked,
            "stopped": sorted(self.stopped),
            "sums": self.sums.cpu().double().tolist(),
            "counts": self.counts.cpu().double().tolist(),
        }

    def load_state(self, saved: Mapping[str, Any]) -> None:
        number = len(self.weights)
        stopped = {int(index) for index in saved["stopped"]}
        if len(saved["sums"]) != number or len(saved["counts"]) != number:
            raise ValueError(f"a step's state must have sums and counts of {number} candidates")
        if not stopped <= set(range(number)):
            raise ValueError(f"a step's state names candidates beyond the {number} that there are")
        self.checked, self.stopped = int(saved["checked"]), stopped
        self.sums.copy_(torch.tensor(saved["sums"], dtype=torch.float64))
        self.counts.copy_(torch.tensor(saved["counts"], dtype=torch.float64))


def cosine(first: Sequence[Tensor | None], second: Sequence[Tensor | None], like: Tensor) -> Tensor:
    """The mean cosine of two gradients over the tensors of a candidate; NaN if one has none.

    A tensor that is 0 in either has no direction, and a cosine of 0.
    """
    cosines: list[Tensor] = []
    for a, b in zip(first, second, strict=True):
        if a is None or b is None:
            return like.new_tensor(torch.nan)
        cosines.append(nn.functional.cosine_similarity(a.flatten(), b.flatten(), dim=0))
    return torch.stack(cosines).mean().to(like.dtype)
