"""The steps of a search: how one step trains the architecture weights and the network's weights."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

from torch import Tensor, nn
from torch.nn import functional as F

from prnas.config import search as config
from prnas.nets.paths import path_logits
from prnas.nets.removal import undisturbed
from prnas.runs.attempt import Outcome, attempt
from prnas.space.paths import path_number

if TYPE_CHECKING:
    from prnas.searching.search import Search

Part = Literal["architecture", "weights"]


class SearchStep(ABC):
    """The base of all steps. A subclass says at least how to `take` one.

    It must compute gradients within `attempt`, which repeats a computation that runs out of memory.
    """

    name: ClassVar[str]
    # For estimates of the time left: what each part costs on as many images, in units of a forward
    # and a backward pass with the gradients of the network's weights, as measured on a CPU.
    architecture_cost: ClassVar[float] = 0.5  # without the gradients of the network's weights
    weights_cost: ClassVar[float] = 1.0

    def __init__(self, search: "Search") -> None:
        self.search = search

    @abstractmethod
    def take(self) -> None:
        """Train the architecture weights, unless in a grace epoch, and the network's weights."""

    def gradients(self, part: Part) -> Outcome:
        """Gradients of the cross entropy on the next images of a part, for its own parameters."""
        search, state = self.search, self.search.state
        images, labels = search.next_images(part)
        with state.timed(part), state.supernet.training_only(part):
            with search.processes.autocast():
                logits = self.logits(images)
                loss = objective = F.cross_entropy(logits, labels)
                penalty = state.supernet.penalty() if part == "architecture" else None
                if penalty is not None:
                    objective = loss + penalty
            search.processes.scaled(objective).backward()
            return Outcome.of(loss, logits, labels)

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


class FirstOrderStep(SearchStep):
    """First-order DARTS: an architecture step on its half of the images, then a weight step."""

    name = "first-order"

    def take(self) -> None:
        if not self.search.grace:
            self.train("architecture")
        self.train("weights")

    def train(self, part: Part) -> None:
        outcome = attempt(self.search, [part], lambda: self.gradients(part))
        self.update(part, outcome)


class WeightStep(FirstOrderStep):
    """No architecture weights are trained: candidates are judged by measured worth alone."""

    name = "none"
    architecture_cost = 0.0

    def take(self) -> None:
        self.train("weights")


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


_CLASSES: dict[str, type[SearchStep]] = {
    kind.name: kind for kind in (FirstOrderStep, WeightStep, SampledStep)
}


def register(kind: type[SearchStep]) -> None:
    """Let configs name a step that is not part of prnas.

    A program may register it again, e.g. in a notebook; the names of prnas are taken.
    """
    registered = _CLASSES.get(kind.name, kind)
    if registered is not kind and registered.__module__ == __name__:
        raise ValueError(f"'{kind.name}' is a step of prnas; give yours another name")
    _CLASSES[kind.name] = kind
    if kind.name not in config.STEPS:
        config.STEPS.append(kind.name)


def step_type(settings: config.ArchitectureConfig) -> type[SearchStep]:
    """The class of the step that a search's config names."""
    return _CLASSES[settings.step]


def make_step(search: "Search") -> SearchStep:
    """The step that a search's config names."""
    return step_type(search.config.architecture)(search)
