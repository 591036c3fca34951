"""Changes: the decisions of prune and replace, which can be logged, saved and replayed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter

from prnas.io.reading import validated
from prnas.space.checks import STRICT
from prnas.space.operations import OperationField
from prnas.space.shape import ROLES, Role, by_role


@dataclass(frozen=True, slots=True)
class Pruned:
    """A candidate that left, with the probability (softmax of its pool) it was judged by."""

    op: OperationField
    probability: float


@dataclass(frozen=True, slots=True)
class Added:
    """A child that came in, and how it was drawn.

    `parent_probability` is the parent's softmax among the survivors, `probability` that of this
    very draw: parent and morphism, given that the child was acceptable. `returned` marks a child
    that the edge had held before.
    """

    op: OperationField
    parent: OperationField
    morphism: str
    parent_probability: float
    probability: float
    returned: bool = False


@dataclass(frozen=True, slots=True)
class EdgeChange:
    """The change of an edge's pool: candidates that leave, then those that come in."""

    pruned: Annotated[tuple[Pruned, ...], Field(strict=False)] = ()
    added: Annotated[tuple[Added, ...], Field(strict=False)] = ()


@dataclass(frozen=True, slots=True)
class CellChange:
    """One change for each edge of a cell, in the order of its pools."""

    edges: Annotated[tuple[EdgeChange, ...], Field(strict=False)]


@dataclass(frozen=True, slots=True)
class Change:
    """The change of all kinds of cell at the end of a cycle."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT  # Holds for the values within, too.
    normal: CellChange
    reduction: CellChange | None = None

    @classmethod
    def of(cls, cells: Mapping[Role, CellChange]) -> "Change":
        """The change of these cells."""
        return cls(cells["normal"], cells.get("reduction"))

    @property
    def roles(self) -> tuple[Role, ...]:
        return ROLES if self.reduction else ROLES[:1]

    def cell(self, role: Role) -> CellChange:
        return by_role(role, self.normal, self.reduction)

    def to_json(self) -> dict[str, Any]:
        data = _ADAPTER.dump_python(self, mode="json")
        return {role: data[role] for role in self.roles}

    @classmethod
    def from_json(cls, data: Any) -> "Change":
        return validated(_ADAPTER, data, "change")


_ADAPTER = TypeAdapter(Change)
