"""What a kind of attack is: things made once, and cases made from them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

# Writes a case's input into a folder, and returns the command line to try on it.
Maker = Callable[[Random, Path], list[str]]


@dataclass(frozen=True)
class Arena:
    """Where a kind works. `pristine` holds what cases are made from, and must not change."""

    pristine: Path
    canary: Path  # nobody may make it


@dataclass(frozen=True)
class Kind:
    """`prepare` makes a maker of cases. `share` is the affordable part of the number of cases."""

    name: str
    prepare: Callable[[Arena], Maker]
    share: float = 1.0
    pure: bool = True  # what is refused leaves nothing behind, not even in its own folder
    alone: bool = True  # cases also hold in a process of their own
