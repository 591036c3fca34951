"""A search that stopped goes on as if it never had; what cannot go on is left as it is."""

import hashlib
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prnas.io.errors import UserError
from prnas.runs.checkpoint import CHECKSUMS, STATE, TENSORS
from prnas.runs.events import StepEvent
from prnas.runs.records import Evidence
from prnas.runs.run import Stopped
from prnas.searching.api import resume, start
from prnas.searching.cycle_end import Decision
from prnas.searching.judging import Judging
from prnas.space.genotype import Genotype
from tests.support.settings import small_config, write_images
from tests.support.watching import Shaky, Watch, assert_same_run, folder_of, stopped


@pytest.mark.parametrize(
    "at", [pytest.param(1, marks=pytest.mark.slow), 6, 7, pytest.param(16, marks=pytest.mark.slow)]
)
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


def test_a_finished_search_is_not_searched_again(reference: Path) -> None:
    before = {path: path.read_bytes() for path in reference.glob("*.json*")}
    watch = Watch()
    result = resume(reference, callbacks=[watch])
    assert not watch.steps
    assert result.genotype == Genotype.loads((reference / "genotype.json").read_text())
    after = {path: path.read_bytes() for path in reference.glob("*.json*")}
    assert {path.name for path in after if after[path] != before[path]} == {"environment.json"}


def test_a_checkpoint_can_be_asked_for(images: Path, tmp_path: Path) -> None:
    """The fifth step is within an epoch; the search goes on."""

    def numbers() -> set[str]:
        return {path.name for path in (tmp_path / "run" / "checkpoints").iterdir()}

    seen: list[set[str]] = []

    class Counting(Watch):
        def on_step(self, step: StepEvent) -> None:
            super().on_step(step)
            seen.append(numbers())

    watch = Counting(5, lambda: os.kill(os.getpid(), signal.SIGUSR1))
    result = start(small_config(images), runs=tmp_path, name="run", callbacks=[watch])
    assert result.genotype
    assert watch.steps[4].epoch == watch.steps[5].epoch
    assert max(seen[5]) > max(seen[4])


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


@pytest.mark.parametrize("cycle", [0, 2])
def test_a_search_that_is_stopped_while_it_measures_decides_the_same(
    cycle: int, images: Path, tmp_path: Path, reference: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a cycle has drawn its random numbers by then, and applied nothing yet."""
    real, calls = Judging.evidence, 0

    def evidence(self: Judging, decision: Decision) -> Evidence:
        nonlocal calls
        if calls == cycle:
            os.kill(os.getpid(), signal.SIGINT)
        calls += 1
        return real(self, decision)

    monkeypatch.setattr(Judging, "evidence", evidence)
    with pytest.raises(Stopped) as caught:
        start(small_config(images), runs=tmp_path)
    assert calls == cycle + 1
    monkeypatch.undo()
    run = folder_of(caught.value)
    resume(run)
    assert_same_run(run, reference)


def test_a_resumed_search_keeps_its_config(reference: Path) -> None:
    with pytest.raises(UserError, match="keeps its config"):
        resume(reference, overrides=["weights.lr=1.0"])


@pytest.mark.parametrize(
    "change", [("channels: 4", "channels: 6"), ("lr: 0.025", "lr: 0.03"), ("seed: 1", "seed: 2")]
)
def test_an_edited_config_is_noticed(
    images: Path,
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
    change: tuple[str, str],
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(_stopped_once(images, tmp_path_factory), folder)
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
    write_images(data)
    with np.load(data) as arrays:
        changed = dict(arrays)
    changed["x_train"][3, 0, 0] = changed["x_train"][3, 0, 0, ::-1]  # one pixel, other colours
    np.savez(data, **changed)
    with pytest.raises(UserError, match="the data changed"):
        resume(folder)
    write_images(data)
    assert resume(folder).genotype


def test_a_run_without_checkpoints_is_left_as_it_is(tmp_path: Path, reference: Path) -> None:
    folder = Path(shutil.copytree(reference, tmp_path / "run"))
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


def test_a_schedule_that_grows_the_network_and_drops_skips(images: Path, tmp_path: Path) -> None:
    """P-DARTS's way, stopped in its second stage."""
    cycles = [
        {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 3, "skip_dropout": 0.3},
        {"epochs": 2, "grace_epochs": 1, "morphisms": 0, "candidates": 1, "skip_dropout": 0.5,
         "cells": 4, "channels": 6},
    ]  # fmt: skip
    config = small_config(
        images,
        network={"nodes": 2},
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


def forge(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Another state in the newest checkpoint, and checksums that fit it."""
    newest = max((folder / "checkpoints").iterdir())
    for one in (folder / "checkpoints").iterdir():
        if one != newest:
            shutil.rmtree(one)
    state = json.loads((newest / STATE).read_text())
    change(state)
    (newest / STATE).write_text(json.dumps(state))
    sums = {
        name: hashlib.sha256((newest / name).read_bytes()).hexdigest() for name in (STATE, TENSORS)
    }
    (newest / CHECKSUMS).write_text(json.dumps(sums))


FORGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "before the start": lambda state: state["position"].update(images=-(10**18)),
    "no number": lambda state: state["position"].update(epoch="x"),
    "after the end": lambda state: state["position"].update(epoch=10**6),
    "no such cycle": lambda state: state["position"].update(cycle=10**6),
    "no position": lambda state: state.pop("position"),
    "no seconds": lambda state: state["so_far"]["seconds"].pop("other"),
    "a huge batch": lambda state: state["batch"].update(batch=10**9),
    "half an image": lambda state: state["streams"]["weights"].update(position=1.5),
    "longer records": lambda state: state["records"].update(size=10**15),
    "no records": lambda state: state.pop("records"),
    "a list of decisions": lambda state: state.update(decisions=[]),
    "no pools": lambda state: state.update(pools={}),
}


@pytest.mark.parametrize("how", FORGED)
def test_a_forged_checkpoint_is_refused(
    images: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, how: str
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(_stopped_once(images, tmp_path_factory), folder)
    forge(folder, FORGED[how])
    size = (folder / "records.jsonl").stat().st_size
    with pytest.raises(UserError):
        resume(folder)
    assert (folder / "records.jsonl").stat().st_size <= size


_STOPPED: list[Path] = []


def _stopped_once(images: Path, factory: pytest.TempPathFactory) -> Path:
    if not _STOPPED:
        _STOPPED.append(stopped(images, factory.mktemp("stopped"), at=2))
    return _STOPPED[0]


def test_noted_batches_beyond_the_rule_are_not_taken(images: Path, tmp_path: Path) -> None:
    folder = stopped(images, tmp_path, at=3)
    (folder / "batch-decisions.jsonl").write_text(
        "\n".join(
            f'["0/{epoch}/{step}/check", 1000000000]' for epoch in range(3) for step in range(9)
        )
    )
    watch = Watch()
    resume(folder, callbacks=[watch])
    assert max(one.batch for one in watch.batches) <= 16


def test_a_larger_network_in_an_edited_config_is_not_built(
    images: Path, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(_stopped_once(images, tmp_path_factory), folder)
    path = folder / "config.yaml"
    path.write_text(path.read_text().replace("channels: 4", "channels: 9999", 1))
    with pytest.raises(UserError, match="the config changed"):
        resume(folder)
