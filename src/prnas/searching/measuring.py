"""Losses without candidates, and saliencies: measured by all processes of a search together.

The images are as they are, batch normalisation uses the statistics of their batches, and not a bit
of the search's state changes. Batches are the same for any number of processes, which share them
out; each number is computed by one of them, so that all have the same ones.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prnas.data.augment import plain
from prnas.io.memory import is_out_of_memory, recover_memory
from prnas.nets.cell_paths import cell_scores
from prnas.nets.paths import Omitted, path_scores
from prnas.nets.removal import CandidateIndex, ImageScores, scores_without
from prnas.nets.saliency import saliencies
from prnas.runs import faults
from prnas.runs.events import Validating
from prnas.searching.budget import PASSES
from prnas.space.genotype import Genotype, Role
from prnas.space.paths import Path

if TYPE_CHECKING:
    from prnas.searching.search import Search

Without = frozenset[CandidateIndex]


class Measuring:
    """Measures the supernet of a search on given images, remembering what it has measured."""

    def __init__(self, search: "Search", half: Tensor, removal: int, saliency: int) -> None:
        """`half`: the architecture half in an order of its own, the first of which are measured."""
        self.search, self.renormalise = search, search.config.architecture.renormalise
        self._half, self._removal, self._saliency = half, half[:removal], half[:saliency]
        self._batch = min(search.config.validation.batch, removal)
        self._losses: dict[Without, tuple[float, ...]] = {}
        self._done, self._total = 0, 0

    @property
    def num_passes(self) -> int:
        """The number of sets of candidates that were left out."""
        return sum(bool(removed) for removed in self._losses)

    @property
    def num_images(self) -> int:
        """Images that were measured without some candidates."""
        return len(self._removal) if self._losses else 0

    def losses(self, wanted: Iterable[Without]) -> Mapping[Without, tuple[float, ...]]:
        """The loss of each image without each of these sets of candidates, and of those before."""
        wanted = list(wanted)
        while missing := [
            removed for removed in dict.fromkeys(wanted) if removed not in self._losses
        ]:
            measured = self._measured(missing)
            if measured is None:
                if self._batch <= 2:
                    raise faults.out_of_memory(self.search)
                self._batch = -(-self._batch // 2)
                self._losses = {}  # other batches have other statistics: all must be of the same
            else:
                self._losses |= measured
        return self._losses

    def _measured(self, removals: Sequence[Without]) -> dict[Without, tuple[float, ...]] | None:
        batches = _split(self._removal, -(-len(self._removal) // self._batch))
        chunks = [removals[at : at + PASSES] for at in range(0, len(removals), PASSES)]
        pairs = [(batch, chunk) for batch in batches for chunk in chunks]

        def task(batch: Tensor, chunk: Sequence[Without]) -> list[float]:
            scores = scores_without(
                self.search.state.supernet,
                *self._images(batch),
                chunk,
                renormalise=self.renormalise,
            )
            return scores.loss.double().flatten().tolist()

        rows = self._shared_out([(pair, len(pair[0]) * len(pair[1])) for pair in pairs], task)
        if rows is None:
            return None
        losses: dict[Without, list[float]] = {removed: [] for removed in removals}
        for (batch, chunk), row in zip(pairs, rows, strict=True):
            for number, removed in enumerate(chunk):
                losses[removed] += row[number * len(batch) : (number + 1) * len(batch)]
        return {removed: tuple(values) for removed, values in losses.items()}

    def saliency(self, size: int) -> dict[Role, list[list[tuple[float, ...]]]]:
        """The predicted rise of the loss by cell, edge and candidate, in batches of `size`."""
        supernet = self.search.state.supernet
        sizes: dict[Role, list[int]] = {
            role: [len(edge) for edge in edges] for role, edges in supernet.mixing().items()
        }

        def task(batch: Tensor) -> list[float]:
            by_role = saliencies(supernet, *self._images(batch), renormalise=self.renormalise)
            return [value for role in sizes for edge in by_role[role] for value in edge.tolist()]

        number = len(self._saliency)
        rows, length = None, sum(map(sum, sizes.values()))
        while rows is None:
            batches = _split(self._saliency, max(number // size, 1))
            rows = self._shared_out([((batch,), length) for batch in batches], task)
            if rows is None and size <= 2:
                raise faults.out_of_memory(self.search)
            size = -(-size // 2)
        columns = iter(zip(*rows, strict=True))
        return {
            role: [[next(columns) for _ in range(size)] for size in edges]
            for role, edges in sizes.items()
        }

    def path_losses(
        self, groups: Sequence[Sequence[tuple[Path, Omitted | None]]], batch: int
    ) -> list[list[float]]:
        """The mean loss of each path of each group, on a batch of images that its group shares."""
        return self._group_losses(path_scores, groups, batch)

    def cell_losses(self, groups: Sequence[Sequence[Genotype]], batch: int) -> list[list[float]]:
        """The mean loss of each cell of each group, on a batch of images that its group shares."""
        return self._group_losses(cell_scores, groups, batch)

    def _group_losses(
        self, score: Callable[..., ImageScores], groups: Sequence[Sequence[object]], batch: int
    ) -> list[list[float]]:
        supernet, order = self.search.state.supernet, self._half

        def task(indices: Tensor, networks: Sequence[object]) -> list[float]:
            scores = score(supernet, *self._images(indices), networks)
            return scores.loss.double().mean(1).tolist()

        rows = None
        while rows is None:
            batches = _split(order, max(len(order) // batch, 1))
            tasks = [
                ((batches[number % len(batches)], networks), len(networks))
                for number, networks in enumerate(groups)
            ]
            rows = self._shared_out(tasks, task)
            if rows is None and batch <= 2:
                raise faults.out_of_memory(self.search)
            batch = -(-batch // 2)
        return rows

    def _images(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        run, images = self.search, self.search.data.train
        pixels = plain(images.fetch(indices), run.normalization).to(run.processes.dtype)
        return pixels, images.labels[indices].to(pixels.device)

    def _shared_out(
        self,
        tasks: Sequence[tuple[tuple[object, ...], int]],
        act: Callable[..., list[float]],
    ) -> list[list[float]] | None:
        """The numbers that `act` returns for each task, so many each; `None`: out of memory.

        The processes take turns, and learn of each other's numbers.
        """
        run, processes = self.search, self.search.processes
        rows = [[0.0] * length for _, length in tasks]
        own = range(processes.rank, len(tasks), processes.size)
        failed = False
        for done, number in enumerate(own, 1):
            try:
                with processes.autocast():
                    rows[number] = act(*tasks[number][0])
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                failed = True
                break
            run.emit("on_validating", Validating(done, len(own)))
            if processes.size == 1:
                run.stop_on_signal()
        (anywhere,) = processes.maximum([float(failed)])
        if anywhere:
            recover_memory()
            return None
        numbers = iter(processes.sum([value for row in rows for value in row]))
        rows = [[next(numbers) for _ in row] for row in rows]
        if not all(math.isfinite(value) for row in rows for value in row):
            raise faults.not_finite(run, run.weights_part, "loss without candidates")
        return rows


def _split(indices: Tensor, batches: int) -> Sequence[Tensor]:
    """Batches that differ by one image at most."""
    return torch.tensor_split(indices, min(batches, len(indices)))
