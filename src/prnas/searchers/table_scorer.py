"""Scores looked up: what a short training of a cell of NAS-Bench-201 came to."""

from prnas.space.genotype import Genotype
from prnas.space.nasbench201 import table
from prnas.space.nasbench201.cells import index_of
from prnas.space.nasbench201.truth import DATA_SETS

# A training of 12 epochs on CIFAR-10 saw half of its 50,000 training images in each.
EPOCHS = 12
_TRAINED_ON = {"cifar10": 25_000, "cifar100": 50_000, "imagenet16-120": 151_700}


class TableScorer:
    """The validation accuracy after 12 epochs, as a fraction: a signal, and not the judge."""

    def __init__(self, data: str = "cifar10") -> None:
        suffix = next(data_set.suffix for data_set in DATA_SETS if data_set.name == data)
        self._scores = table.column(f"e12_val_{suffix}")
        self.images = EPOCHS * _TRAINED_ON[data]  # Images that the training of a cell saw.

    def score(self, genotype: Genotype) -> float:
        index = index_of(genotype)
        if index is None:
            raise ValueError("only cells of NAS-Bench-201 are in the table")
        return self._scores[index] / (100 * table.UNITS)
