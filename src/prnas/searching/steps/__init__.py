"""The steps of a search: how one step trains the architecture weights and the network's weights.

Each has a file of its own here, and an entry in `_CLASSES`; `prnas.config.architecture.STEPS` lists
the names that a config may say.
"""

from typing import TYPE_CHECKING

from prnas.config import architecture as config
from prnas.nets.relaxations import relaxation_type
from prnas.searching.steps.base import Part, SearchStep
from prnas.searching.steps.enas import EnasStep
from prnas.searching.steps.first_order import FirstOrderStep, WeightStep
from prnas.searching.steps.multinomial import MultinomialStep
from prnas.searching.steps.oles import OlesStep
from prnas.searching.steps.one_level import OneLevelStep
from prnas.searching.steps.sampled import RandomCellStep, SampledStep
from prnas.searching.steps.second_order import SecondOrderStep

if TYPE_CHECKING:
    from prnas.searching.search import Search

__all__ = [
    "FirstOrderStep",
    "Part",
    "SampledStep",
    "SearchStep",
    "WeightStep",
    "make_step",
    "register",
    "step_costs",
    "step_type",
]

_CLASSES: dict[str, type[SearchStep]] = {
    kind.name: kind
    for kind in (
        FirstOrderStep,
        WeightStep,
        SampledStep,
        RandomCellStep,
        SecondOrderStep,
        OneLevelStep,
        MultinomialStep,
        OlesStep,
        EnasStep,
    )
}


def register(kind: type[SearchStep]) -> None:
    """Let configs name a step that is not part of prnas.

    A program may register it again, e.g. in a notebook; the names of prnas are taken.
    """
    registered = _CLASSES.get(kind.name, kind)
    if registered is not kind and registered.__module__.startswith(f"{__name__}."):
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


def step_costs(settings: config.ArchitectureConfig) -> tuple[float, float]:
    """The costs of the two parts of a step, architecture and weights, on as many images.

    The unit is a forward and a backward pass of all candidates with the gradients of the network's
    weights, as measured on a CPU.
    """
    step, relaxation = step_type(settings), relaxation_type(settings)
    architecture = step.architecture_cost * relaxation.architecture_share * settings.samples
    return architecture, step.weights_cost * relaxation.weights_share * settings.samples
