"""What prune and replace decided, as a record: it can be logged, saved, replayed."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter

from prnas.io.reading import validated
from prnas.space.genotype import Role
from prnas.space.operations import STRICT, OperationField


@dataclass(frozen=True, slots=True)
class Pruned:
    """A candidate that left, with the probability (softmax of its pool) it was judged by."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    op: OperationField
    probability: float


@dataclass(frozen=True, slots=True)
class Added:
    """A child that came in, and how it was drawn.

    `parent_probability` is the parent's softmax among the survivors, `probability` that of this
    very draw: parent and morphism, given that the child was acceptable. `returned` marks a child
    that the edge had held before.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    op: OperationField
    parent: OperationField
    morphism: str
    parent_probability: float
    probability: float
    returned: bool = False


@dataclass(frozen=True, slots=True)
class EdgeChange:
    """What happens to one edge's pool: who leaves, then who comes in."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    pruned: Annotated[tuple[Pruned, ...], Field(strict=False)] = ()
    added: Annotated[tuple[Added, ...], Field(strict=False)] = ()


@dataclass(frozen=True, slots=True)
class CellChange:
    """One change for each edge of a cell, in the order of its pools."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    edges: Annotated[tuple[EdgeChange, ...], Field(strict=False)]


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to both cells at the end of a cycle."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    normal: CellChange
    reduction: CellChange

    def cell(self, role: Role) -> CellChange:
        return self.normal if role == "normal" else self.reduction

    def to_json(self) -> dict[str, Any]:
        return _ADAPTER.dump_python(self, mode="json")

    @classmethod
    def from_json(cls, data: Any) -> "Change":
        return validated(_ADAPTER, data, "change")


_ADAPTER = TypeAdapter(Change)
