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
    """A published cell that a genotype cannot hold, by its numbers and the reason."""

    title: str
    citation: str
    reference: str
    cifar10_error: Error
    published_parameters: float
    gpu_days: float
    reason: str

    def __str__(self) -> str:
        mean, spread = self.cifar10_error
        error = f"{mean:.2f}" if spread is None else f"{mean:.2f} ± {spread:.2f}"
        return (
            f"{self.title} ({self.citation}, {self.reference}; CIFAR-10 {error} %, "
            f"{self.published_parameters} M parameters, {self.gpu_days:g} GPU days) is known by "
            f"its numbers only: {self.reason}"
        )


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
    )
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
