"""The search end to end, in this process."""

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

import prnas
from prnas.config import SearchConfig
from prnas.errors import UserError
from prnas.reporting.records import (
    BatchRecord,
    CycleRecord,
    EpochRecord,
    read_records,
    without_varying,
)
from prnas.space.cell_pools import Pools
from prnas.space.change import Change
from prnas.space.genotype import Genotype
from prnas.training import engine, steps
from prnas.training.callbacks import Callback, SearchResult, Start, Step
from prnas.training.checkpoint import Checkpoints
from prnas.training.search import Stopped, resume, start
from tests.training.settings import small_config, write_images
from tests.training.textbook import first_cycle


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("data") / "images.npz")


class Watch(Callback):
    """Remembers what it was told; may act at a given step."""

    def __init__(self, at: int | None = None, act: Any = None) -> None:
        self.steps: list[Step] = []
        self.batches: list[BatchRecord] = []
        self.events: list[str] = []
        self.messages: list[str] = []
        self.at, self.act = at, act

    def on_start(self, start: Start) -> None:
        self.events.append("start")
        self.start = start

    def on_step(self, step: Step) -> None:
        self.steps.append(step)
        if self.at == len(self.steps):
            self.act()

    def on_batch(self, record: BatchRecord) -> None:
        self.batches.append(record)

    def on_epoch(self, record: EpochRecord) -> None:
        self.events.append("epoch")

    def on_cycle(self, record: CycleRecord, pools: Pools) -> None:
        self.events.append("cycle")

    def on_message(self, text: str) -> None:
        self.messages.append(text)

    def on_end(self, result: SearchResult) -> None:
        self.events.append("end")

    def close(self) -> None:
        self.events.append("close")


def folder_of(one: SearchResult | Stopped) -> Path:
    assert one.folder is not None
    return one.folder


def last_state(folder: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    checkpoint, problems = Checkpoints(folder / "checkpoints", 2).newest()
    assert checkpoint is not None
    assert not problems
    state = dict(checkpoint.state)
    for timed in ("elapsed", "work_done", "so_far", "records"):
        state.pop(timed)
    return state, checkpoint.tensors


def assert_same_run(one: Path, other: Path) -> None:
    """Bit for bit, but for times."""
    ours, theirs = (list(read_records(folder / "records.jsonl")) for folder in (one, other))
    assert [without_varying(record) for record in ours] == [
        without_varying(record) for record in theirs
    ]
    assert (one / "genotype.json").read_bytes() == (other / "genotype.json").read_bytes()
    (state, tensors), (other_state, other_tensors) = last_state(one), last_state(other)
    assert state == other_state
    assert tensors.keys() == other_tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(tensor, other_tensors[name]), name


def test_a_search_without_a_folder_tells_all_and_writes_nothing(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    watch = Watch()
    result = prnas.search(small_config(images), callbacks=[watch])
    assert isinstance(result.genotype, Genotype)
    assert result.genotype.normal.num_nodes == 2
    assert watch.events == [
        *["start", "epoch", "epoch", "cycle", "epoch", "epoch", "cycle", "epoch", "cycle"],
        *["end", "close"],
    ]
    assert [one.grace for one in result.epochs] == [True, False, True, False, False]
    assert [one.architecture is None for one in result.epochs] == [
        one.grace for one in result.epochs
    ]
    assert [round(one.lr, 6) for one in result.epochs] == [0.025, 0.0175, 0.025, 0.0175, 0.025]
    last = result.epochs[-1].validation
    assert last is not None
    assert result.validation_accuracy == last.accuracy
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr() == ("", "")


def test_the_same_seed_finds_the_same_and_another_seed_another(images: Path) -> None:
    torch.manual_seed(1)
    one = prnas.search(small_config(images))
    torch.manual_seed(2)  # the global generator does not matter
    again = prnas.search(small_config(images))
    other = prnas.search(small_config(images, seed=2))
    assert one.genotype == again.genotype
    assert [without_varying(r) for r in one.epochs] == [without_varying(r) for r in again.epochs]
    assert one.epochs[0].weights != other.epochs[0].weights


def test_every_epoch_is_one_pass_over_the_weights_half(images: Path) -> None:
    result = prnas.search(small_config(images, batch={"min": 10, "multiple": 1, "max": 10}))
    seen = [one.weights.images for one in result.epochs]
    assert seen == [50, 50, 50, 50, 50]  # 48 images in batches of 10: the rest is carried on
    result = prnas.search(
        small_config(
            images,
            batch={"min": 20, "multiple": 1, "max": 20},
            schedule={
                "cycles": [{"epochs": 5, "grace_epochs": 5, "morphisms": 0, "candidates": 1}]
            },
        )
    )
    assert [one.weights.images for one in result.epochs] == [60, 40, 60, 40, 40]


def test_the_first_cycle_is_the_textbooks(images: Path, tmp_path: Path) -> None:
    config = small_config(
        images,
        batch={"min": 8, "multiple": 1, "max": 8},
        schedule={"cycles": [{"epochs": 3, "grace_epochs": 1, "morphisms": 0, "candidates": 1}]},
        data={"name": f"npz:{images}", "crop_padding": 2, "cutout": 3},
    )
    result = start(config, runs=tmp_path)
    _, tensors = last_state(folder_of(result))
    for name, expected in first_cycle(config, 8).state_dict().items():
        found = tensors[f"supernet/{name}"]
        assert torch.allclose(found, expected, rtol=1e-4, atol=1e-6), name


def test_pools_change_as_the_architecture_weights_say(images: Path) -> None:
    config = small_config(images)
    result = prnas.search(config)
    pools = Pools.initial(2, config.space.initial_pool)
    for cycle, record in zip(config.schedule.cycles, result.cycles, strict=True):
        for role in ("normal", "reduction"):
            labels = [[op.label for op in edge.candidates] for edge in pools.cell(role).edges]
            assert record.pools[role] == labels
            assert [len(one) for one in record.architecture[role]] == [len(one) for one in labels]
            assert any(len(set(one)) > 1 for one in record.architecture[role])
        change = Change.from_json(record.change)
        pools = pools.apply(change)
        assert record.statistics["average"]["num_candidates"] <= cycle.candidates
        assert record.statistics["discoverable"] == 11
    assert {len(edge.candidates) for edge in pools.normal.edges} == {1}
    for state, edge in result.genotype.normal.edges:
        place = pools.normal.positions.index((state, edge.input))
        assert pools.normal.edges[place].candidates == (edge.op,)


def test_a_run_folder_has_all_and_a_second_run_gets_another(images: Path, tmp_path: Path) -> None:
    config = small_config(images)
    one = folder_of(start(config, runs=tmp_path, name="mine", command=["prnas", "search"]))
    other = folder_of(start(config, runs=tmp_path, name="mine"))
    assert (one.name, other.name) == ("mine", "mine-2")
    assert_same_run(one, other)
    names = {path.name for path in one.iterdir()} - {".lock"}
    assert names == {
        "config.yaml",
        "records.jsonl",
        "batch-decisions.jsonl",
        "checkpoints",
        "genotype.json",
        "environment.json",
    }
    told = json.loads((one / "environment.json").read_text())
    assert told["sessions"][0]["packages"]["torch"]
    assert told["sessions"][0]["command"] == ["prnas", "search"]
    assert len(list((one / "checkpoints").iterdir())) == 2
    assert Genotype.loads((one / "genotype.json").read_text())


@pytest.mark.parametrize("at", [1, 4, 6, 7, 12, 16])
def test_a_stopped_search_goes_on_bit_for_bit(
    images: Path, tmp_path: Path, at: int, reference: Path
) -> None:
    stop = Watch(at, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped) as caught:
        start(small_config(images), runs=tmp_path, callbacks=[stop])
    folder = folder_of(caught.value)
    assert caught.value.number == signal.SIGTERM
    assert len(stop.steps) == at
    assert stop.events[-1] == "close"
    go_on = Watch()
    result = resume(folder, callbacks=[go_on])
    assert go_on.start.resumed
    assert at + len(go_on.steps) == sum(one.steps for one in result.epochs)
    assert len(result.epochs) == 5  # those before it was stopped, too
    assert_same_run(folder, reference)


@pytest.fixture(scope="module")
def reference(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never stopped."""
    return folder_of(start(small_config(images), runs=tmp_path_factory.mktemp("reference")))


def test_a_finished_search_is_not_searched_again(reference: Path) -> None:
    before = {path: path.read_bytes() for path in reference.glob("*.json*")}
    watch = Watch()
    result = resume(reference, callbacks=[watch])
    assert not watch.steps
    assert result.genotype == Genotype.loads((reference / "genotype.json").read_text())
    after = {path: path.read_bytes() for path in reference.glob("*.json*")}
    assert {path.name for path in after if after[path] != before[path]} == {"environment.json"}


def test_two_processes_in_one_folder_are_refused(images: Path, tmp_path: Path) -> None:
    refused: list[str] = []

    def try_it() -> None:
        (folder,) = tmp_path.iterdir()
        with pytest.raises(UserError) as caught:
            resume(folder)
        refused.append(str(caught.value))

    start(small_config(images), runs=tmp_path, callbacks=[Watch(3, try_it)])
    assert len(refused) == 1
    assert "another process" in refused[0]


def test_a_resumed_search_keeps_its_config(reference: Path) -> None:
    with pytest.raises(UserError, match="keeps its config"):
        resume(reference, overrides=["weights.lr=1.0"])


def test_changed_records_are_noticed(images: Path, tmp_path: Path) -> None:
    stop = Watch(9, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Stopped) as caught:
        start(small_config(images), runs=tmp_path, callbacks=[stop])
    path = folder_of(caught.value) / "records.jsonl"
    text = path.read_text()
    path.write_text(text.replace('"grace":true', '"grace":false', 1))
    with pytest.raises(UserError, match="does not fit the checkpoint"):
        resume(folder_of(caught.value))
    path.write_text(text)
    assert resume(folder_of(caught.value)).genotype


def stopped(images: Path, runs: Path, at: int = 9) -> Path:
    stop = Watch(at, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Stopped) as caught:
        start(small_config(images), runs=runs, callbacks=[stop])
    return folder_of(caught.value)


@pytest.mark.parametrize(
    "change", [("channels: 4", "channels: 6"), ("lr: 0.025", "lr: 0.03"), ("seed: 1", "seed: 2")]
)
def test_an_edited_config_is_noticed(images: Path, tmp_path: Path, change: tuple[str, str]) -> None:
    folder = stopped(images, tmp_path, at=2)
    path = folder / "config.yaml"
    assert change[0] in path.read_text()
    path.write_text(path.read_text().replace(*change, 1))
    with pytest.raises(UserError, match="the config changed"):
        resume(folder)


def test_other_images_are_noticed(tmp_path: Path) -> None:
    data = write_images(tmp_path / "images.npz")
    folder = stopped(data, tmp_path / "runs", at=2)
    write_images(data, number=100)
    with pytest.raises(UserError, match="the data changed"):
        resume(folder)


def test_a_run_without_checkpoints_is_left_as_it_is(images: Path, tmp_path: Path) -> None:
    folder = folder_of(start(small_config(images), runs=tmp_path))
    shutil.rmtree(folder / "checkpoints")
    before = {path.name: path.read_bytes() for path in folder.glob("*l")}
    with pytest.raises(UserError, match="no checkpoint to go on from"):
        resume(folder)
    assert {path.name: path.read_bytes() for path in folder.glob("*l")} == before


def test_a_damaged_checkpoint_is_told_and_the_one_before_it_used(
    images: Path, tmp_path: Path, reference: Path
) -> None:
    folder = stopped(images, tmp_path, at=9)
    newest = max((folder / "checkpoints").iterdir()) / "tensors.safetensors"
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 4
    newest.write_bytes(data)
    watch = Watch()
    resume(folder, callbacks=[watch])
    assert len(watch.messages) == 1
    assert "is damaged" in watch.messages[0]
    assert_same_run(folder, reference)


def test_a_folder_that_is_no_run_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("seed: 1\n")
    with pytest.raises(UserError, match=r"no records\.jsonl"):
        resume(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


def test_a_batch_of_more_images_than_there_are(images: Path) -> None:
    with pytest.raises(UserError, match=r"batch\.min \(60"):
        prnas.search(small_config(images, batch={"min": 60, "multiple": 1, "max": 60}))


def test_validation_goes_on_in_smaller_batches_when_memory_runs_out(
    images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = prnas.search(small_config(images))
    real = engine.Engine.evaluate

    def limited(self: engine.Engine, places: torch.Tensor) -> tuple[float, float]:
        if len(places) > 10:
            raise MemoryError
        return real(self, places)

    monkeypatch.setattr(engine.Engine, "evaluate", limited)
    found = prnas.search(small_config(images))
    for one, other in zip(found.epochs, expected.epochs, strict=True):
        assert one.validation is not None
        assert other.validation is not None
        assert one.validation.accuracy == other.validation.accuracy
        assert one.validation.loss == pytest.approx(other.validation.loss)


class Shaky:
    """A memory probe that says something else every time."""

    total = 1.0

    def __init__(self, *shares: float) -> None:
        self.shares = list(shares)

    def peak(self) -> float:
        self.shares.append(self.shares.pop(0))
        return self.shares[0]

    def reset(self) -> None:
        pass


def test_batch_decisions_are_repeated_after_a_crash(images: Path, tmp_path: Path) -> None:
    config = small_config(images, batch={"min": 2, "multiple": 1, "max": 16, "every": 1})
    shares = (0.1, 0.99, 0.5, 1.2, 0.9, 0.2, 0.7)
    whole = start(config, runs=tmp_path, name="whole", probe=Shaky(*shares))
    batches = [one.batch for one in whole.epochs]
    assert len(set(batches)) > 2

    class CrashError(Exception):
        pass

    def crash() -> None:
        raise CrashError

    last_step = sum(one.steps for one in whole.epochs)
    with pytest.raises(CrashError):  # the last checkpoint is that of the epoch before
        start(
            config,
            runs=tmp_path,
            name="crashed",
            callbacks=[Watch(last_step, crash)],
            probe=Shaky(*shares),
        )
    resume(tmp_path / "crashed", probe=Shaky(5.0))  # by itself it would take the smallest batch
    assert_same_run(tmp_path / "crashed", folder_of(whole))


def test_out_of_memory_lowers_the_batch_and_takes_the_same_images(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[tuple[str, int, int]] = []
    real = steps.Steps.forward_backward

    def limited(self: steps.Steps, part: steps.Part) -> tuple[float, float]:
        position = self.streams[part].state()["position"]
        done = real(self, part)
        taken.append((part, position, self.batch.batch))
        if self.batch.batch > 9 and part == "weights":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return done

    monkeypatch.setattr(steps.Steps, "forward_backward", limited)
    watch = Watch()
    config = small_config(images, batch={"min": 8, "multiple": 1, "max": 16, "every": 2})
    result = start(config, runs=tmp_path, callbacks=[watch])
    failed = [place for place, one in enumerate(taken) if one[0] == "weights" and one[2] > 9]
    assert failed
    for place in failed:
        assert taken[place + 1][:2] == taken[place][:2]  # the very same images, fewer of them
        assert taken[place + 1][2] < taken[place][2]
    reasons = [one.reason for one in watch.batches]
    assert reasons.count("out-of-memory") == len(failed)
    assert result.genotype


def test_out_of_memory_at_the_smallest_batch_is_an_error_that_keeps_the_checkpoint(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: Path
) -> None:
    real = steps.Steps.forward_backward

    def failing(self: steps.Steps, part: steps.Part) -> tuple[float, float]:
        if self.state.position.cycle == 1:
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
        return real(self, part)

    monkeypatch.setattr(steps.Steps, "forward_backward", failing)
    expected = r"batch of 8 \(the smallest is 8\), cycle 2, epoch 1, step 1\. The last checkpoint"
    with pytest.raises(UserError, match=expected):
        start(small_config(images), runs=tmp_path, name="a")
    monkeypatch.undo()
    resume(tmp_path / "a")
    assert_same_run(tmp_path / "a", reference)


@pytest.mark.parametrize("where", ["weight", "architecture"])
def test_numbers_that_are_not_finite_stop_the_search_where_they_arise(
    images: Path, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch, reference: Path
) -> None:
    running: list[engine.Engine] = []
    real = engine.Engine.run

    def run(self: engine.Engine) -> Genotype:
        running.append(self)
        return real(self)

    def spoil() -> None:
        state = running[0].state
        chosen = state.weight_parameters if where == "weight" else state.architecture_parameters
        with torch.no_grad():
            chosen[0].view(-1)[0] = float("nan")

    monkeypatch.setattr(engine.Engine, "run", run)
    with pytest.raises(UserError, match=r"not a finite number \(cycle 1, epoch 2, step 3\)"):
        start(small_config(images), runs=tmp_path, name="a", callbacks=[Watch(6, spoil)])
    monkeypatch.undo()
    resume(tmp_path / "a")
    assert_same_run(tmp_path / "a", reference)


def test_a_schedule_that_grows_the_network_and_drops_skips(images: Path, tmp_path: Path) -> None:
    """P-DARTS's way, stopped in its second stage."""
    cycles = [
        {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 3, "skip_dropout": 0.3},
        {"epochs": 2, "grace_epochs": 1, "morphisms": 0, "candidates": 1, "skip_dropout": 0.5,
         "cells": 4, "channels": 6},
    ]  # fmt: skip
    config = small_config(
        images,
        schedule={"cycles": cycles},
        derivation={"max_skips_normal": 0},
    )
    whole = start(config, runs=tmp_path, name="whole")
    assert "skip" not in [op.label for op in whole.genotype.normal.operations]
    with pytest.raises(Stopped):
        start(
            config,
            runs=tmp_path,
            name="stopped",
            callbacks=[Watch(9, lambda: os.kill(os.getpid(), signal.SIGTERM))],
        )
    resume(tmp_path / "stopped")
    assert_same_run(tmp_path / "stopped", folder_of(whole))


def test_validation_in_the_last_five_epochs_of_a_cycle_only(images: Path) -> None:
    config = small_config(
        images,
        schedule={"cycles": [{"epochs": 7, "grace_epochs": 7, "morphisms": 0, "candidates": 1}]},
        validation={"epochs": "last-five"},
    )
    result = prnas.search(config)
    assert [one.validation is not None for one in result.epochs] == [False] * 2 + [True] * 5


@pytest.mark.parametrize("precision", ["bf16-mixed", "64-true"])
def test_other_precisions(images: Path, precision: str) -> None:
    config = small_config(images, compute={"precision": precision})
    result = prnas.search(config)
    assert result.genotype
    single = prnas.search(small_config(images))
    assert result.epochs[0].weights.loss == pytest.approx(single.epochs[0].weights.loss, rel=0.05)
    assert result.epochs[0].weights.loss != single.epochs[0].weights.loss


def test_recomputation_finds_the_same_to_the_bit(images: Path) -> None:
    one = prnas.search(small_config(images))
    other = prnas.search(small_config(images, compute={"recompute": True}))
    assert one.genotype == other.genotype
    assert one.epochs[-1].validation == other.epochs[-1].validation


def test_an_impossible_accelerator_is_a_users_mistake(images: Path, tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(UserError, match="accelerator 'cuda'"):
        start(small_config(images, compute={"accelerator": "cuda"}), runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_missing_data_leaves_nothing_behind(tmp_path: Path) -> None:
    config = small_config(tmp_path / "nowhere.npz")
    with pytest.raises(UserError, match="nowhere"):
        start(config, runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_more_images_than_there_are(images: Path) -> None:
    config = small_config(images, data={"images": 1000})
    with pytest.raises(UserError, match="1000 training images"):
        prnas.search(config)


def test_a_part_of_the_images(images: Path) -> None:
    result = prnas.search(small_config(images, data={"images": 40}))
    assert [one.validation and one.validation.images for one in result.epochs] == [20] * 5


def test_darts_operations_with_zero(images: Path) -> None:
    darts = prnas.SearchConfig.from_data({"space": "darts-like"}).to_data()["space"]
    darts["initial_pool"] = ["zero", "skip", "conv 3x3", "max 3x3"]
    config = small_config(
        images,
        space=darts,
        schedule={"cycles": [{"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1}]},
    )
    assert isinstance(config, SearchConfig)
    labels = {op.label for op in prnas.search(config).genotype.normal.operations}
    assert "zero" not in labels
