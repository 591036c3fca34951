"""Penalties: terms of the architecture weights' loss that a config switches on.

Each has a file of its own here, and an entry in `_CLASSES`.
"""

from typing import TYPE_CHECKING

from prnas.searching.penalties.base import Penalty
from prnas.searching.penalties.expected_cost import ExpectedCost
from prnas.searching.penalties.resources import ResourcePenalty

if TYPE_CHECKING:
    from prnas.searching.search import Search

__all__ = ["Penalty", "make_penalties"]

_CLASSES: tuple[type[Penalty], ...] = (ResourcePenalty, ExpectedCost)


def make_penalties(search: "Search") -> list[Penalty]:
    """The penalties that a search's config switches on."""
    return [kind(search) for kind in _CLASSES if kind.wanted(search.config)]
