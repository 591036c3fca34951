"""What the tests of the search share: a callback that watches, and comparing runs."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from prnas.runs.checkpoint import Checkpoints
from prnas.runs.events import Callback, RetrainResult, RunStart, SearchResult, StepEvent
from prnas.runs.record_lines import read_records, to_line
from prnas.runs.records import BatchRecord, CycleRecord, EpochRecord, Record
from prnas.runs.run import Stopped
from prnas.searching.api import start
from prnas.space.pools import Pools
from tests.support.settings import small_config

# Fields of records that differ between runs of the same config and seed.
VARYING = ("seconds", "images_per_second", "memory", "seconds_for")


class Watch(Callback):
    """Remembers all events; may act at a given step."""

    def __init__(self, at: int | None = None, act: Any = None) -> None:
        self.steps: list[StepEvent] = []
        self.batches: list[BatchRecord] = []
        self.events: list[str] = []
        self.messages: list[str] = []
        self.at, self.act = at, act

    def on_start(self, start: RunStart) -> None:
        self.events.append("start")
        self.start = start

    def on_step(self, step: StepEvent) -> None:
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

    def on_end(self, result: SearchResult | RetrainResult) -> None:
        self.events.append("end")

    def close(self) -> None:
        self.events.append("close")


def without_varying(record: Record) -> dict[str, Any]:
    """What the records of two runs of the same config and seed have in common."""
    fields = json.loads(to_line(record))
    return {name: value for name, value in fields.items() if name not in VARYING}


def epochs_of(folder: Path) -> list[EpochRecord]:
    records = read_records(folder / "records.jsonl")
    return [record for record in records if isinstance(record, EpochRecord)]


def folder_of(outcome: SearchResult | RetrainResult | Stopped) -> Path:
    assert outcome.folder is not None
    return outcome.folder


def last_state(folder: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    checkpoint, problems = Checkpoints(folder / "checkpoints", 2).newest()
    assert checkpoint is not None
    assert not problems
    state = dict(checkpoint.state)
    for timed in ("elapsed", "work_done", "so_far", "records"):
        state.pop(timed, None)
    for searcher in ("asking", "choice"):
        state.get(searcher, {}).pop("seconds", None)
    (state.get("trained") or {}).pop("seconds", None)
    state.get("execution", {}).get("trial", {}).pop("seconds", None)
    return state, checkpoint.tensors


def assert_same_run(run: Path, reference: Path) -> None:
    """Bit for bit, but for times."""
    ours, theirs = (list(read_records(folder / "records.jsonl")) for folder in (run, reference))
    assert [without_varying(record) for record in ours] == [
        without_varying(record) for record in theirs
    ]
    results = ("genotype.json", "model/model.safetensors", "model/model.json")
    assert any((run / name).exists() for name in results)
    for name in results:
        assert (run / name).exists() == (reference / name).exists()
        if (run / name).exists():
            assert (run / name).read_bytes() == (reference / name).read_bytes(), name
    (state, tensors), (other_state, other_tensors) = last_state(run), last_state(reference)
    assert state == other_state
    assert tensors.keys() == other_tensors.keys()
    for name, tensor in tensors.items():
        assert torch.equal(tensor, other_tensors[name]), name


def stopped(images: Path, runs: Path, at: int = 9) -> Path:
    stop = Watch(at, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Stopped) as caught:
        start(small_config(images), runs=runs, callbacks=[stop])
    return folder_of(caught.value)


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
