"""Runs that an older release wrote, and what a run has in common with them."""

import json
import math
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from tests.support.arithmetic import arithmetic
from tests.support.watching import VARYING

OLD_RUNS = Path(__file__).parents[1] / "runs" / "format-2"
# Runs whose records are of version 2; those above have version 1.
OLD_RUNS_2 = Path(__file__).parents[1] / "runs" / "format-2-records-2"
ACCURACIES = ("accuracy", "test_error")  # one image more or less is a jump
# Numbers of records that are computed in another way since; old runs keep theirs.
COMPUTED_ANEW = ("similarity",)
RESULTS = ("genotype.json", "model/model.safetensors")


def copied(name: str, folder: Path, runs: Path = OLD_RUNS) -> Path:
    """A copy of an old run, which may be changed."""
    return Path(shutil.copytree(runs / name, folder / name))


@cache
def rounds_alike(runs: Path = OLD_RUNS) -> bool:
    """Whether this machine gives the same bits as the one that made the old runs."""
    return json.loads((runs / "arithmetic.json").read_text()) == arithmetic()


def records_of(run: Path) -> list[dict[str, Any]]:
    """As version 1 of the format says them, without what differs from run to run."""
    lines = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    if lines[:1] == [{"type": "header", "format": "prnas-records", "version": 2}]:
        lines = [as_version_1(line) for line in lines[1:]]
    left_out = (*VARYING, "parts")
    return [{name: line[name] for name in line if name not in left_out} for line in lines]


def as_version_1(record: dict[str, Any]) -> dict[str, Any]:
    """A record of version 2 in the words and counts of version 1, which all old runs have."""
    old = dict(record)
    for count in ("cycle", "epoch", "total_epoch", "step"):
        if count in old:
            old[count] -= 1
    if old["type"] == "cycle":
        old["architecture"] = old.pop("architecture_weights")
    if old["type"] in ("epoch", "training"):
        old["parts"] = old.pop("seconds_for")
    return old


def tensors_of(run: Path) -> dict[str, Tensor]:
    """All that the newest checkpoint holds."""
    newest = max((run / "checkpoints").iterdir())
    return load_file(newest / "tensors.safetensors")


def assert_repeats(run: Path, old: Path, *, exactly: bool) -> None:
    """A run ended as an older release's did: with the same bits, or but for rounding.

    It may have fields of records and tensors that the old one has not: newer ones.
    """
    records, old_records = records_of(run), records_of(old)
    assert len(records) == len(old_records)
    for record, old_record in zip(records, old_records, strict=True):
        assert_alike(record, old_record, exactly, old_record["type"])
    for name in RESULTS:
        assert (run / name).exists() == (old / name).exists()
    if (old / RESULTS[0]).exists():
        assert json.loads((run / RESULTS[0]).read_text()) == json.loads(
            (old / RESULTS[0]).read_text()
        )
    tensors, old_tensors = tensors_of(run), tensors_of(old)
    if (old / RESULTS[1]).exists():
        tensors |= load_file(run / RESULTS[1])
        old_tensors |= load_file(old / RESULTS[1])
    for name, tensor in old_tensors.items():
        assert (tensors[name].dtype, tensors[name].shape) == (tensor.dtype, tensor.shape), name
        if exactly or not tensor.is_floating_point():
            assert torch.equal(tensors[name], tensor), name
        else:
            most = 1e-2 * float(tensor.abs().max()) + 1e-5 if tensor.numel() else 0.0
            torch.testing.assert_close(tensors[name], tensor, rtol=0.0, atol=most, msg=name)


def assert_alike(value: Any, old: Any, exactly: bool, path: str) -> None:
    """Equal; if not `exactly`, numbers that were computed may be rounded differently."""
    if isinstance(old, dict):
        for key, inner in old.items():
            assert key in value, f"{path}.{key} is missing"
            if key in COMPUTED_ANEW:
                continue
            if key == "edits" and inner is None:
                continue  # a checkpoint of an older release does not know the epoch before
            assert_alike(value[key], inner, exactly, f"{path}.{key}")
    elif isinstance(old, list):
        assert len(value) == len(old), path
        if path.endswith(".confusion") and not exactly:
            assert [sum(row) for row in value] == [sum(row) for row in old], path
            return
        for number, (item, other) in enumerate(zip(value, old, strict=True)):
            assert_alike(item, other, exactly, f"{path}[{number}]")
    elif isinstance(old, float) and not exactly:
        most = 0.05 if path.endswith(ACCURACIES) else 1e-3
        assert math.isclose(value, old, rel_tol=1e-2, abs_tol=most), path
    else:
        assert (type(value), value) == (type(old), old), path
