"""Values that a config leaves open: keys that say `auto`, until the images are known."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

if TYPE_CHECKING:
    from prnas.config.sections import RunConfig

C = TypeVar("C", bound="RunConfig")
AUTO = "auto"
# The keys that may say `auto`, with a value that stands in for each until it is chosen: one that is
# valid beside any other. `*` is every entry of a list.
STAND_INS: dict[str, Any] = {
    "data.image_size": None,
    "data.images": None,
    "data.flip": True,
    "data.crop_padding": 0,
    "data.cutout": 0,
    "network.cells": 3,
    "network.channels": 2,
    "batch.min": 1,
    "batch.max": 1_000_000,
    "schedule.cycles.*.epochs": 100_000,
    "schedule.cycles.*.grace_epochs": 0,
    "training.epochs": 1_000_000,
}


@dataclass(frozen=True)
class Draft(Generic[C]):
    """A config that is checked, but for the values of its `open` keys, which are stand-ins."""

    config: C
    open: tuple[str, ...] = ()

    def to_data(self) -> dict[str, Any]:
        """Plain data, in which the open keys say `auto`."""
        return put(self.config.to_data(), dict.fromkeys(self.open, AUTO))

    def settled(self, values: Mapping[str, Any]) -> C:
        """The config with a value for each of the open keys."""
        if not self.open:
            return self.config
        own = {key: values[key] for key in self.open}
        return type(self.config).from_data(put(self.config.to_data(), own))


def set_apart(data: Any) -> tuple[Any, tuple[str, ...]]:
    """A copy of plain data with stand-ins for what says `auto`, and the keys that did."""
    try:
        result = copy.deepcopy(data)
    except RecursionError:  # Nested too deeply; whoever checks the data says so.
        return data, ()
    keys: list[str] = []
    for pattern, stand_in in STAND_INS.items():
        for key, holder, index in list(_values_at(result, pattern.split("."))):
            if holder[index] == AUTO:
                holder[index] = stand_in
                keys.append(key)
    return result, tuple(keys)


def put(data: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of plain data with these values, whose keys are there."""
    result = copy.deepcopy(data)
    for path, value in values.items():
        for _, holder, index in _values_at(result, path.split(".")):
            holder[index] = value
    return result


def _values_at(data: Any, names: Sequence[str], path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Key, section and index in it of every value at a path, whatever the data."""
    first, *rest = names
    indices: list[Any] = []
    if isinstance(data, dict) and first in data:
        indices = [first]
    elif isinstance(data, list):
        size = len(cast(list[Any], data))
        indices = list(range(size)) if first == "*" else [int(first)] if first.isdecimal() else []
        indices = [index for index in indices if index < size]
    for index in indices:
        key = f"{path}.{index}" if path else str(index)
        if rest:
            yield from _values_at(data[index], rest, key)
        else:
            yield key, data, index
