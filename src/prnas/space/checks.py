"""Checks of values at their birth; the message says the rule and what came instead."""

from typing import Any, cast

from pydantic import ConfigDict

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
    """A list or a tuple, as a tuple: values must be hashable."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"{name} must be a list, got {value!r:.60}")
    return tuple(cast(list[Any], value))
