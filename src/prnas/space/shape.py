"""The shape of cells as a value: their roles, inputs, what a node reads, the network around them.

The spaces of DARTS and NAS-Bench-201 (Dong and Yang, 2020) differ in these, in the number of nodes,
in how a cell's output is made, and in the operations.
"""

from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, TypeAdapter

from prnas.io.errors import suggestion
from prnas.io.reading import validated
from prnas.space.checks import STRICT, checked_int, checked_tuple

T = TypeVar("T")
MAX_NODES = 64
Role = Literal["normal", "reduction"]
ROLES: tuple[Role, Role] = ("normal", "reduction")  # all that there may be
Reads = Literal["two", "all"]
NetworkKind = Literal["darts", "residual"]
# How a cell's output is made of its nodes: `last` is the last one alone.
Output = Literal["concat", "mean", "sum", "last"]


@dataclass(frozen=True, slots=True)
class CellShape:
    """The properties that all cells of a network have in common.

    `roles` are the kinds of cell: with one alone, it stands at reductions too. `inputs` says of how
    many cells before it a cell reads the output. A node reads the best `two` of all earlier states,
    or `all` of them; then an edge may also keep 'zero', no connection. The network is that of
    `darts`, where reduction cells halve the images and 1x1 convolutions bring inputs to a cell's
    channels; or the `residual` one of NAS-Bench-201, where residual blocks halve them and a cell
    reads its input as it is.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    #: Kinds of cell: both, or the normal one alone.
    roles: Annotated[tuple[Role, ...], Field(strict=False)] = ROLES
    #: Cells before it, one or two, whose outputs a cell reads.
    inputs: int = 2
    #: Whether a node keeps its best two edges, or all of them.
    reads: Reads = "two"
    #: What is around the cells: as in DARTS, or residual blocks as in NAS-Bench-201.
    network: NetworkKind = "darts"

    def __post_init__(self) -> None:
        object.__setattr__(self, "roles", checked_tuple("roles", self.roles))
        if self.roles not in (ROLES, ROLES[:1]):
            raise ValueError(
                f"roles must be [normal, reduction] or [normal], got {list(self.roles)!s:.60}"
            )
        checked_int("inputs", self.inputs, most=2)
        for name, value, choices in (
            ("reads", self.reads, ("two", "all")),
            ("network", self.network, ("darts", "residual")),
        ):
            if value not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r:.60}")
        if self.network == "residual" and len(self.roles) > 1:
            raise ValueError(
                "the residual network has no reduction cells: its roles must be [normal]"
            )

    def num_edges(self, state: int) -> int:
        """The number of edges of a node in a genotype; `state` is the node's number as a state."""
        return state if self.reads == "all" else min(state, 2)

    def nodes(self, num_nodes: int) -> range:
        """The states that are nodes; those before them are inputs."""
        return range(self.inputs, self.inputs + num_nodes)

    def output_states(self, num_nodes: int, output: Output) -> tuple[int, ...]:
        """The nodes that a searched cell's output is made of."""
        return tuple(self.nodes(num_nodes))[-1 if output == "last" else 0 :]


DARTS = CellShape()
NASBENCH201 = CellShape(("normal",), inputs=1, reads="all", network="residual")
SHAPES: dict[str, CellShape] = {"darts": DARTS, "nasbench201": NASBENCH201}
# The numbers of nodes and the outputs that go with these names, where nothing else is said.
USUAL: dict[str, tuple[int, Output]] = {"darts": (4, "concat"), "nasbench201": (3, "last")}


def shape_to_data(shape: CellShape) -> dict[str, Any]:
    """Plain data, as files hold it."""
    return {**asdict(shape), "roles": list(shape.roles)}


def shape_data(value: Any) -> Any:
    """The data of a shape that may be given by its name."""
    if not isinstance(value, str):
        return shape_to_data(value) if isinstance(value, CellShape) else value
    if value not in SHAPES:
        raise ValueError(f"no shape is called '{value:.60}'." + suggestion(value, SHAPES))
    return shape_to_data(SHAPES[value])


# A shape as a field of another value: an object, or one of the names.
ShapeField = Annotated[CellShape, BeforeValidator(shape_data), PlainSerializer(shape_to_data)]
_ADAPTER: TypeAdapter[CellShape] = TypeAdapter(ShapeField)


def shape_from_data(data: Any) -> CellShape:
    """A shape from parsed YAML or JSON; a `FormatError` names every problem."""
    return validated(_ADAPTER, data, "shape")


def by_role(role: Role, normal: T, reduction: T | None) -> T:
    """The one of two that belongs to a role."""
    if role == "normal":
        return normal
    if reduction is None:
        raise ValueError("there is no reduction: all cells are of one kind")
    return reduction


def check_reduction(shape: CellShape, reduction_shape: CellShape | None) -> None:
    """Raise a `ValueError` if a reduction is missing, one too many, or of another shape."""
    if reduction_shape is None and "reduction" in shape.roles:
        raise ValueError("reduction: is missing")
    if reduction_shape is not None and "reduction" not in shape.roles:
        raise ValueError("reduction: there is none in a shape whose only role is normal")
    if reduction_shape is not None and reduction_shape != shape:
        raise ValueError("reduction: its shape must be that of the normal cell")


def width(output: Output, num_states: int) -> int:
    """The factor by which a cell's output, made of so many nodes, is wider than its channels."""
    return num_states if output == "concat" else 1
