"""Searches that train sampled paths and judge candidates by them."""

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prnas.config.search import SearchConfig
from prnas.runs.records import CycleRecord
from prnas.runs.run import Stopped
from prnas.searching.api import resume, start
from prnas.searching.path_worth import PathJudge
from prnas.space.pools import CellPools, Pools
from prnas.space.setting import SETTINGS
from tests.support.settings import small_config
from tests.support.watching import Watch, assert_same_run, folder_of

SAMPLED = {"step": "sampled", "scoring": "paths"}


def config_of(images: Path, **changes: Any) -> SearchConfig:
    return small_config(images, architecture=SAMPLED, network={"nodes": 2}, **changes)


def test_a_stopped_search_goes_on_bit_for_bit(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prnas.searching.path_worth.LEAST_GROUPS", 2)
    settings = config_of(images)
    whole = start(settings, runs=tmp_path, name="whole")
    stop = Watch(9, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped) as caught:
        start(settings, runs=tmp_path, name="cut", callbacks=[stop])
    resume(folder_of(caught.value))
    assert_same_run(folder_of(caught.value), folder_of(whole))


def test_the_record_has_the_worth_of_every_candidate(images: Path) -> None:
    result = start(config_of(images), runs=None)
    for record in result.cycles:
        assert isinstance(record, CycleRecord)
        evidence = record.evidence
        assert evidence is not None
        assert evidence.scoring == "paths"
        assert evidence.path_groups >= 8
        assert evidence.images == evidence.saliency_images == 0
        for role in ("normal", "reduction"):
            measured = [len(edge.mean) for edge in evidence.paths[role]]
            assert measured == [len(edge) for edge in record.pools[role]]
            for edge in evidence.paths[role]:  # contrasts
                assert sum(value or 0 for value in edge.mean) == pytest.approx(0, abs=1e-5)
    last = result.cycles[-1].evidence
    assert last is not None
    assert last.inputs["normal"]  # which inputs a node keeps was measured too


@pytest.mark.parametrize("scoring", ["weights", "blend"])
def test_what_was_not_trained_does_not_judge(images: Path, scoring: str) -> None:
    with pytest.raises(ValueError, match="would be by chance: set scoring to paths, removal or"):
        small_config(images, architecture={"step": "sampled", "scoring": scoring})


class Additive:
    """Stands for measured losses: each candidate has an effect of its own on a path's loss."""

    def __init__(self, effects: dict[tuple[str, int, int], float]) -> None:
        self.effects = effects

    def path_losses(self, groups: Any, batch: int) -> list[list[float]]:
        return [
            [
                1.0
                + sum(
                    self.effects.get((role, edge, index), 0.0)
                    for role, indices in path.items()
                    for edge, index in enumerate(indices)
                    if (role, edge) != omitted
                )
                + (0.5 if omitted == ("normal", 0) else 0.0)
                for path, omitted in group
            ]
            for group in groups
        ]


@pytest.mark.parametrize("last", [False, True])
def test_effects_that_add_up_are_found(monkeypatch: pytest.MonkeyPatch, last: bool) -> None:
    cell = CellPools.initial(2, SETTINGS["darts-like"].initial_pool)
    pools = Pools(cell, cell)
    search: Any = SimpleNamespace(
        config=SimpleNamespace(seed=0, validation=SimpleNamespace(batch=4)),
        indices={"architecture": range(8)},
        state=SimpleNamespace(position=SimpleNamespace(cycle=0)),
    )
    judge = PathJudge(search, pools, last)
    monkeypatch.setattr(judge, "_plan", lambda: setattr(judge, "num_groups", 200))
    effects = {("normal", 0, 2): -0.3, ("reduction", 3, 1): 0.4}
    worths = judge.worths(Additive(effects))  # pyright: ignore[reportArgumentType]
    best = worths["normal"][0]
    assert best.order[0] == 2
    # The contrast of a single effect among four: three quarters of it, whatever the others do.
    assert best.estimates[2].mean == pytest.approx(0.75 * 0.3)
    assert worths["reduction"][3].order[-1] == 1
    assert best.estimates[2].error < 1e-12
    assert [one.mean for one in worths["normal"][1].estimates] == pytest.approx([0] * 4)
    few = PathJudge(search, pools, last)  # too few paths to tell 40 effects apart: still unbiased
    monkeypatch.setattr(few, "_plan", lambda: setattr(few, "num_groups", 10))
    seen = few.worths(Additive(effects))["normal"][0].estimates[2]  # pyright: ignore
    assert seen.mean == pytest.approx(0.75 * 0.3, abs=4 * seen.error)
    assert seen.error > 1e-3
    if last:  # losing the edge costs half a point on top of what its candidate brings
        strengths = worths["normal"][0].strengths
        assert min(strengths) > max(worths["normal"][1].strengths)
