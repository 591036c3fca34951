"""The methods that prnas knows: what to set for each, what a step costs, and where it comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Method:
    """A way to search, or an option of any way."""

    name: str  # that of its recipe, if there is one
    line: str  # what it does, in a line
    source: str
    # What a step takes, architecture and weights, relative to first-order DARTS with the same
    # candidates and images, as estimated: the sum of the passes that it takes.
    cost: float = 1.0
    # The sections and keys that switch it on in any search, as plain data.
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, dict[str, Any]])


METHODS: tuple[Method, ...] = (
    Method(
        "darts",
        "all candidates mixed by a softmax of architecture weights, trained in turn with weights",
        "Liu, Simonyan, Yang: DARTS: Differentiable Architecture Search. ICLR 2019",
    ),
)
