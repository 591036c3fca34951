"""Candidates that are judged by whole cells, where a node reads two of its inputs."""

import os
import signal
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from prnas.config.search import SearchConfig
from prnas.nets.cell_paths import active_of_cells, cell_scores
from prnas.runs.run import Stopped
from prnas.searching.api import resume, start
from prnas.searching.cell_worth import GROUP, CellJudge, effect_samples, pooled
from prnas.searching.judging import Judging
from prnas.searching.path_worth import PathJudge
from prnas.space.evidence import estimate
from prnas.space.genotype import Genotype
from prnas.space.operations import Conv, Pool, Skip, Zero
from prnas.space.pools import CellPools, Pools
from prnas.space.setting import SETTINGS
from tests.support.settings import small_config
from tests.support.watching import Watch, assert_same_run, folder_of

CELLS = {"step": "sampled-cells", "scoring": "paths"}


def config_of(images: Path, **changes: Any) -> SearchConfig:
    return small_config(images, architecture=CELLS, network={"nodes": 2}, **changes)


def made(groups: int, cells: int, effects: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    design = (torch.rand(groups, cells, effects, generator=generator) < 0.4).double()
    return design, torch.randn(groups, cells, generator=generator, dtype=torch.float64)


def test_the_mean_over_groups_is_the_plain_fit() -> None:
    """Least squares with a level of its own for every group, by numpy."""
    design, losses = made(groups=20, cells=8, effects=5, seed=0)
    levels = np.kron(np.eye(20), np.ones((8, 1)))
    plain, *_ = np.linalg.lstsq(
        np.hstack([design.flatten(0, 1).numpy(), levels]), losses.flatten().numpy(), rcond=None
    )
    assert effect_samples(design, losses).mean(0).tolist() == pytest.approx(plain[:5].tolist())


def test_what_cells_cannot_tell_apart_leaves_differences_alone() -> None:
    """Each cell has one of three, so that only their differences are seen."""
    rng = np.random.default_rng(0)
    design = torch.from_numpy(np.eye(3)[rng.integers(3, size=(30, 8))])
    true = torch.tensor([0.0, -0.2, 0.7], dtype=torch.float64)
    levels = torch.from_numpy(rng.normal(size=(30, 1)))
    found = effect_samples(design, design @ true + levels)
    assert (found[:, 1] - found[:, 0]).tolist() == pytest.approx([-0.2] * 30)
    assert (found[:, 2] - found[:, 0]).tolist() == pytest.approx([0.7] * 30)


def test_errors_are_as_large_as_the_spread_of_repeated_fits() -> None:
    """Also where the cells of a group hang together, as those with one operation do on its images.

    Each group has a taste of its own for the first effect.
    """
    rng = np.random.default_rng(1)
    means: list[float] = []
    errors: list[float] = []
    for _ in range(300):
        design = torch.from_numpy((rng.random((40, 8, 3)) < 0.5).astype(float))
        taste = torch.from_numpy(rng.normal(0, 0.5, (40, 1)))
        losses = design[:, :, 0] * (0.3 + taste) + torch.from_numpy(rng.normal(0, 0.3, (40, 8)))
        found = estimate(effect_samples(design, losses)[:, 0].tolist())
        means.append(found.mean)
        errors.append(found.error)
    assert np.mean(means) == pytest.approx(0.3, abs=4 * np.std(means) / 300**0.5)
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.15)


EDGES, OPERATIONS = [0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 1, 2] * 3


def sums_of(edges: list[float], operations: list[float]) -> torch.Tensor:
    return torch.tensor(
        [edges[i] + operations[k] for i, k in zip(EDGES, OPERATIONS, strict=True)],
        dtype=torch.float64,
    )


def test_effects_without_noise_stay_as_they_are() -> None:
    """What departs from the sum of edge and operation is then no noise, and is kept."""
    effects = torch.randn(9, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    samples = effects.expand(20, 9)
    assert pooled(samples, EDGES, OPERATIONS).tolist() == [
        pytest.approx(row) for row in samples.tolist()
    ]


def test_pooled_effects_are_those_of_a_plain_fit() -> None:
    """Main effects by numpy's least squares; departures shrunk by one minus noise over spread."""
    rng = np.random.default_rng(2)
    true = sums_of([0.0, 0.5, -0.5], [1.0, 0.0, -1.0]).numpy() + rng.normal(0, 0.3, 9)
    samples = true + rng.normal(0, 1.0, (30, 9))
    design = np.array(
        [
            [float(i == edge) for i in range(3)] + [float(k == op) for k in range(3)]
            for edge, op in zip(EDGES, OPERATIONS, strict=True)
        ]
    )
    fitted = (design @ np.linalg.lstsq(design, samples.T, rcond=None)[0]).T
    rest = samples - fitted
    share = 1 - rest.var(0, ddof=1).sum() / 30 / (rest.mean(0) ** 2).sum()
    assert 0 < share < 1
    result = pooled(torch.from_numpy(samples), EDGES, OPERATIONS).numpy()
    assert result == pytest.approx(fitted + share * rest)


def test_noise_on_an_edge_is_outvoted_by_the_other_edges() -> None:
    """Where operations do the same on all edges, pooling brings their effects nearer to the truth.

    Noise alone has a departure of its own size, so that nothing or little of it is left.
    """
    rng = np.random.default_rng(3)
    true = sums_of([0.0, 0.2, -0.2], [0.3, 0.0, -0.3])
    plain, drawn = 0.0, 0.0
    for _ in range(100):
        samples = true + torch.from_numpy(rng.normal(0, 2.0, (25, 9)))
        plain += float((samples.mean(0) - true).square().sum())
        drawn += float((pooled(samples, EDGES, OPERATIONS).mean(0) - true).square().sum())
    assert drawn < 0.8 * plain


def test_one_group_alone_says_nothing_of_departures() -> None:
    """A single sample has no spread, so only the sum of edge and operation is left."""
    sample = torch.randn(1, 9, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    once = pooled(sample, EDGES, OPERATIONS)
    assert once.tolist() == [pytest.approx(pooled(once, EDGES, OPERATIONS)[0].tolist())]
    table = once.reshape(3, 3)
    assert (table[1] - table[0]).tolist() == pytest.approx([float(table[1, 0] - table[0, 0])] * 3)


class Additive:
    """Stands for measured losses: each candidate has an effect of its own on a cell's loss."""

    def __init__(self, pools: Pools, effects: dict[tuple[str, int, int], float]) -> None:
        self.pools, self.effects = pools, effects

    def cell_losses(self, groups: Any, batch: int) -> list[list[float]]:
        return [
            [
                number
                + sum(
                    self.effects.get((role, edge, index), 0.0)
                    for role, edges in active_of_cells(self.pools, cell).items()
                    for edge, indices in enumerate(edges)
                    for index in indices
                )
                for cell in group
            ]
            for number, group in enumerate(groups)
        ]


def judge_of(pools: Pools, groups: int, monkeypatch: pytest.MonkeyPatch) -> CellJudge:
    search: Any = SimpleNamespace(
        config=SimpleNamespace(
            seed=0,
            validation=SimpleNamespace(batch=4),
            network=SimpleNamespace(output="concat"),
        ),
        indices={"architecture": range(8)},
        state=SimpleNamespace(position=SimpleNamespace(cycle=0)),
    )
    judge = CellJudge(search, pools)
    monkeypatch.setattr(judge, "_plan", lambda: setattr(judge, "num_groups", groups))
    return judge


def test_effects_that_add_up_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = CellPools.initial(3, SETTINGS["darts-like"].initial_pool)
    pools, size = Pools(cell, cell), len(cell.edges[0].candidates)
    effects = {("normal", 0, 2): -0.3, ("reduction", 3, 1): 0.4}
    # Every candidate of the node's last edge is good: then it is the edge that counts.
    effects |= {("normal", 4, index): -0.5 for index in range(size)}
    judge = judge_of(pools, 150, monkeypatch)
    worths = judge.worths(Additive(pools, effects))  # pyright: ignore[reportArgumentType]
    best = worths["normal"][0]
    assert best.order[0] == 2
    assert best.estimates[2].mean == pytest.approx(0.3 * (1 - 1 / size))
    assert best.estimates[2].error < 1e-9
    assert worths["reduction"][3].order[-1] == 1
    assert [one.mean for one in worths["normal"][4].estimates] == pytest.approx([0] * size)
    # Of the three inputs of the second node, the last is better by half a point.
    assert judge.rises["normal", 4] == pytest.approx([0.5 * 2 / 3] * 150)
    assert min(worths["normal"][4].strengths) > max(
        *worths["normal"][2].strengths, *worths["normal"][3].strengths
    )


def test_an_operation_that_no_cell_can_have_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = CellPools.initial(2, (Zero(), Skip(), Pool("max", 3), Conv(3, 1, (1,))))
    pools = Pools(cell, cell)
    effects = {("normal", edge, 3): -1.0 for edge in range(5)}
    worths = judge_of(pools, 60, monkeypatch).worths(Additive(pools, effects))  # pyright: ignore
    for edge in worths["normal"]:
        assert edge.order[0] == 3
        assert edge.order[-1] == 0


def test_a_group_is_cells_on_the_same_images(images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured is what the networks of these cells say, one by one."""
    seen: list[int] = []

    class Watched(Judging):
        def evidence(self, decision: Any) -> Any:
            judge, supernet = self.paths, self.search.state.supernet
            assert isinstance(judge, CellJudge)
            groups = judge._drawn()
            assert {len(group) for group in groups} == {GROUP}
            judge.batch = 4
            rows = self.measuring.cell_losses(groups, 4)
            half = self.measuring._half
            batches = torch.tensor_split(half, max(len(half) // 4, 1))
            for number, (row, group) in enumerate(zip(rows, groups, strict=True)):
                drawn, labels = self.measuring._images(batches[number % len(batches)])
                for loss, cell in zip(row, group, strict=True):
                    alone = cell_scores(supernet, drawn, labels, [cell]).loss.double().mean()
                    assert loss == pytest.approx(alone.item(), rel=1e-5)
            seen.append(len(groups))
            return super().evidence(decision)

    monkeypatch.setattr("prnas.searching.search.Judging", Watched)
    start(config_of(images), runs=None)
    assert len(seen) == len(config_of(images).schedule.cycles)


def test_cells_judge_only_where_nodes_choose_inputs(
    images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds: list[type] = []

    class Watched(Judging):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            kinds.append(type(self.paths))

    monkeypatch.setattr("prnas.searching.search.Judging", Watched)
    start(config_of(images), runs=None)
    assert set(kinds) == {CellJudge}
    kinds.clear()
    start(small_config(images, architecture={"step": "sampled", "scoring": "paths"}), runs=None)
    assert set(kinds) == {PathJudge}


def test_a_stopped_search_goes_on_bit_for_bit(images: Path, tmp_path: Path) -> None:
    settings = config_of(images)
    whole = start(settings, runs=tmp_path, name="whole")
    stop = Watch(9, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped) as caught:
        start(settings, runs=tmp_path, name="cut", callbacks=[stop])
    resume(folder_of(caught.value))
    assert_same_run(folder_of(caught.value), folder_of(whole))


def test_draws_follow_from_seed_and_cycle_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = CellPools.initial(3, SETTINGS["darts-like"].initial_pool)
    judge = judge_of(Pools(cell, cell), 3, monkeypatch)
    judge.num_groups = 3
    first: list[list[Genotype]] = judge._drawn()
    Random(0).random()
    assert judge._drawn() == first
    judge.search.state.position.cycle = 1  # pyright: ignore[reportAttributeAccessIssue]
    assert judge._drawn() != first
