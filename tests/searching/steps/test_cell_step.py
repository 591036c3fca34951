"""The step that trains cells as they would be derived: the rest of the supernet stays."""

from pathlib import Path

import pytest
import torch

from prnas.config.search import SearchConfig
from prnas.data.dataset import load
from prnas.nets.cell_paths import active_of_cells
from prnas.runs.batch_size import CpuProbe
from prnas.runs.context import RunContext
from prnas.runs.processes import Processes
from prnas.searchers.cells import CellSpace
from prnas.searching.search import Search
from prnas.searching.steps.sampled import RandomCellStep
from prnas.space.genotype import Genotype
from tests.support.settings import small_config


def made(images: Path) -> Search:
    config: SearchConfig = small_config(
        images,
        architecture={"step": "sampled-cells", "scoring": "paths"},
        network={"nodes": 3},
        searcher={"method": "random", "budget": {"evaluations": 2}},
    )
    processes = Processes(config.compute)
    data = load(config.images, processes.device, lambda _: None, 1e9)
    indices = Search.prepare(config, data, 1)
    search = Search(RunContext(config, data, indices, processes, CpuProbe(None), None))
    search.state.supernet.train()
    return search


def test_everything_outside_the_cell_is_bit_identical_after_a_step(images: Path) -> None:
    """Weights, their momentum and the statistics of batch normalisation."""
    search = made(images)
    assert isinstance(search.step, RandomCellStep)
    supernet, cells = search.state.supernet, list[Genotype]()
    for number in range(3):
        before = {name: value.clone() for name, value in search.state.tensors().items()}
        cells.append(search.step.cell("write", number))
        active = active_of_cells(supernet.pools, cells[-1])
        search.take_step()
        search.state.position.cycle_step += 1
        moved = {True: 0, False: 0}  # in the cell, and outside
        for name, tensor in search.state.tensors().items():
            parts = name.split("/")[1].split(".")
            if parts[0] != "cells" or parts[2] != "operations":
                continue
            cell = active[supernet.search_cells[int(parts[1])].plan.role]
            assert cell is not None
            inside = int(parts[4]) in cell[int(parts[3])]
            moved[inside] += name not in before or not torch.equal(before[name], tensor)
        assert moved[True] > 10
        assert moved[False] == 0
    assert len(set(cells)) == 3


def test_cells_are_drawn_as_a_searcher_draws_them(images: Path) -> None:
    search = made(images)
    assert isinstance(search.step, RandomCellStep)
    space = CellSpace.of_pools(search.state.supernet.pools)
    cells = [search.step.cell("write", number) for number in range(300)]
    assert all(space.holds(cell) for cell in cells)
    pairs = [tuple(edge.input for edge in cell.cell("reduction").nodes[1]) for cell in cells]
    assert [pairs.count(pair) / 300 for pair in ((0, 1), (0, 2), (1, 2))] == pytest.approx(
        [1 / 3] * 3, abs=0.11
    )
    assert search.step.cell("write", 7) == cells[7]
