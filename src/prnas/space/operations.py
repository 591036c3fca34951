"""Candidate operations as immutable values: what an edge may compute, not how.

Each class says all that the rest of the program asks of an operation; see `Operation`. Programs add
classes of their own by `prnas.nets.operations.register`.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cache, total_ordering
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, Self, Union, cast

from pydantic import (
    ConfigDict,
    Field,
    GetPydanticSchema,
    PlainSerializer,
    PlainValidator,
    TypeAdapter,
)

from prnas.space.checks import LARGEST, STRICT, checked_int, checked_kernel, checked_tuple
from prnas.space.layer_size import (
    NetworkSize,
    Pixels,
    bn_size,
    conv_size,
    halved,
    pointwise_bn_size,
)

Parameter = int | str | tuple[int, ...]


@total_ordering
@dataclass(frozen=True, slots=True)
class Operation(ABC):
    """An operation, which says of itself what others need to know.

    Its fields are its parameters, checked when it is created, and `type`, its name in files. Order,
    JSON and similarity follow from them; the rest, each class has to say.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    category: ClassVar[str]  # a word for statistics, plots and colours; classes may share it
    rank: ClassVar[int]  # the class's position in the order of all operations
    labels: ClassVar[re.Pattern[str]]  # what its labels look like; see `from_match`
    examples: ClassVar[tuple[str, ...]]  # labels, as people write them

    @property
    @abstractmethod
    def label(self) -> str:
        """The operation in a few characters, unlike any other's."""

    @classmethod
    def from_match(cls, match: re.Match[str]) -> Self:
        """The operation whose label matched `labels`."""
        return cls()

    @property
    @abstractmethod
    def cost(self) -> float:
        """Its time in a supernet, forward and backward, in units of a separable 3x3 convolution."""

    @abstractmethod
    def size(self, channels: int, pixels: Pixels, stride: int) -> NetworkSize:
        """Its size in a final network, where it reads `pixels`."""

    def parameters(self) -> dict[str, Parameter]:
        """The values that tell it from others of its class, by the names of their fields."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.compare}

    def sort_key(self) -> tuple[Any, ...]:
        """The key of the order of operations: by class, then by parameters."""
        return (self.rank, *self.parameters().values())

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Operation):
            return NotImplemented
        return self.sort_key() < other.sort_key()

    def similarity(self, other: "Operation") -> float:
        """0 across classes, else (1+k)/(1+n) for k of n equal parameters.

        Sequences count partly: one for an equal length and one for each equal entry, of one and as
        many as the shorter has entries. So the paper does with expansions.
        """
        if type(self) is not type(other):
            return 0.0
        mine, theirs = self.parameters().values(), other.parameters().values()
        return sum(map(_agreement, mine, theirs), start=1) / (1 + len(mine))


def _agreement(own: Parameter, other: Parameter) -> float:
    if isinstance(own, tuple) and isinstance(other, tuple):
        equal = sum(map(int.__eq__, own, other))
        return ((len(own) == len(other)) + equal) / (1 + min(len(own), len(other)))
    return own == other


def type_of(kind: type[Operation]) -> str:
    """The name of a class of operations in files: the default of its field `type`."""
    return cast(str, {field.name: field.default for field in fields(kind)}["type"])


@dataclass(frozen=True, slots=True)
class Convolution(Operation):
    """The base of convolutions; the rules about convolutions hold for all that derive from it.

    On every edge the best of them stays until the last cycle; a setting's limits bound them; `grow
    kernel` and `shrink kernel` apply; statistics count them and their kernel sizes.
    """

    kernel: int


@dataclass(frozen=True, slots=True)
class Conv(Convolution):
    """A chain of separable convolutions: ReLU, depthwise, pointwise, batch normalisation.

    With `expansions = (m1, ..., mn)` there are n+1 of them, of widths C, m1*C, ..., mn*C, C.
    All share `kernel` and `dilation`; only the first carries a stride.
    """

    category = "conv"
    rank = 3
    labels = re.compile(
        r"conv ([0-9]{1,4})x\1(?: d([0-9]{1,4}))?"
        r"(?: [×x]\[ ?([0-9]{1,4}(?: ?, ?[0-9]{1,4})*) ?\])?"
    )
    examples = ("conv 3x3", "conv 5x5 d2 x[1,2]")
    type: Literal["conv"] = field(default="conv", kw_only=True, repr=False, compare=False)
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

    @classmethod
    def from_match(cls, match: re.Match[str]) -> Self:
        widths = match[3].split(",") if match[3] else ()
        return cls(int(match[1]), int(match[2] or 1), tuple(map(int, widths)))

    @property
    def cost(self) -> float:
        return 1.0 + sum(self.expansions)

    def size(self, channels: int, pixels: Pixels, stride: int) -> NetworkSize:
        out = halved(pixels) if stride == 2 else pixels
        widths = [channels, *(width * channels for width in self.expansions), channels]
        total = NetworkSize()
        for c_in, c_out in pairwise(widths):
            total += conv_size(self.kernel**2 * c_in, out) + pointwise_bn_size(c_in, c_out, out)
        return total

    def sort_key(self) -> tuple[int, ...]:
        return (self.rank, len(self.expansions), *self.expansions, self.kernel, self.dilation)


@dataclass(frozen=True, slots=True)
class Pool(Operation):
    """Max- or average-pooling over `kernel` x `kernel` pixels."""

    category = "pool"
    rank = 2
    labels = re.compile(r"(max|avg) ([0-9]{1,4})x\2")
    examples = ("max 3x3", "avg 3x3")
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

    @classmethod
    def from_match(cls, match: re.Match[str]) -> Self:
        return cls(cast(Literal["max", "avg"], match[1]), int(match[2]))

    @property
    def cost(self) -> float:
        return 0.15  # computed once for all edges that leave a state

    def size(self, channels: int, pixels: Pixels, stride: int) -> NetworkSize:
        return NetworkSize()

    def sort_key(self) -> tuple[int, ...]:
        return (self.rank, self.kernel, 0 if self.kind == "max" else 1)


@dataclass(frozen=True, slots=True)
class Skip(Operation):
    """The identity; at stride 2, a factorized reduction."""

    category = "skip"
    rank = 1
    labels = re.compile("skip")
    examples = ("skip",)
    type: Literal["skip"] = field(default="skip", kw_only=True, repr=False, compare=False)

    @property
    def label(self) -> str:
        return "skip"

    @property
    def cost(self) -> float:
        return 0.05

    def size(self, channels: int, pixels: Pixels, stride: int) -> NetworkSize:
        return (
            NetworkSize() if stride == 1 else pointwise_bn_size(channels, channels, halved(pixels))
        )


@dataclass(frozen=True, slots=True)
class Zero(Operation):
    """No connection. A genotype keeps it only where nodes read all states (see `CellShape`)."""

    category = "zero"
    rank = 0
    labels = re.compile("zero")
    examples = ("zero",)
    type: Literal["zero"] = field(default="zero", kw_only=True, repr=False, compare=False)

    @property
    def label(self) -> str:
        return "zero"

    @property
    def cost(self) -> float:
        return 0.05

    def size(self, channels: int, pixels: Pixels, stride: int) -> NetworkSize:
        return NetworkSize()


@dataclass(frozen=True, slots=True)
class Conv1x7x1(Operation):
    """ReLU, full 1x7 and 7x1 convolutions, batch normalisation: AmoebaNet's cell alone has it."""

    category = "conv"
    rank = 4
    labels = re.compile("conv 1x7 7x1")
    examples = ("conv 1x7 7x1",)
    type: Literal["conv_1x7_7x1"] = field(
        default="conv_1x7_7x1", kw_only=True, repr=False, compare=False
    )

    @property
    def label(self) -> str:
        return "conv 1x7 7x1"

    @property
    def cost(self) -> float:
        return 2.0

    def size(self, channels: int, pixels: Pixels, stride: int) -> NetworkSize:
        out = halved(pixels) if stride == 2 else pixels
        row = conv_size(7 * channels**2, (pixels[0], out[1]))
        return row + conv_size(7 * channels**2, out) + bn_size(channels)


@dataclass(frozen=True, slots=True)
class PlainConv(Convolution):
    """ReLU, a full convolution, batch normalisation: the convolutions of NAS-Bench-201."""

    category = "conv"
    rank = 5
    labels = re.compile(r"plain ([0-9]{1,4})x\1")
    examples = ("plain 1x1", "plain 3x3")
    type: Literal["plain_conv"] = field(
        default="plain_conv", kw_only=True, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        checked_kernel(self.kernel)

    @property
    def label(self) -> str:
        return f"plain {self.kernel}x{self.kernel}"

    @classmethod
    def from_match(cls, match: re.Match[str]) -> Self:
        return cls(int(match[1]))

    @property
    def cost(self) -> float:
        return 0.4 if self.kernel == 1 else 1 + self.kernel / 6

    def size(self, channels: int, pixels: Pixels, stride: int) -> NetworkSize:
        out = halved(pixels) if stride == 2 else pixels
        return conv_size((self.kernel * channels) ** 2, out) + bn_size(channels)


# All classes of operations by their type, which is their name in files.
OPERATIONS: dict[str, type[Operation]] = {
    type_of(kind): kind for kind in (Conv, Pool, Skip, Zero, Conv1x7x1, PlainConv)
}
CATEGORIES: list[str] = list(dict.fromkeys(kind.category for kind in OPERATIONS.values()))


def register(kind: type[Operation], check: Callable[[Operation], None]) -> None:
    """Let pools, genotypes and files hold operations of a class that is not part of prnas.

    `check` raises an exception for an example that something is wrong with. Programs call
    `prnas.nets.operations.register`, which asks for the class's module too.
    """
    name = type_of(kind)
    others = [other for key, other in OPERATIONS.items() if key != name]
    if name in OPERATIONS and OPERATIONS[name].__module__ == __name__:
        raise ValueError(f"'{name}' is an operation of prnas; give yours another type")
    for base in OPERATIONS.values():  # A supernet would compute it as it does its base.
        if base.__module__ == __name__ and issubclass(kind, base):
            raise ValueError(
                f"'{name}' derives from {base.__name__}; derive it from Operation or Convolution"
            )
    if kind.rank in (other.rank for other in others):
        raise ValueError(f"the rank of '{name}', {kind.rank}, is that of another operation")
    if not kind.examples:
        raise ValueError(f"'{name}' must have examples of its labels")
    for label in kind.examples:
        match = kind.labels.fullmatch(label)
        if match is None or any(other.labels.fullmatch(label) for other in others):
            raise ValueError(f"'{label}' must match the labels of '{name}', and of no other")
        op = kind.from_match(match)
        if op.label != label or TypeAdapter(kind).validate_json(json.dumps(to_json(op))) != op:
            raise ValueError(f"'{label}' must stay the same as a label and in JSON, got {op}")
        check(op)
    OPERATIONS[name] = kind
    if kind.category not in CATEGORIES:
        CATEGORIES.append(kind.category)


def from_label(text: str) -> Operation:
    """The operation that a label names; the inverse of `.label` (an ASCII x may stand for ×)."""
    label = " ".join(text.split())
    for kind in OPERATIONS.values():
        if match := kind.labels.fullmatch(label):
            return kind.from_match(match)
    examples = ", ".join(f"'{label}'" for kind in OPERATIONS.values() for label in kind.examples)
    raise ValueError(f"no operation is called {text!r:.60}; write one like {examples}")


def to_json(op: Operation) -> dict[str, Any]:
    """A plain JSON object whose `type` tells the operation's class."""
    data: dict[str, Any] = {"type": type_of(type(op)), **op.parameters()}
    return {key: [*value] if isinstance(value, tuple) else value for key, value in data.items()}


@cache
def _union(*kinds: type[Operation]) -> TypeAdapter[Operation]:
    union: Any = Annotated[Union[kinds], Field(discriminator="type")]  # noqa: UP007  # pyright: ignore
    return TypeAdapter(union)


def _read(data: Any) -> Operation:
    if isinstance(data, str):
        return from_label(data)
    return _union(*OPERATIONS.values()).validate_json(json.dumps(data))


# How files say an operation: a JSON object, or the label that people write by hand. Asks for the
# classes when it is used, since a program may register more of them.
OperationField = Annotated[
    Operation,
    PlainValidator(_read),
    PlainSerializer(to_json),
    GetPydanticSchema(None, lambda _, handler: handler(_union(*OPERATIONS.values()).core_schema)),
]
