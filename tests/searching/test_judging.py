"""A search that measures its candidates: what decides, how sure it is, and that nothing changes."""

import json
import os
import signal
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch

from prnas.nets.removal import CandidateIndex, scores_without
from prnas.nets.saliency import saliencies
from prnas.runs.events import Callback, Validating
from prnas.runs.records import CycleRecord, Evidence
from prnas.runs.run import Stopped
from prnas.searching import search as search_module
from prnas.searching.api import resume, start
from prnas.searching.budget import Budget, affordable, budget, cycle_work
from prnas.searching.judging import Judging
from prnas.searching.measuring import Measuring
from prnas.space.change import Change
from prnas.space.evidence import difference, estimate
from prnas.space.genotype import ROLES
from prnas.space.operations import Skip
from tests.support.in_process import Cli
from tests.support.settings import small_config, write_images
from tests.support.watching import Watch, assert_same_run, folder_of, last_state

# Removal decides, so that architecture steps can go.
REMOVAL: dict[str, Any] = {
    "architecture": {"scoring": "removal", "step": "none"},
    "evidence": {"images": 16, "share": 1e5},  # as a tiny search cannot afford
    "schedule": {
        "cycles": [
            {"epochs": 1, "grace_epochs": 0, "morphisms": 1, "candidates": 3},
            {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1},
        ]
    },
}


def evidence_of(record: CycleRecord) -> Evidence:
    assert record.evidence is not None
    return record.evidence


@pytest.fixture(scope="module")
def by_removal(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run by removal that was never stopped."""
    runs = tmp_path_factory.mktemp("removal")
    return folder_of(start(small_config(images, **REMOVAL), runs=runs))


def test_measuring_changes_no_bit_of_a_search(
    images: Path, tmp_path: Path, reference: Path
) -> None:
    config = small_config(images, evidence={"measure": "none"})
    folder = folder_of(start(config, runs=tmp_path))
    (state, tensors), (measured, other) = last_state(folder), last_state(reference)
    assert state.pop("config") != measured.pop("config")
    assert state == measured
    assert all(torch.equal(tensors[name], other[name]) for name in tensors)
    ours, theirs = (
        [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
        for run in (folder, reference)
    )
    for record, twin in zip(ours, theirs, strict=True):
        if record["type"] == "cycle":
            assert "evidence" not in record
            assert twin.pop("evidence") is not None
            assert record == twin


class Watched(Judging):
    """Compares what was measured with the straightforward way."""

    seen = 0

    def evidence(self, decision):  # pyright: ignore
        found = super().evidence(decision)
        measuring, supernet = self.measuring, self.search.state.supernet
        images, labels = measuring._images(measuring._removal)
        renormalise = self.config.architecture.renormalise

        def losses(removed: set[CandidateIndex]) -> list[float]:
            scores = scores_without(supernet, images, labels, [removed], renormalise=renormalise)
            return scores.loss[0].double().tolist()

        before = losses(set())
        for role in ROLES:
            for edge, pool in enumerate(self.pools.cell(role).edges):
                gone: list[int] = []
                left = list(range(len(pool.candidates)))
                while True:  # backward elimination, as plainly as can be

                    def key(index: int) -> CandidateIndex:
                        return CandidateIndex(role, edge, index)  # noqa: B023 # pyright: ignore

                    base = losses({key(index) for index in gone}) if gone else before
                    rises = {
                        index: difference(losses({key(one) for one in (*gone, index)}), base)
                        for index in left
                    }
                    for index, rise in rises.items():
                        worth = found.removal[role][edge]
                        if len(left) == self.keep:
                            assert worth.mean[index] == pytest.approx(rise.mean, rel=1e-4, abs=1e-7)
                            assert worth.error[index] == pytest.approx(rise.error, rel=1e-4)
                    if len(left) == self.keep:
                        break
                    convs = [i for i in left if pool.candidates[i].category == "conv"]
                    safe = convs if len(convs) == 1 and not self.last else []
                    least = min((i for i in left if i not in safe), key=lambda i: rises[i].mean)
                    left.remove(least)
                    gone.append(least)
                kept = [pool.candidates[index] for index in left]
                pruned = {one.op for one in decision.change.cell(role).edges[edge].pruned}
                assert [op for op in pool.candidates if op not in pruned] == kept
        batches = torch.tensor_split(measuring._saliency, self.budget.saliency_batches)
        single = [
            saliencies(supernet, *measuring._images(batch), renormalise=renormalise)
            for batch in batches
        ]
        for role in ROLES:
            for edge, worth in enumerate(found.saliency[role]):
                rows = torch.stack([one[role][edge] for one in single]).double().T.tolist()
                expected = [estimate(row) for row in rows]
                assert worth.mean == pytest.approx([one.mean for one in expected], rel=1e-4)
                assert worth.error == pytest.approx([one.error for one in expected], rel=1e-4)
        type(self).seen += 1
        return found


@pytest.mark.parametrize("renormalise", [False, True])
def test_removal_is_what_a_plain_elimination_finds(
    images: Path, monkeypatch: pytest.MonkeyPatch, renormalise: bool
) -> None:
    changes = REMOVAL | {"architecture": {**REMOVAL["architecture"], "renormalise": renormalise}}
    monkeypatch.setattr(search_module, "Judging", Watched)
    monkeypatch.setattr(Watched, "seen", 0)
    start(small_config(images, **changes), runs=None)
    assert Watched.seen == 2


def test_what_is_recorded_adds_up(images: Path) -> None:
    """With two nodes, so that inputs are chosen."""
    result = start(small_config(images, **REMOVAL, network={"nodes": 2}), runs=None)
    for record in result.cycles:
        found, change = evidence_of(record), Change.from_json(record.change)
        assert found.scoring == "removal"
        assert not any("architecture" in epoch.scores for epoch in result.epochs)
        decisions = [one for one in chain(*found.edges.values()) if one]
        inputs = list(chain(*found.inputs.values()))
        assert found.decisions == len(decisions) + len(inputs)
        sure = [one.difference for one in [*decisions, *inputs] if one.p < 0.05]
        assert found.supported == sum(gap > 0 for gap in sure)
        assert found.contradicted == sum(gap < 0 for gap in sure)
        for role in ROLES:
            for labels, edge, decision in zip(
                record.pools[role], change.cell(role).edges, found.edges[role], strict=True
            ):
                pruned = [one.op.label for one in edge.pruned]
                assert decision is not None
                assert decision.difference >= 0  # the least missed left
                assert decision.pruned in pruned
                assert decision.kept in set(labels) - set(pruned)
    first, last = (evidence_of(record) for record in result.cycles)
    assert not any(first.inputs.values())
    # The second node has three inputs, of which it keeps two.
    assert [[one.node for one in last.inputs[role]] for role in ROLES] == [[3], [3]]
    chosen = {edge.input for edge in result.genotype.normal.nodes[1]}
    (one,) = last.inputs["normal"]
    assert one.kept in chosen
    assert one.pruned not in chosen
    assert one.difference >= 0


@pytest.mark.parametrize("scoring", ["saliency", "blend"])
def test_every_scoring_repeats_itself(images: Path, tmp_path: Path, scoring: str) -> None:
    architecture = {"scoring": scoring, "lr": 0.05}
    config = small_config(images, **(REMOVAL | {"architecture": architecture}))
    one, other = (start(config, runs=tmp_path) for _ in range(2))
    assert_same_run(folder_of(one), folder_of(other))
    assert [evidence_of(record).scoring for record in one.cycles] == [scoring] * 2
    removed = evidence_of(one.cycles[0]).removal["normal"][0].mean
    assert (None in removed) == (scoring == "saliency")  # then only what was compared is measured


class StopWhileJudging(Callback):
    """Asks to stop in the midst of the measurements at a cycle's end."""

    def __init__(self, cycle: int) -> None:
        self.cycle, self.epochs, self.stopped = cycle, 0, False

    def on_epoch(self, record: Any) -> None:
        self.epochs += 1

    def on_validating(self, progress: Validating) -> None:
        if self.epochs > self.cycle and not self.stopped:
            self.stopped = True
            os.kill(os.getpid(), signal.SIGTERM)


def stoppers() -> Iterator[Callback]:
    yield Watch(8, lambda: os.kill(os.getpid(), signal.SIGTERM))
    yield StopWhileJudging(1)


@pytest.mark.parametrize("stop", list(stoppers()))
def test_a_search_by_removal_goes_on_bit_for_bit(
    images: Path, tmp_path: Path, by_removal: Path, stop: Callback
) -> None:
    with pytest.raises(Stopped) as caught:
        start(small_config(images, **REMOVAL), runs=tmp_path, callbacks=[stop])
    folder = folder_of(caught.value)
    resume(folder)
    assert_same_run(folder, by_removal)


@pytest.mark.parametrize("scoring", ["removal", "saliency"])
def test_cells_of_one_kind_are_measured_as_well(images: Path, scoring: str) -> None:
    architecture = {"scoring": scoring, "step": "none", "renormalise": True}
    space = {
        "name": "small",
        "limits": {"kernel_min": 1, "kernel_max": 3, "dilation_max": 1, "depth_max": 0},
        "initial_pool": ["zero", "skip", "plain 1x1"],
    }
    changes = {
        **REMOVAL,
        "space": space,
        "architecture": architecture,
        "network": {"shape": "nasbench201", "nodes": 2, "output": "last"},
    }
    result = start(small_config(images, **changes), runs=None)
    for record in result.cycles:
        found = evidence_of(record)
        assert list(found.removal) == list(found.edges) == ["normal"]
        assert found.decisions == 3  # all inputs of a node are kept: only operations are chosen
        assert found.inputs == {"normal": []}


def test_what_a_bound_on_skips_decides_is_no_decision_of_removal(images: Path) -> None:
    """Beside the search without the bound: the same measurements, other skips in the end."""
    space = {
        "name": "plain",
        "limits": {"kernel_min": 1, "kernel_max": 3, "dilation_max": 1, "depth_max": 0},
        "initial_pool": ["skip", "plain 1x1", "plain 3x3"],
    }
    cycles = [
        {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": number} for number in (2, 1)
    ]
    changes = {
        **REMOVAL,
        "space": space,
        "schedule": {"cycles": cycles},
        "network": {"shape": "nasbench201", "nodes": 3, "output": "last"},
    }
    free, bounded = (
        start(small_config(images, **changes, derivation={"max_skips_normal": most}), runs=None)
        for most in (None, 0)
    )
    assert free.cycles[0].change == bounded.cycles[0].change
    assert free.cycles[0].evidence == bounded.cycles[0].evidence
    own, held = evidence_of(free.cycles[1]), evidence_of(bounded.cycles[1])
    assert own.removal == held.removal
    overruled = [edge.op == Skip() for node in free.genotype.normal.nodes for edge in node]
    assert 0 < sum(overruled) < 6  # else nothing is tested here
    assert Skip() not in bounded.genotype.normal.operations
    assert own.uncompared == {"normal": [None] * 6}
    assert held.uncompared == {"normal": ["rule" if one else None for one in overruled]}
    assert held.edges["normal"] == [
        None if one else decision
        for one, decision in zip(overruled, own.edges["normal"], strict=True)
    ]
    assert (own.decisions, held.decisions) == (6, 6 - sum(overruled))


def test_edges_that_there_was_no_time_for_are_recorded(images: Path) -> None:
    cycle = {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 3}
    changes: dict[str, Any] = {
        "schedule": {"cycles": [cycle, {**cycle, "candidates": 1}]},
        "network": {"nodes": 2},
        "evidence": {"share": 0.01},
    }
    first, last = (evidence_of(one) for one in start(small_config(images, **changes)).cycles)
    for found, measured in ((first, 4), (last, 10)):  # ten edges; after the last cycle, all
        decided = [one is not None for one in chain(*found.edges.values())]
        assert sum(decided) == measured
        assert list(chain(*found.uncompared.values())) == [
            None if one else "unmeasured" for one in decided
        ]


class Together:
    """Two processes, one after the other: the second knows what the first has found."""

    def __init__(self, real: Any, rank: int, said: list[list[float]]) -> None:
        self.real, self.rank, self.size, self.said = real, rank, 2, said

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def maximum(self, values: list[float]) -> list[float]:
        return values

    def sum(self, values: list[float]) -> list[float]:
        if self.rank == 0:
            self.said.append(list(values))
            return list(values)
        return [a + b for a, b in zip(self.said.pop(0), values, strict=True)]


def test_two_processes_find_what_one_does(images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    class Shared(Judging):
        def evidence(self, decision):  # pyright: ignore
            found, search = super().evidence(decision), self.search
            monkeypatch.setattr("prnas.searching.measuring.PASSES", 2)
            real, one = search.processes, self.measuring
            wanted = [frozenset(), *list(one._losses)[:5]]
            said: list[list[float]] = []
            try:
                for rank in (0, 1):
                    search.processes = Together(real, rank, said)  # pyright: ignore
                    two = Measuring(search, one._half, len(one._removal), len(one._saliency))
                    losses = two.losses(wanted)
                    saliency = two.saliency(self.budget.saliency_batch)
            finally:
                search.processes = real
            assert {key: losses[key] for key in wanted} == {key: one._losses[key] for key in wanted}
            assert saliency == self.saliency
            compared.append(len(said))
            return found

    monkeypatch.setattr(search_module, "Judging", Shared)
    start(small_config(images, **REMOVAL, validation={"batch": 6}), runs=None)
    assert compared == [0, 0]


def test_memory_that_runs_out_means_smaller_batches(
    images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def greedy(supernet: Any, images: torch.Tensor, *rest: Any, **options: Any) -> Any:
        sizes.append(len(images))
        if len(images) > 10:
            raise MemoryError
        return scores_without(supernet, images, *rest, **options)

    monkeypatch.setattr("prnas.searching.measuring.scores_without", greedy)
    result = start(small_config(images, **REMOVAL), runs=None)
    assert set(sizes) == {16, 8}
    assert evidence_of(result.cycles[0]).images == 16


def test_counted_work() -> None:
    config = small_config(Path("images.npz"))
    # 2 epochs of 48 images: 3 each; 1 of them trains the architecture: half that; both validate 40.
    assert cycle_work(config, 0, 48, 40) == 3 * 2 * 48 + 1.5 * 48 + 2 * 40
    without = small_config(Path("images.npz"), **REMOVAL)
    assert cycle_work(without, 0, 48, 40) == 3 * 48 + 40


def plan(
    work: float, scoring: str = "weights", half: int = 10**6, all_edges: bool = False
) -> Budget:
    """With 5 edges of 2 passes each, and an overhead of 32 images; a fifth of the work."""
    step = "first-order" if scoring == "weights" else "none"
    architecture = {"scoring": scoring, "step": step}
    config = small_config(Path("images.npz"), architecture=architecture)
    return budget(config, work, [2.0] * 5, 32.0, half, all_edges)


def test_budgets() -> None:
    # A tenth of 2e5 units is for saliency: batches of 8 images, twice 8 + 32 units each.
    found = plan(1e6)
    assert (found.saliency_batches, found.saliency_batch) == (128, 8)  # all 1024 images
    assert (found.removal_images, found.edges) == (1024, 5)  # no more than the config says
    assert found.limited_by == "images"
    assert plan(1e6, half=500).limited_by == "half"
    assert plan(1e4).limited_by == "share"
    assert found.share < 0.2
    # Of 2e4 units, 2000 are for 25 batches; 18000 / 11.3 passes is 1590: 9 batches of 128 + 32.
    found = plan(1e5)
    assert (found.saliency_images, found.removal_images, found.edges) == (200, 1024, 5)
    found = plan(1e4)
    assert (found.saliency_images, found.removal_images, found.edges) == (0, 128, 5)
    assert 0.15 < found.share <= 0.2
    # For 32 images on all edges it does not suffice: fewer edges, but at least four.
    found = plan(3e3)
    assert (found.removal_images, found.edges) == (32, 4)
    assert plan(3e3, all_edges=True).edges == 5
    assert plan(1e3, half=20).removal_images == 20  # no more than there are
    # What decides is measured whatever it takes.
    found = plan(1e3, "saliency")
    assert (found.saliency_batches, found.saliency_batch) == (4, 8)
    assert plan(1e3, "saliency", half=10).saliency_batch == 2
    assert found.share > 0.2


@pytest.mark.parametrize("overhead", [0.0, 3.0, 200.0])
@pytest.mark.parametrize("batch", [1, 10, 128])
def test_affordable_images_are_the_most_that_are(overhead: float, batch: int) -> None:
    def cost(images: int) -> float:
        return images + overhead * -(-images // batch)

    for allowed in (0.0, 1.0, 9.5, 100.0, 1234.0):
        images = affordable(allowed, overhead, batch)
        assert images == 0 or cost(images) <= allowed
        assert cost(images + 1) > allowed


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["architecture.step=none"], ["step 'none'", "scoring 'weights'", "removal or saliency"]),
        (["architecture.step=none", "architecture.scoring=blend"], ["scoring 'blend'"]),
        (["architecture.scoring=removed"], ["architecture.scoring", "removal", "saliency"]),
        (["evidence.measure=always"], ["evidence.measure", "'auto' or 'none'"]),
        (["evidence.share=0"], ["evidence.share"]),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    here: Cli, tmp_path: Path, changes: list[str], words: list[str]
) -> None:
    settings = [word for change in changes for word in ("--set", change)]
    message = here.bad("search", "quick", *settings)
    for word in words:
        assert word in message
    assert list(tmp_path.iterdir()) == []


def test_too_few_images_to_measure_on_are_refused(here: Cli, tmp_path: Path) -> None:
    data = write_images(tmp_path / "few.npz", number=12)
    arguments = ["--data", f"npz:{data}", "--set", "architecture.scoring=removal"]
    message = here.bad("search", "quick", *arguments, "--set", "batch.min=2")
    assert "has 6 images and needs 8" in message
    assert "data.architecture_share" in message
    assert [path.name for path in tmp_path.iterdir()] == ["few.npz"]
