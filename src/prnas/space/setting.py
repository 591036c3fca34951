"""The settings of the paper, and a user's own: how far morphisms may go, and from where."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter

from prnas.io.errors import FormatError, suggestion
from prnas.io.reading import validated
from prnas.space.checks import LARGEST, STRICT, checked_int, checked_kernel, checked_tuple
from prnas.space.operations import (
    OPERATIONS,
    Conv,
    Convolution,
    Operation,
    OperationField,
    PlainConv,
    Pool,
    Skip,
    Zero,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds within which convolutions may be morphed; `None` is no bound."""

    dilated_1x1: ClassVar[bool] = False  # kernel 1, dilated or not, computes the same
    #: Smallest kernel; kernels are odd.
    kernel_min: int = 3
    #: Largest kernel.
    kernel_max: int = 7
    #: Largest dilation.
    dilation_max: int = 2
    #: Most expansions of a convolution, each of which adds a layer; null: no bound.
    depth_max: int | None = 1
    #: Largest expansion; null: no bound.
    width_max: int | None = 1

    def __post_init__(self) -> None:
        checked_kernel(self.kernel_min)
        checked_kernel(self.kernel_max)
        checked_int("dilation_max", self.dilation_max)
        if self.kernel_min > self.kernel_max:
            raise ValueError(
                f"kernel_min must not exceed kernel_max, got {self.kernel_min} > {self.kernel_max}"
            )
        if self.depth_max is not None:
            checked_int("depth_max", self.depth_max, least=0)
        if self.width_max is not None:
            checked_int("width_max", self.width_max)

    @property
    def depth_bound(self) -> int:
        return LARGEST if self.depth_max is None else self.depth_max

    @property
    def width_bound(self) -> int:
        return LARGEST if self.width_max is None else self.width_max

    def allows(self, op: Operation) -> bool:
        """Whether `op` lies within the limits; only convolutions have any."""
        if isinstance(op, Convolution) and not self.kernel_min <= op.kernel <= self.kernel_max:
            return False
        if not isinstance(op, Conv):
            return True
        return (
            op.dilation <= self.dilation_max
            and len(op.expansions) <= self.depth_bound
            and all(width <= self.width_bound for width in op.expansions)
            and (self.dilated_1x1 or op.kernel > 1 or op.dilation == 1)
        )


MOST_CANDIDATES = 100
INITIAL_POOL: tuple[Operation, ...] = (Pool("max", 3), Pool("avg", 3), Skip(), Conv(3))


@dataclass(frozen=True, slots=True)
class Setting:
    """A search space: limits for the morphisms, and the pool that every edge starts with."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT  # Holds for the values within, too.
    #: Name of the setting.
    name: str = "own"
    #: How far morphisms may go.
    limits: Limits = Limits()
    #: Operations that every edge starts with, by their labels.
    initial_pool: Annotated[tuple[OperationField, ...], Field(strict=False)] = INITIAL_POOL

    def __post_init__(self) -> None:
        object.__setattr__(self, "initial_pool", checked_tuple("initial_pool", self.initial_pool))
        if problems := list(self._problems()):
            raise ValueError("; ".join(problems))

    def _problems(self) -> Iterable[str]:
        if type(self.name) is not str:
            yield f"name must be a string, got {self.name!r:.60}"
        if not all(type(op) in OPERATIONS.values() for op in self.initial_pool):
            yield "initial_pool must hold operations"
            return
        if len(self.initial_pool) > MOST_CANDIDATES:
            yield f"initial_pool holds at most {MOST_CANDIDATES} operations"
        if all(isinstance(op, Zero) for op in self.initial_pool):
            yield "initial_pool must hold an operation other than 'zero'"
        if len(set(self.initial_pool)) < len(self.initial_pool):
            yield "initial_pool holds an operation twice"
        for op in self.initial_pool:
            if not self.limits.allows(op):
                yield f"'{op.label}' of the initial_pool lies outside the limits"


PAPER_SETTINGS = (
    Setting("darts-like", Limits(3, 7, 2, 1, 1)),
    Setting("depth-restricted", Limits(1, 7, 2, 1, 5)),
    Setting("unrestricted", Limits(1, 7, 2, None, None)),
)
# The operations of NAS-Bench-201 (Dong and Yang, 2020), all from the start; and where all but one
# are there at first, and `grow kernel` makes the 3 x 3 convolution. Cells have that shape then.
_PLAIN = Limits(1, 3, 1, 0, 1)
_AVG = Pool("avg", 3)
NASBENCH201_SETTINGS = (
    Setting("nasbench201", _PLAIN, (Zero(), Skip(), PlainConv(1), PlainConv(3), _AVG)),
    Setting("nasbench201-growing", _PLAIN, (Skip(), PlainConv(1), _AVG)),
)
SETTINGS: dict[str, Setting] = {
    setting.name: setting for setting in (*PAPER_SETTINGS, *NASBENCH201_SETTINGS)
}


def named_setting(name: str) -> Setting:
    """One of the `SETTINGS`; an unknown name is answered with the known ones."""
    if name not in SETTINGS:
        raise FormatError([f"no setting is called '{name:.60}'." + suggestion(name, SETTINGS)])
    return SETTINGS[name]


_ADAPTER = TypeAdapter(Setting)


def setting_from_data(data: Any) -> Setting:
    """A user's own setting from parsed YAML or JSON; a `FormatError` names every problem."""
    return validated(_ADAPTER, data, "setting")


def setting_to_data(setting: Setting) -> dict[str, Any]:
    """Plain data that `setting_from_data` reads; operations by their labels."""
    data: dict[str, Any] = _ADAPTER.dump_python(setting, mode="json")
    return {**data, "initial_pool": [op.label for op in setting.initial_pool]}
