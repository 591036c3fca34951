"""How a search chooses between the two ways to compute its supernet."""

import os
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from prnas.io.errors import UserError
from prnas.nets import search_cell
from prnas.nets.supernet import build_supernet
from prnas.runs.names import DECISIONS
from prnas.runs.processes import Processes
from prnas.runs.record_lines import read_records
from prnas.runs.records import ExecutionRecord
from prnas.runs.run import Stopped
from prnas.searching import execution
from prnas.searching.api import resume, start
from prnas.searching.execution import (
    TIMED,
    WARM_UP,
    ExecutionTrial,
    SupernetExecution,
    fused_works,
)
from prnas.space.pools import Pools
from prnas.space.setting import INITIAL_POOL
from tests.support.settings import small_config
from tests.support.watching import Watch, assert_same_run, folder_of, last_state

FIXED = {"min": 8, "multiple": 4, "max": 8}


def test_a_trial_times_both_ways_and_forgets_the_first_steps() -> None:
    trial = ExecutionTrial()
    seconds = {"fused": [9.0] * WARM_UP + [2.0] * TIMED, "plain": [0.1] * WARM_UP + [3.0] * TIMED}
    ways: list[str] = []
    while not trial.complete:
        ways.append(trial.way)
        trial.seconds[trial.way].append(seconds[trial.way][len(trial.seconds[trial.way])])
        again = ExecutionTrial()
        again.load_state(trial.state())
        assert again.state() == trial.state()
    assert ways == ["fused"] * (WARM_UP + TIMED) + ["plain"] * (WARM_UP + TIMED)
    assert trial.faster == "fused"
    trial.decision = "plain"
    assert trial.way == "plain"


@pytest.mark.parametrize("wrong", ["quickly", 3, ["fused"]])
def test_a_made_up_decision_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="cannot be computed"):
        ExecutionTrial().load_state({"decision": wrong, "seconds": {"fused": [], "plain": []}})


def test_a_search_is_computed_plainly_if_the_config_says_so(
    images: Path, tmp_path: Path, reference: Path
) -> None:
    config = small_config(images, compute={"supernet": "plain"})
    ways: set[str] = set()
    watch = Watch(3, lambda: ways.add(running[0].state.supernet.execution))
    running: list[Any] = []
    result = start_watched(config, tmp_path, watch, running)
    assert ways == {"plain"}
    _, plain = last_state(result)
    _, fused = last_state(reference)
    assert plain.keys() == fused.keys()  # so that either can go on with the other's checkpoint


def start_watched(config: Any, runs: Path, watch: Watch, running: list[Any]) -> Path:
    """Start a search, and remember it as soon as it runs."""
    with pytest.MonkeyPatch.context() as patch:
        real = execution.SupernetExecution.__init__

        def remember(self: Any, search: Any, saved: Any) -> None:
            running.append(search)
            real(self, search, saved)

        patch.setattr(execution.SupernetExecution, "__init__", remember)
        return folder_of(start(config, runs=runs, callbacks=[watch]))


def test_a_search_goes_on_the_other_way(images: Path, tmp_path: Path) -> None:
    stop = Watch(4, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped) as caught:
        start(small_config(images), runs=tmp_path, callbacks=[stop])
    assert resume(folder_of(caught.value), overrides=["compute.supernet=plain"]).genotype


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    measure(monkeypatch)


def measure(patch: pytest.MonkeyPatch) -> None:
    """Pretend that this device has to be measured, in a few steps of a clock that we set."""
    patch.setattr(execution, "is_measured", lambda device: True)
    patch.setattr(execution, "WARM_UP", 1)
    patch.setattr(execution, "TIMED", 2)


def let_steps_take(monkeypatch: pytest.MonkeyPatch, fused: float, plain: float) -> None:
    def timed(self: SupernetExecution, way: str, step: Callable[[], None]) -> float:
        assert self.search.state.supernet.execution == way
        step()
        return {"fused": fused, "plain": plain}[way]

    monkeypatch.setattr(SupernetExecution, "_timed", timed)


@pytest.fixture(scope="module")
def plain_is_faster(images: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Watch]:
    """A measured search that was never stopped, whose plain steps take half the time."""
    watch = Watch()
    with pytest.MonkeyPatch.context() as patch:
        measure(patch)
        let_steps_take(patch, fused=2.0, plain=1.0)
        runs = tmp_path_factory.mktemp("measured")
        result = start(small_config(images, batch=FIXED), runs=runs, callbacks=[watch])
    return folder_of(result), watch


def test_the_faster_way_goes_on(plain_is_faster: tuple[Path, Watch]) -> None:
    first, whole = plain_is_faster
    records = read_records(first / "records.jsonl")
    decisions = [record for record in records if isinstance(record, ExecutionRecord)]
    assert [(record.cycle, record.epoch, record.step) for record in decisions] == [
        (cycle, 1, 6) for cycle in (1, 2, 3)
    ]
    assert {record.execution for record in decisions} == {"plain"}
    assert decisions[0].seconds == {"fused": 2.0, "plain": 1.0}
    assert sum("supernet computed plain" in text for text in whole.messages) == 3


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("at", [2, 6])  # while it measures, and after the decision
def test_a_resumed_search_repeats_the_decision(
    images: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    at: int,
    plain_is_faster: tuple[Path, Watch],
) -> None:
    first, _ = plain_is_faster
    let_steps_take(monkeypatch, fused=2.0, plain=1.0)
    stop = Watch(at, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped) as caught:
        start(small_config(images, batch=FIXED), runs=tmp_path, callbacks=[stop])
    folder = folder_of(caught.value)
    # As if it had gone on to the end, and had been killed before another checkpoint.
    (folder / DECISIONS).write_bytes((first / DECISIONS).read_bytes())
    let_steps_take(monkeypatch, fused=1.0, plain=2.0)  # by itself, it would now decide otherwise
    resume(folder)
    assert_same_run(folder, first)


@pytest.mark.usefixtures("measured")
def test_steps_of_grace_epochs_are_compared_with_their_like_only(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here a step costs what it computes: plain steps half as much, those of grace epochs a tenth.

    The four fused steps would fit into the grace epoch of six, the four plain ones would not.
    """

    def timed(self: SupernetExecution, way: str, step: Callable[[], None]) -> float:
        step()
        return {"fused": 2.0, "plain": 1.0}[way] * (0.1 if self.search.grace else 1.0)

    monkeypatch.setattr(SupernetExecution, "_timed", timed)
    monkeypatch.setattr(execution, "TIMED", 3)
    cycle = {"epochs": 3, "grace_epochs": 1, "morphisms": 2, "candidates": 4}
    last = {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1}
    config = small_config(images, batch=FIXED, schedule={"cycles": [cycle, last]})
    folder = folder_of(start(config, runs=tmp_path))
    records = read_records(folder / "records.jsonl")
    (decision,) = [record for record in records if isinstance(record, ExecutionRecord)]
    assert decision.execution == "plain"
    assert decision.seconds == {"fused": 2.0, "plain": 1.0}


@pytest.mark.usefixtures("measured")
def test_a_device_without_the_kernels_is_computed_plainly_and_says_so_once(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> None:
        raise NotImplementedError("Could not run 'aten::batch_norm_update_stats'")

    monkeypatch.setattr(search_cell, "mix", missing)
    watch = Watch()
    start(small_config(images), runs=tmp_path, callbacks=[watch])
    assert sum("lacks kernels of the fused supernet" in text for text in watch.messages) == 1


def test_trying_the_kernels_changes_no_bit() -> None:
    supernet = build_supernet(Pools.initial(2, INITIAL_POOL), 4, 3, 5, execution="plain")
    before = {name: tensor.clone() for name, tensor in supernet.state_dict().items()}
    assert fused_works(supernet, (3, 8, 8))
    after = supernet.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert supernet.execution == "plain"
    assert all(weight.grad is None for weight in supernet.parameters())
    assert supernet.training
    assert supernet.relaxation.training


# -------------------------------------------------------------------- float16's gradient scaler


def scale_gradients(monkeypatch: pytest.MonkeyPatch, scale: float) -> list[torch.amp.GradScaler]:
    """Let all runs have a gradient scaler, as Fabric gives one with float16 on a GPU."""
    scalers: list[torch.amp.GradScaler] = []
    real = Processes.__init__

    def with_scaler(self: Processes, compute: Any) -> None:
        real(self, compute)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        scalers.append(self.scaler)

    monkeypatch.setattr(Processes, "__init__", with_scaler)
    return scalers


def test_gradients_scaled_by_a_power_of_two_are_the_same(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: Path
) -> None:
    scale_gradients(monkeypatch, 2.0**10)
    stop = Watch(7, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped) as caught:
        start(small_config(images), runs=tmp_path, callbacks=[stop])
    folder = folder_of(caught.value)
    resume(folder)
    ours, theirs = last_state(folder), last_state(reference)
    assert all(torch.equal(ours[1][name], theirs[1][name]) for name in theirs[1])
    assert ours[0]["scaler"]["scale"] == 2.0**10


def test_steps_with_infinite_scaled_gradients_are_left_out(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scalers = scale_gradients(monkeypatch, 2.0**10)
    real, calls = Processes.scaled, iter(range(1000))

    def overflowing(self: Processes, loss: torch.Tensor) -> torch.Tensor:
        return real(self, loss) * (float("inf") if next(calls) in (0, 3) else 1.0)

    monkeypatch.setattr(Processes, "scaled", overflowing)
    result = start(small_config(images), runs=tmp_path)
    assert scalers[0].get_scale() == 2.0**8
    _, tensors = last_state(folder_of(result))
    assert all(t.isfinite().all() for t in tensors.values() if t.is_floating_point())


def test_gradients_that_stay_infinite_are_a_fault(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scale_gradients(monkeypatch, 2.0**3)
    real = Processes.scaled
    monkeypatch.setattr(Processes, "scaled", lambda self, loss: real(self, loss) * float("inf"))
    with pytest.raises(UserError, match="the gradient of the network step is not a finite number"):
        start(small_config(images), runs=tmp_path)


@pytest.mark.parametrize("accelerator", ["cpu", "auto"])
def test_float16_is_refused_without_a_gpu(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accelerator: str
) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    config = small_config(images, compute={"precision": "16-mixed", "accelerator": accelerator})
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no other voice than ours
        with pytest.raises(UserError, match="float16 needs a GPU"):
            start(config, runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
