"""The search by real processes: killed, interrupted, several at once."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from prnas.config import SearchConfig
from prnas.reporting.records import EpochRecord, read_records
from prnas.yaml_files import dump_yaml
from tests.training.settings import small_config
from tests.training.textbook import first_cycle
from tests.training.watching import assert_same_run, last_state

TIMEOUT = 120


def write_config(config: SearchConfig, folder: Path) -> Path:
    path = folder / "small.yaml"
    path.write_text(dump_yaml(config.to_data()), encoding="utf-8")
    return path


def prnas(*arguments: object, cwd: Path, prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    command = [sys.executable, *(prefix or ("-m", "prnas")), *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=TIMEOUT)
    return process.returncode, out, err


@pytest.fixture(scope="module")
def reference(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never disturbed, saved at every step as the disturbed ones are."""
    folder = tmp_path_factory.mktemp("reference")
    config = write_config(small_config(images, checkpoints={"every_minutes": 1e-6}), folder)
    code, out, err = finish(prnas("search", config, "--name", "run", cwd=folder))
    assert code == 0, err
    assert "runs/run" in out
    return folder / "runs" / "run"


def test_killed_at_random_moments_it_ends_the_same(
    images: Path, tmp_path: Path, reference: Path
) -> None:
    generator = random.Random(5)
    config = write_config(small_config(images, checkpoints={"every_minutes": 1e-6}), tmp_path)
    run = tmp_path / "runs" / "run"
    kills = 0
    process = prnas("search", config, "--name", "run", cwd=tmp_path)
    while kills < 5:
        deadline = time.monotonic() + TIMEOUT
        size = progress_of(run)
        while process.poll() is None and progress_of(run) == size:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(generator.uniform(0, 0.15))  # some steps on, or in the midst of a checkpoint
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += 1
        process = prnas("search", "--resume", run, cwd=tmp_path)
    code, _, err = finish(process)
    assert code == 0, err
    assert kills >= 3
    assert_same_run(run, reference)


def progress_of(run: Path) -> int:
    folder = run / "checkpoints"
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return max((int(name) for name in names if name.isdecimal()), default=0)


KILLED_WHILE_SAVING = """
import os, signal, sys
from prnas.training import checkpoint
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
    code, _, err = finish(prnas("search", "--resume", run, cwd=tmp_path))
    assert code == 0, err
    assert_same_run(run, reference)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_a_signal_saves_and_says_how_to_go_on(
    images: Path, tmp_path: Path, reference: Path, number: int, code: int
) -> None:
    config = write_config(small_config(images), tmp_path)
    process = prnas("search", config, "--name", "run", cwd=tmp_path)
    run = tmp_path / "runs" / "run"
    deadline = time.monotonic() + TIMEOUT
    while not progress_of(run) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    ended, out, err = finish(process)
    assert ended == code, err
    assert "prnas search --resume" in out + err
    assert "Traceback" not in out + err
    ended, _, err = finish(prnas("search", "--resume", run, cwd=tmp_path))
    assert ended == 0, err
    assert_same_run(run, reference)


def two_process_config(images: Path) -> SearchConfig:
    return small_config(
        images,
        batch={"min": 4, "multiple": 1, "max": 4},
        schedule={"cycles": [{"epochs": 2, "grace_epochs": 1, "morphisms": 0, "candidates": 1}]},
    )


@pytest.mark.parametrize("launcher", ["fabric", "torchrun"])
def test_two_processes_are_one_with_twice_the_batch(
    images: Path, tmp_path: Path, launcher: str
) -> None:
    config = two_process_config(images)
    path = write_config(config, tmp_path)
    arguments = ("search", path, "--name", "run", "--devices", "2", "--accelerator", "cpu")
    prefix: tuple[str, ...] = ()
    if launcher == "torchrun":
        prefix = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "prnas")  # fmt: skip  # noqa: E501
    code, out, err = finish(prnas(*arguments, cwd=tmp_path, prefix=prefix))
    assert code == 0, err
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["run"]  # only one writes
    assert out.count("genotype.json: the cells") == 1  # and only one speaks
    _, tensors = last_state(tmp_path / "runs" / "run")
    for name, expected in first_cycle(config, batch=4, world=2).state_dict().items():
        found = tensors[f"supernet/{name}"]
        assert torch.allclose(found, expected, rtol=1e-4, atol=1e-6), name


def test_two_processes_stop_together_and_go_on(images: Path, tmp_path: Path) -> None:
    path = write_config(small_config(images), tmp_path)
    devices = ("--devices", "2", "--accelerator", "cpu")
    code, _, err = finish(prnas("search", path, "--name", "whole", *devices, cwd=tmp_path))
    assert code == 0, err
    process = prnas("search", path, "--name", "run", *devices, cwd=tmp_path)
    run = tmp_path / "runs" / "run"
    deadline = time.monotonic() + TIMEOUT
    while not progress_of(run) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    code, _, err = finish(process)
    assert code == 143, err
    code, _, err = finish(prnas("search", "--resume", run, cwd=tmp_path))
    assert code == 0, err
    assert_same_run(run, tmp_path / "runs" / "whole")


@pytest.mark.slow
def test_compiled_it_finds_about_the_same(images: Path, tmp_path: Path) -> None:
    path = write_config(two_process_config(images), tmp_path)
    code, _, err = finish(prnas("search", path, "--name", "plain", cwd=tmp_path))
    assert code == 0, err
    code, _, err = finish(prnas("search", path, "--name", "compiled", "--compile", cwd=tmp_path))
    assert code == 0, err
    losses = [
        [
            record.weights.loss
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
