"""The accuracies of NAS-Bench-201's cells. No search reads them before it has ended."""

from bisect import bisect_right
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from prnas.space.genotype import Genotype
from prnas.space.nasbench201 import table
from prnas.space.nasbench201.cells import NUM_CELLS, genotype_of, index_of, string_of
from prnas.space.network_size import network_size

CHANNELS, CELLS = 16, 15  # size of the network that was trained


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set that all cells were trained on."""

    name: str
    title: str
    classes: int
    image_size: int
    suffix: str  # suffix of its columns in the table


DATA_SETS = (
    DataSet("cifar10", "CIFAR-10", 10, 32, "c10"),
    DataSet("cifar100", "CIFAR-100", 100, 32, "c100"),
    DataSet("imagenet16-120", "ImageNet16-120", 120, 16, "in16"),
)


@dataclass(frozen=True, slots=True)
class TrueAccuracy:
    """A cell on one data set. Accuracies are in per cent.

    `test` is the mean of all trainings of 200 epochs, `validation` that of one of them;
    `test_12` and `validation_12` are of 12 epochs. `rank` (1 is the best; equals share one) and
    `regret` (how much the best is better) are by `test`. Sizes are those of the network that was
    trained, as prnas counts them.
    """

    test: float
    validation: float
    test_12: float
    validation_12: float
    rank: int
    regret: float
    parameters: int
    macs: int


@dataclass(frozen=True, slots=True)
class Truth:
    """All that is known of a cell; `data_sets` by the names of `DATA_SETS`."""

    index: int
    string: str
    data_sets: dict[str, TrueAccuracy]

    def to_json(self) -> dict[str, Any]:
        return {"cells": NUM_CELLS, **asdict(self)}


def truth_of(genotype: Genotype) -> Truth | None:
    """The table's numbers for a genotype; `None` if it is not a cell of NAS-Bench-201.

    Equivalent cells have been trained each on its own, and differ.
    """
    index = index_of(genotype)
    return None if index is None else truth_at(index)


def truth_at(index: int) -> Truth:
    """The same by the cell's index."""
    genotype = genotype_of(index)
    return Truth(
        index, string_of(index), {data.name: _on(data, index, genotype) for data in DATA_SETS}
    )


def _on(data: DataSet, index: int, genotype: Genotype) -> TrueAccuracy:
    def number(name: str) -> int:
        return table.column(f"{name}_{data.suffix}")[index]

    test, ranked = number("e200_test"), _sorted(f"e200_test_{data.suffix}")
    size = network_size(
        genotype, CHANNELS, CELLS, data.classes, output="last", image_size=data.image_size
    )
    return TrueAccuracy(
        test=test / table.UNITS,
        validation=number("e200_val") / table.UNITS,
        test_12=number("e12_test") / table.UNITS,
        validation_12=number("e12_val") / table.UNITS,
        rank=1 + NUM_CELLS - bisect_right(ranked, test),
        regret=(ranked[-1] - test) / table.UNITS,
        parameters=size.parameters,
        macs=size.macs,
    )


@cache
def _sorted(column: str) -> list[int]:
    return sorted(table.column(column))
