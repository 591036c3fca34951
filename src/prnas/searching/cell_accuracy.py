"""The accuracy of a cell with the weights that a supernet shares."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prnas.data.augment import plain
from prnas.io.memory import is_out_of_memory
from prnas.nets.cell_paths import calibrated, cell_logits, cell_scores
from prnas.runs import faults
from prnas.runs.preparation import torch_generator
from prnas.space.genotype import Genotype

if TYPE_CHECKING:
    from prnas.searching.search import Search

Batch = tuple[Tensor, Tensor]  # images and labels


def batches_of(indices: Tensor, size: int) -> Sequence[Tensor]:
    """Batches of at most that size, which differ by one image at most."""
    return torch.tensor_split(indices, -(-len(indices) // size))


def fetched(search: "Search", batches: Iterable[Tensor]) -> Iterator[Batch]:
    """Images of these indices, not augmented, with their labels."""
    images = search.data.train
    for indices in batches:
        pixels = plain(images.fetch(indices), search.normalization).to(search.processes.dtype)
        yield pixels, images.labels[indices].to(pixels.device)


def num_correct(
    search: "Search",
    genotype: Genotype,
    batches: Iterable[Batch],
    calibration: Sequence[Tensor] = (),
) -> int:
    """The number of images that a cell gets right.

    Normalised by the statistics of their batches; or by those of `calibration`, batches of other
    images, if there are any.
    """
    supernet, correct = search.state.supernet, 0
    try:
        with search.processes.autocast():
            if calibration:
                with calibrated(supernet, genotype, calibration):
                    for images, labels in batches:
                        logits = cell_logits(supernet, images, genotype)
                        correct += int((logits.argmax(1) == labels).sum())
                return correct
            for images, labels in batches:
                scores = cell_scores(supernet, images, labels, [genotype])
                correct += int(scores.correct.sum())
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise faults.out_of_memory(search) from None
    return correct


class BatchAccuracy:
    """The accuracy of cells, each on another batch of the architecture half.

    The half is shuffled anew whenever all its batches were used; what comes follows from the seed
    and a number alone. Processes share out the images of a batch.
    """

    def __init__(self, search: "Search") -> None:
        self.search, self.half = search, search.indices["architecture"]
        self.size = min(search.config.validation.batch, len(self.half))
        self._round, self._order = -1, self.half

    def __call__(self, genotype: Genotype, number: int) -> float:
        """The accuracy on the batch of that number, from 0."""
        round_number, index = divmod(number, len(self.half) // self.size)
        if round_number != self._round:
            names = ("rewards", self.search.state.position.cycle, round_number)
            generator = torch_generator(self.search.config.seed, *names)
            order = torch.randperm(len(self.half), generator=generator)
            self._round, self._order = round_number, self.half[order]
        batch = self._order[index * self.size : (index + 1) * self.size]
        processes = self.search.processes
        own = torch.tensor_split(batch, processes.size)[processes.rank]
        mine = [own] if len(own) else []
        correct = num_correct(self.search, genotype, fetched(self.search, mine))
        (total,) = processes.sum([float(correct)])
        return total / len(batch)
