"""Published cells, by name, with what their papers report."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, ConfigDict, PlainSerializer, TypeAdapter

from prnas.io.errors import FormatError, suggestion
from prnas.io.reading import parse_json
from prnas.space.checks import STRICT
from prnas.space.genotype import Genotype

Error = tuple[float, float | None]  # mean and standard deviation, in per cent


@dataclass(frozen=True, slots=True)
class ZooEntry:
    """A published genotype. Errors are test errors in per cent, parameters are in millions.

    `method_error` is the mean over the searches of its paper on CIFAR-10, where an error of this
    very cell is not known. `source` is where the cell is written, if not in the paper.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT | ConfigDict(arbitrary_types_allowed=True)
    title: str
    citation: str
    reference: str
    cifar10_error: Error | None
    cifar100_error: Error | None
    published_parameters: float | None
    gpu_days: float | None
    note: str
    genotype: Annotated[Genotype, BeforeValidator(Genotype.from_json)]
    method_error: Error | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Absent:
    """A published cell that a genotype cannot hold, by its numbers and the reason.

    `method_error` is as in `ZooEntry`; a number that is not known is `None`.
    """

    title: str
    citation: str
    reference: str
    cifar10_error: Error | None
    published_parameters: float
    gpu_days: float | None
    reason: str
    method_error: Error | None = None

    def __str__(self) -> str:
        days = "unknown GPU days" if self.gpu_days is None else f"{self.gpu_days:g} GPU days"
        return (
            f"{self.title} ({self.citation}, {self.reference}; {self._error()}, "
            f"{self.published_parameters} M parameters, {days}) is known by "
            f"its numbers only: {self.reason}"
        )

    def _error(self) -> str:
        error = self.cifar10_error or self.method_error
        if error is None:
            return "CIFAR-10 error unknown"
        mean, spread = error
        shown = f"CIFAR-10 {mean:.2f}" + ("" if spread is None else f" ± {spread:.2f}") + " %"
        if self.cifar10_error is None:
            shown += " as the mean over its paper's searches, of this very cell unknown"
        return shown


ABSENT: dict[str, Absent] = {
    "amoebanet-b": Absent(
        "AmoebaNet-B",
        "Real, Aggarwal, Huang and Le, AAAI 2019",
        "arXiv:1802.01548",
        (2.55, 0.05),
        2.8,
        3150,
        "its cells have plain 1x1 and 3x3 convolutions and a 2x2 max-pooling, and one's output "
        "names an input of the cell, which a genotype cannot hold",
    ),
    "nasp-12": Absent(
        "NASP with 12 operations",
        "Yao, Xu, Tu and Zhu, AAAI 2020",
        "arXiv:1905.13577",
        (2.50, None),
        7.4,
        0.3,
        "its normal cell has full 3x3 and 3x1-1x3 convolutions after DARTS's fashion, its "
        "reduction cell a 5x5 max-pooling, which are no operations of this space; the numbers are "
        "those of PR-DARTS's table, not looked up in the paper itself",
    ),
    "fairdarts-a": Absent(
        "FairDARTS_a",
        "Chu, Zhou, Zhang and Li, ECCV 2020",
        "arXiv:1911.12126",
        None,
        2.83,
        None,
        "of its normal cell's four nodes, one has no input and two have one, where a node of a "
        "genotype reads two",
        method_error=(2.54, 0.05),
    ),
}


@cache
def entries() -> dict[str, ZooEntry]:
    """Every entry by name."""
    text = (files("prnas.space") / "zoo.json").read_text(encoding="utf-8")
    parse_json(text)  # no key twice: a cell would vanish unseen
    return TypeAdapter(dict[str, ZooEntry]).validate_json(text)


def names() -> list[str]:
    """The names of the published cells."""
    return list(entries())


def entry(name: str) -> ZooEntry:
    """A published cell with its results; an unknown name is answered with the known ones."""
    if name in ABSENT:
        raise FormatError([str(ABSENT[name])])
    if name not in entries():
        message = f"no published cell is called '{name:.60}'."
        raise FormatError([message + suggestion(name, names())])
    return entries()[name]


def get(name: str) -> Genotype:
    """The genotype of a published cell."""
    return entry(name).genotype


def genotype_data(value: Any) -> Any:
    """The data of a genotype that may be given by a published cell's name."""
    return get(value).to_json() if isinstance(value, str) else value


def _genotype(value: Any) -> Genotype:
    return value if isinstance(value, Genotype) else Genotype.from_json(genotype_data(value))


# A genotype as a field of another value: read from JSON or by a published name, written as JSON.
GenotypeField = Annotated[
    Genotype, BeforeValidator(_genotype), PlainSerializer(Genotype.to_json, dict[str, Any])
]


def _optional_genotype(value: Any) -> Genotype | None:
    return None if value is None else _genotype(value)


def _optional_json(genotype: Genotype | None) -> dict[str, Any] | None:
    return None if genotype is None else genotype.to_json()


# The same where a network may have no cells.
OptionalGenotypeField = Annotated[
    Genotype | None,
    BeforeValidator(_optional_genotype),
    PlainSerializer(_optional_json, dict[str, Any] | None),
]
