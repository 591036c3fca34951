"""Relaxations: how architecture weights mix the candidates of an edge while a supernet trains.

Each has a file of its own here, and an entry in `_CLASSES`. `prnas.config.architecture.RELAXATIONS`
lists the names that a config may say, each with the scores by which candidates are pruned, parents
drawn and the genotype derived.
"""

from prnas.config import architecture as config
from prnas.config.architecture import ArchitectureConfig
from prnas.nets.relaxations.base import CycleProgress, Relaxation
from prnas.nets.relaxations.concrete import Concrete
from prnas.nets.relaxations.max_w import MaxW
from prnas.nets.relaxations.multinomial import Multinomial
from prnas.nets.relaxations.proximal import Proximal
from prnas.nets.relaxations.softmax import Softmax
from prnas.nets.relaxations.threshold import Threshold

__all__ = [
    "CycleProgress",
    "Relaxation",
    "Softmax",
    "make_relaxation",
    "register",
    "relaxation_type",
]

_CLASSES: dict[str, type[Relaxation]] = {
    kind.name: kind
    for kind in (
        Softmax,
        Concrete,
        MaxW,
        Multinomial,
        Proximal,
        Threshold,
    )
}


def register(kind: type[Relaxation]) -> None:
    """Let configs name a relaxation that is not part of prnas.

    A program may register it again, e.g. in a notebook; the names of prnas are taken.
    """
    registered = _CLASSES.get(kind.name, kind)
    if registered is not kind and registered.__module__.startswith(f"{__name__}."):
        raise ValueError(f"'{kind.name}' is a relaxation of prnas; give yours another name")
    _CLASSES[kind.name] = kind
    config.RELAXATIONS[kind.name] = kind.scores


def relaxation_type(settings: ArchitectureConfig) -> type[Relaxation]:
    """The class of the relaxation that a config names."""
    return _CLASSES[settings.relaxation]


def make_relaxation(settings: ArchitectureConfig) -> Relaxation:
    """The relaxation that a config names."""
    return relaxation_type(settings)(settings)
