"""Plain data out of a checkpoint, checked: what does not fit is told before a step is taken."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor


def whole(name: str, value: Any, most: int | None = None) -> int:
    """A number of things; a `ValueError` otherwise."""
    if type(value) is not int or value < 0 or (most is not None and value > most):
        limit = "" if most is None else f" to {most}"
        raise ValueError(f"{name} must be a whole number from 0{limit}, got {value!r:.60}")
    return value


def finite(name: str, value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r:.60}")
    return value


def finite_each(name: str, values: Mapping[str, Any], keys: Iterable[str]) -> dict[str, float]:
    """A finite number for each of the keys, and nothing else."""
    if set(values) != set(keys):
        raise ValueError(f"{name} must have {', '.join(keys)}, got {', '.join(values)!s:.60}")
    return {key: finite(f"{name}.{key}", value) for key, value in values.items()}


def optimizer_state(name: str, state: Mapping[str, Tensor], keys: frozenset[str]) -> None:
    """Of one parameter: all that its optimizer keeps, the count of steps as a single number."""
    if state.keys() != keys:
        raise ValueError(f"{name} must have {', '.join(sorted(keys))}, got {sorted(state)!s:.60}")
    step = state.get("step")
    if step is not None and (step.dim() or not step.is_floating_point()):
        raise ValueError(f"{name}/step must be a single number")
