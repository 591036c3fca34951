"""The search by real processes: killed, interrupted, several at once."""

import signal
import socket
from pathlib import Path
from typing import Any

import pytest
import torch

from prnas.config.search import SearchConfig
from prnas.runs.record_lines import read_records
from prnas.runs.records import EpochRecord
from tests.support.real_processes import (
    finish,
    good,
    prnas,
    stopped_by,
    write_config,
)
from tests.support.settings import small_config
from tests.support.textbook_training import first_cycle
from tests.support.watching import assert_same_run, last_state

KILLED_WHILE_SAVING = """
import os, signal, sys
from prnas.runs import checkpoint
real, calls = {what}, 0
def deadly(*arguments):
    global calls
    calls += 1
    if calls == {number}:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments)
{what} = deadly
from prnas.cli import main
main(sys.argv[1:])
"""


@pytest.mark.slow  # a short `torture.kills` runs with the others
@pytest.mark.parametrize(
    ("what", "number"), [("checkpoint._write_synced", 11), ("checkpoint.os.replace", 6)]
)
def test_killed_while_a_checkpoint_is_written_it_ends_the_same(
    images: Path, tmp_path: Path, reference: Path, what: str, number: int
) -> None:
    config = write_config(small_config(images, checkpoints={"every_minutes": 1e-6}), tmp_path)
    program = KILLED_WHILE_SAVING.format(what=what, number=number)
    arguments = ("search", config, "--name", "run")
    code, _, _ = finish(prnas(*arguments, cwd=tmp_path, prefix=("-c", program)))
    assert code == -signal.SIGKILL
    run = tmp_path / "runs" / "run"
    good("search", "--resume", run, cwd=tmp_path)
    assert_same_run(run, reference)


def test_signals_save_and_say_how_to_go_on(images: Path, tmp_path: Path, reference: Path) -> None:
    config = write_config(small_config(images), tmp_path)
    run = tmp_path / "runs" / "run"
    begin = ("search", config, "--name", "run")
    go_on = ("search", "--resume", run)
    for number, arguments in ((signal.SIGINT, begin), (signal.SIGTERM, go_on)):
        out = stopped_by(number, *arguments, run=run, cwd=tmp_path)
        assert "prnas search --resume" in out
    good(*go_on, cwd=tmp_path)
    assert_same_run(run, reference)


def two_process_config(images: Path) -> SearchConfig:
    return small_config(
        images,
        batch={"min": 4, "multiple": 1, "max": 4},
        schedule={"cycles": [{"epochs": 2, "grace_epochs": 1, "morphisms": 0, "candidates": 1}]},
    )


@pytest.mark.parametrize("launcher", ["fabric", pytest.param("torchrun", marks=pytest.mark.slow)])
def test_two_processes_are_one_with_twice_the_batch(
    images: Path, tmp_path: Path, launcher: str
) -> None:
    config = two_process_config(images)
    path = write_config(config.override(["architecture.scoring=removal"]), tmp_path)
    arguments = ("search", path, "--name", "run", "--devices", "2", "--accelerator", "cpu")
    prefix = ("-m", "prnas")
    if launcher == "torchrun":
        prefix = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "prnas")  # fmt: skip  # noqa: E501
    out = good(*arguments, cwd=tmp_path, prefix=prefix)
    assert out.count("genotype.json: the cells") == 1  # only one speaks
    check_twice_the_batch(config, tmp_path / "runs")


def check_twice_the_batch(config: SearchConfig, runs: Path) -> None:
    assert [path.name for path in runs.iterdir()] == ["run"]  # only one process writes
    _, tensors = last_state(runs / "run")
    for name, expected in first_cycle(config, batch=4, world=2).state_dict().items():
        found = tensors[f"supernet/{name}"]
        assert torch.allclose(found, expected, rtol=1e-4, atol=1e-6), name


@pytest.mark.slow
def test_two_machines_are_one_with_twice_the_batch(images: Path, tmp_path: Path) -> None:
    """Two launchers, each with a process of the same search, as on two machines; here on one."""
    config = two_process_config(images)
    path = write_config(config, tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    processes = [
        prnas(
            *("search", path, "--name", "run", "--accelerator", "cpu"),
            cwd=tmp_path,
            prefix=(
                *("-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", str(rank)),
                *("--nproc-per-node", "1", "--master-addr", "127.0.0.1"),
                *("--master-port", str(port), "-m", "prnas"),
            ),
        )
        for rank in range(2)
    ]
    ends = [finish(process) for process in processes]
    assert [code for code, _, _ in ends] == [0, 0], ends
    assert ["genotype.json: the cells" in out for _, out, _ in ends] == [True, False]
    check_twice_the_batch(config, tmp_path / "runs")


# As the recipe `pictures`: plain convolutions, removal without architecture steps, a bound.
AS_PICTURES: dict[str, Any] = {
    "space": {
        "name": "pictures",
        "limits": {"kernel_min": 1, "kernel_max": 3, "dilation_max": 1, "depth_max": 0},
        "initial_pool": ["skip", "plain 1x1", "plain 3x3"],
    },
    "network": {"shape": "nasbench201", "cells": 3, "nodes": 3, "output": "last"},
    "architecture": {"scoring": "removal", "step": "none"},
    "derivation": {"max_skips_normal": 1},
}


@pytest.mark.slow  # a lost process, and how it goes on, is among the others
@pytest.mark.parametrize("changes", [{}, AS_PICTURES])
def test_two_processes_stop_together_and_go_on(
    images: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    morphisms = 0 if changes else 2
    candidates = 2 if changes else 4
    cycle = {"epochs": 1, "grace_epochs": 0, "morphisms": morphisms, "candidates": candidates}
    last = {**cycle, "morphisms": 0, "candidates": 1}
    config = small_config(images, schedule={"cycles": [cycle, last]}, **changes)
    path = write_config(config, tmp_path)
    devices = ("--devices", "2", "--accelerator", "cpu")
    good("search", path, "--name", "whole", *devices, cwd=tmp_path)
    run = tmp_path / "runs" / "run"
    arguments = ("search", path, "--name", "run", *devices)
    stopped_by(signal.SIGTERM, *arguments, run=run, cwd=tmp_path)
    good("search", "--resume", run, cwd=tmp_path)
    assert_same_run(run, tmp_path / "runs" / "whole")


@pytest.mark.slow
def test_compiled_it_finds_about_the_same(images: Path, tmp_path: Path) -> None:
    path = write_config(two_process_config(images), tmp_path)
    good("search", path, "--name", "plain", cwd=tmp_path)
    good("search", path, "--name", "compiled", "--compile", cwd=tmp_path)
    losses = [
        [
            record.scores["weights"].loss
            for record in read_records(tmp_path / "runs" / name / "records.jsonl")
            if isinstance(record, EpochRecord)
        ]
        for name in ("plain", "compiled")
    ]
    # Rounding differs, and training amplifies it.
    assert losses[1][0] == pytest.approx(losses[0][0], rel=1e-3)
    assert losses[1] == pytest.approx(losses[0], rel=0.05)
    assert last_state(tmp_path / "runs" / "compiled")[1].keys() == (
        last_state(tmp_path / "runs" / "plain")[1].keys()
    )
