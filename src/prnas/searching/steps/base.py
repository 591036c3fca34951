"""The base of steps: how one step trains the architecture weights and the network's weights."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from prnas.nets.relaxations.base import Part
from prnas.runs.attempt import Outcome
from prnas.searchers.base import Searcher
from prnas.searchers.cells import CellSpace

if TYPE_CHECKING:
    from prnas.searching.search import Search


class SearchStep(ABC):
    """The base of all steps. A subclass says at least how to `take` one.

    It must compute gradients within `attempt`, which repeats a computation that runs out of memory.
    """

    name: ClassVar[str]
    # For estimates of the time left: what each part costs on as many images, in units of a forward
    # and a backward pass with the gradients of the network's weights, as measured on a CPU.
    architecture_cost: ClassVar[float] = 0.5  # without the gradients of the network's weights
    weights_cost: ClassVar[float] = 1.0
    num_batches: ClassVar[int] = 2  # that a step reads, after grace epochs
    ends_with: ClassVar[str] = "other"  # what the seconds of `end_epoch` were spent on

    def __init__(self, search: "Search") -> None:
        self.search = search

    @abstractmethod
    def take(self) -> None:
        """Train the architecture weights, unless in a grace epoch, and the network's weights."""

    def gradients(self, part: Part, *also: Part) -> Outcome:
        """Gradients of the cross entropy on the next images of a part, for its own parameters.

        And for those of the parts that are named `also`. Where a relaxation samples, they may be
        the mean of several samples' gradients.
        """
        search, state = self.search, self.search.state
        parts: tuple[Part, ...] = (part, *also)
        samples = search.config.architecture.samples
        images, labels = search.next_images(part)
        outcomes: list[Outcome] = []
        with state.timed(part), state.supernet.training_only(*parts):
            for _ in range(samples):
                with search.processes.autocast():
                    logits = self.logits(images)
                    loss = objective = F.cross_entropy(logits, labels)
                    if "architecture" in parts:
                        objective = self.objective(loss)
                if samples > 1:
                    objective = objective / samples
                scaled = search.processes.scaled(objective)
                if scaled.requires_grad:  # A sampled cell that zeros cut off depends on nothing.
                    scaled.backward()
                outcomes.append(Outcome.of(loss, logits, labels))
        return Outcome.mean(outcomes)

    def objective(self, loss: Tensor) -> Tensor:
        """The architecture weights' loss: the cross entropy, and whatever else the config wants."""
        for penalty in self.search.penalties:
            if (factor := penalty.factor()) is not None:
                loss = loss * factor
        term = self.penalty()
        return loss if term is None else loss + term

    def penalty(self) -> Tensor | None:
        """All that is added to the architecture weights' loss, if anything is."""
        total = self.search.state.supernet.penalty()
        for penalty in self.search.penalties:
            if (term := penalty()) is not None:
                total = term if total is None else total + term
        return total

    def logits(self, images: Tensor) -> Tensor:
        """The supernet's logits for a batch in training."""
        return self.search.state.supernet(images, self.search.state.generators["dropout"])

    def validated(self) -> nn.Module:
        """The module that is validated: the whole supernet, unless a step trains another."""
        return self.search.state.supernet

    def update(self, part: Part, outcome: Outcome) -> None:
        """Let a part's parameters follow their gradients, and count the images."""
        search, state, settings = self.search, self.search.state, self.search.config
        with state.timed(part):
            if part == "weights":
                norm = settings.weights.gradient_norm
                search.optimize(
                    part, state.weight_parameters, state.weights_optimizer, norm, outcome
                )
                return
            optimizer, rate = state.architecture_optimizer, search.architecture_rate
            for group in optimizer.param_groups:
                group["lr"] = rate
            norm = settings.architecture.gradient_norm
            parameters = state.architecture_parameters
            if search.optimize(part, parameters, optimizer, norm, outcome):
                state.position.travelled += rate
                state.epoch.architecture_lr = rate
            state.supernet.project()

    def start_cycle(self) -> None:  # noqa: B027 - nothing, unless a step says more
        """A new cycle has begun, with other candidates."""

    def end_epoch(self) -> None:  # noqa: B027
        """After the last step of an epoch, and its validation."""

    def facts(self) -> dict[str, Any]:
        """More fields of an epoch's record."""
        return {}

    def searcher(self, space: CellSpace) -> Searcher | None:
        """The searcher that it has trained to choose among the cells of a space, if it has."""
        return None

    def state(self) -> dict[str, Any]:
        """Plain data that a checkpoint holds, beside what is in the supernet and its optimizers."""
        return {}

    def load_state(self, saved: Mapping[str, Any]) -> None:  # noqa: B027
        """Take back what was saved; a `ValueError` if it does not fit."""
