"""A searcher chooses among the cells of the supernet that a search has trained."""

import os
import signal
from pathlib import Path

import pytest
import torch

from prnas.nets.cell_paths import cell_scores
from prnas.runs.record_lines import read_records
from prnas.runs.records import TruthRecord
from prnas.runs.run import Stopped
from prnas.searching import cell_accuracy
from prnas.searching.api import resume, start
from prnas.space.change import Change
from prnas.space.genotype import Genotype
from tests.support.shared_weights import At, shared
from tests.support.watching import assert_same_run, folder_of, last_state


@pytest.mark.parametrize("shape", ["nasbench201", "darts"])
@pytest.mark.parametrize("method", ["random", "evolution", "local-search", "reinforce"])
def test_the_best_of_the_finalists_is_found(
    images: Path, tmp_path: Path, method: str, shape: str
) -> None:
    result = start(shared(images, method, shape), runs=tmp_path, name="run")
    asked = [one for one in result.evaluations if one.stage == "search"]
    final = [one for one in result.evaluations if one.stage == "final"]
    assert [one.number for one in asked] == list(range(1, 13))
    cells = list({str(one.genotype): one for one in reversed(asked)}.values())[::-1]
    ranked = sorted(sorted(cells, key=lambda one: one.number), key=lambda one: -one.score)
    assert [one.number for one in final] == [one.number for one in ranked[:4]]
    best = max(final, key=lambda one: one.score)
    assert Genotype.from_json(best.genotype) == result.genotype
    assert [one.images for one in asked] == [16 * one.number for one in asked]
    assert final[-1].images == 12 * 16 + 4 * 48
    (cycle,) = result.cycles
    assert cycle.evidence is None
    change = Change.from_json(cycle.change)
    for role in result.genotype.roles:
        left = [
            set(pool) - {gone.op.label for gone in edge.pruned}
            for pool, edge in zip(cycle.pools[role], change.cell(role).edges, strict=True)
        ]
        assert all(len(labels) == 1 for labels in left)
    records = read_records(tmp_path / "run" / "records.jsonl")
    assert isinstance(records[-1], TruthRecord) == (shape == "nasbench201")


@pytest.mark.parametrize("at", [1, 7, 13])  # while it asks, and between finalists
def test_a_stopped_search_goes_on_bit_for_bit(images: Path, tmp_path: Path, at: int) -> None:
    config = shared(images, "evolution")
    start(config, runs=tmp_path, name="whole")
    stop = At(at, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped) as caught:
        start(config, runs=tmp_path, name="cut", callbacks=[stop])
    folder = folder_of(caught.value)
    resume(folder)
    assert_same_run(folder, tmp_path / "whole")


def test_scoring_changes_no_bit(images: Path, tmp_path: Path) -> None:
    """The tensors are those of a search that chooses otherwise."""
    start(shared(images), runs=tmp_path, name="asked")
    config = shared(images).override(["searcher.method=none", "evidence.measure=none"])
    start(config, runs=tmp_path, name="derived")
    (_, ours), (_, theirs) = (last_state(tmp_path / name) for name in ("asked", "derived"))
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name


def test_recalibrated_scores_are_others_and_change_no_bit(images: Path, tmp_path: Path) -> None:
    plain = start(shared(images), runs=tmp_path, name="batch")
    other = shared(images).override(["searcher.supernet.statistics=recalibrated"])
    again = start(other, runs=tmp_path, name="recalibrated")
    assert [one.genotype for one in plain.evaluations[:12]] == [
        one.genotype for one in again.evaluations[:12]
    ]
    assert [one.score for one in plain.evaluations] != [one.score for one in again.evaluations]
    (_, ours), (_, theirs) = (last_state(tmp_path / name) for name in ("batch", "recalibrated"))
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


def test_a_score_is_the_accuracy_on_the_same_images(
    images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[float, int]] = []

    def watched(supernet, pixels, labels, genotypes):  # pyright: ignore
        scores = cell_scores(supernet, pixels, labels, genotypes)
        seen.append((float(pixels.double().sum()), int(scores.correct.sum())))
        return scores

    monkeypatch.setattr(cell_accuracy, "cell_scores", watched)
    result = start(shared(images), runs=None)
    assert len({pixels for pixels, _ in seen[:12]}) == 1
    assert [correct / 16 for _, correct in seen[:12]] == [
        one.score for one in result.evaluations[:12]
    ]
    assert len({pixels for pixels, _ in seen[12:]}) == 3, "the half has three batches"
    of_first = sum(correct for _, correct in seen[12:15])
    assert result.evaluations[12].score == of_first / 48
