"""The base of penalties."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from torch import Tensor

from prnas.config.search import SearchConfig

if TYPE_CHECKING:
    from prnas.searching.search import Search


class Penalty(ABC):
    """A term of the architecture weights' loss, with any relaxation and step that trains them.

    It may look at the search's `progress`, at the supernet's architecture weights, and at how the
    pass under way mixed candidates (`supernet.mixed`).
    """

    def __init__(self, search: "Search") -> None:
        self.search = search

    @staticmethod
    @abstractmethod
    def wanted(config: SearchConfig) -> bool:
        """Whether a config switches it on."""

    @abstractmethod
    def __call__(self) -> Tensor | None:
        """The term, at the present architecture weights, if there is one."""

    def factor(self) -> Tensor | None:
        """The factor of the cross entropy, if there is one."""
        return None
