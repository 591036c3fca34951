"""Genotypes as fields of other values: read from JSON or by a published name, written as JSON."""

from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from prnas.space import zoo
from prnas.space.genotype import Genotype


def genotype_data(value: Any) -> Any:
    """The data of a genotype that may be given by a published cell's name."""
    return zoo.get(value).to_json() if isinstance(value, str) else value


def _genotype(value: Any) -> Genotype:
    return value if isinstance(value, Genotype) else Genotype.from_json(genotype_data(value))


def _data(genotype: Genotype) -> dict[str, Any]:
    return genotype.to_json()


GenotypeField = Annotated[
    Genotype, BeforeValidator(_genotype), PlainSerializer(_data, dict[str, Any])
]
