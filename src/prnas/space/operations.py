"""Candidate operations as immutable values: what an edge may compute, not how."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import total_ordering
from typing import Annotated, Any, ClassVar, Literal, cast, get_args

from pydantic import BeforeValidator, ConfigDict, Field

# A bound that no sensible network reaches; it keeps a typo from allocating the machine.
LARGEST = 1_000
STRICT = ConfigDict(extra="forbid", strict=True)


def checked_int(name: str, value: object, least: int = 1, most: int = LARGEST) -> int:
    """`value`, or a `ValueError` that says the rule and what came instead."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most}, got {value!r:.60}")
    return value


def checked_kernel(value: object, least: int = 1) -> None:
    """Kernels are odd, so that they have a centre."""
    if checked_int("kernel", value, least) % 2 == 0:
        raise ValueError(f"kernel must be odd, got {value}")


def checked_tuple(name: str, value: object) -> tuple[Any, ...]:
    """Written by hand, a list is as good as a tuple; kept, it must be hashable."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"{name} must be a list, got {value!r:.60}")
    return tuple(cast(list[Any], value))


@total_ordering
class _Ordered:
    """A total order over operations of all types: by type, then by value."""

    __slots__ = ()
    rank: ClassVar[int]

    def sort_key(self) -> tuple[int, ...]:
        return (self.rank,)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, _Ordered):
            return NotImplemented
        return self.sort_key() < other.sort_key()


@dataclass(frozen=True, slots=True)
class Conv(_Ordered):
    """A chain of separable convolutions: ReLU, depthwise, pointwise, batch normalisation.

    With `expansions = (m1, ..., mn)` there are n+1 of them, of widths C, m1*C, ..., mn*C, C.
    All share `kernel` and `dilation`; only the first carries a stride.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    rank: ClassVar[int] = 3
    type: Literal["conv"] = field(default="conv", kw_only=True, repr=False, compare=False)
    kernel: int
    dilation: int = 1
    expansions: Annotated[tuple[int, ...], Field(strict=False)] = ()

    def __post_init__(self) -> None:
        checked_kernel(self.kernel)
        checked_int("dilation", self.dilation)
        object.__setattr__(self, "expansions", checked_tuple("expansions", self.expansions))
        if len(self.expansions) > LARGEST:
            raise ValueError(f"at most {LARGEST} expansions, got {len(self.expansions)}")
        for width in self.expansions:
            checked_int("an expansion", width)

    @property
    def label(self) -> str:
        text = f"conv {self.kernel}x{self.kernel}"
        if self.dilation > 1:
            text += f" d{self.dilation}"
        if self.expansions:
            text += f" ×[{','.join(map(str, self.expansions))}]"
        return text

    def sort_key(self) -> tuple[int, ...]:
        return (self.rank, len(self.expansions), *self.expansions, self.kernel, self.dilation)


@dataclass(frozen=True, slots=True)
class Pool(_Ordered):
    """Max- or average-pooling over `kernel` x `kernel` pixels."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    rank: ClassVar[int] = 2
    type: Literal["pool"] = field(default="pool", kw_only=True, repr=False, compare=False)
    kind: Literal["max", "avg"]
    kernel: int = 3

    def __post_init__(self) -> None:
        if self.kind not in ("max", "avg"):
            raise ValueError(f"kind of pooling must be 'max' or 'avg', got {self.kind!r:.60}")
        checked_kernel(self.kernel, least=3)

    @property
    def label(self) -> str:
        return f"{self.kind} {self.kernel}x{self.kernel}"

    def sort_key(self) -> tuple[int, ...]:
        return (self.rank, self.kernel, 0 if self.kind == "max" else 1)


@dataclass(frozen=True, slots=True)
class Skip(_Ordered):
    """The identity; at stride 2, a factorized reduction."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    rank: ClassVar[int] = 1
    type: Literal["skip"] = field(default="skip", kw_only=True, repr=False, compare=False)

    @property
    def label(self) -> str:
        return "skip"


@dataclass(frozen=True, slots=True)
class Zero(_Ordered):
    """No connection. Only DARTS-style baselines hold it, and no genotype keeps it."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    rank: ClassVar[int] = 0
    type: Literal["zero"] = field(default="zero", kw_only=True, repr=False, compare=False)

    @property
    def label(self) -> str:
        return "zero"


@dataclass(frozen=True, slots=True)
class Conv1x7x1(_Ordered):
    """ReLU, full 1x7 and 7x1 convolutions, batch normalisation: AmoebaNet's cell alone has it."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    rank: ClassVar[int] = 4
    type: Literal["conv_1x7_7x1"] = field(
        default="conv_1x7_7x1", kw_only=True, repr=False, compare=False
    )

    @property
    def label(self) -> str:
        return "conv 1x7 7x1"


Operation = Conv | Pool | Skip | Zero | Conv1x7x1
TYPES: tuple[type[Operation], ...] = get_args(Operation)

_CONV_LABEL = re.compile(r"conv ([0-9]{1,4})x\1(?: d([0-9]{1,4}))?(?: [×x]\[([0-9, ]+)\])?")
_POOL_LABEL = re.compile(r"(max|avg) ([0-9]{1,4})x\2")
_PLAIN: dict[str, Callable[[], Operation]] = {
    "skip": Skip,
    "zero": Zero,
    "conv 1x7 7x1": Conv1x7x1,
}
LABEL_EXAMPLES = "'conv 3x3', 'conv 5x5 d2 x[1,2]', 'max 3x3', 'avg 3x3', 'skip', 'zero'"


def from_label(text: str) -> Operation:
    """The operation that a label names; the inverse of `.label` (an ASCII x may stand for ×)."""
    label = " ".join(text.split())
    if label in _PLAIN:
        return _PLAIN[label]()
    if match := _POOL_LABEL.fullmatch(label):
        return Pool(cast(Literal["max", "avg"], match[1]), int(match[2]))
    if match := _CONV_LABEL.fullmatch(label):
        widths = [part.strip() for part in match[3].split(",")] if match[3] else []
        if all(part.isdecimal() and len(part) < 5 for part in widths):
            return Conv(int(match[1]), int(match[2] or 1), tuple(map(int, widths)))
    raise ValueError(f"no operation is called {text!r:.60}; write one like {LABEL_EXAMPLES}")


def to_json(op: Operation) -> dict[str, Any]:
    """A plain JSON object whose `type` tells the operation's class."""
    data: dict[str, Any] = {one.name: getattr(op, one.name) for one in fields(op)}
    if isinstance(op, Conv):
        data["expansions"] = list(op.expansions)
    return data


def _label_to_json(data: Any) -> Any:
    return to_json(from_label(data)) if isinstance(data, str) else data


# How files say an operation: a JSON object, or the label that people write by hand.
OperationField = Annotated[Operation, Field(discriminator="type"), BeforeValidator(_label_to_json)]
