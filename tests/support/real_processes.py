"""Runs as real processes: started, waited for, stopped, killed and gone on with."""

import random
import signal
import time
from pathlib import Path

from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.io.yaml_files import dump_yaml
from tests.support import warm

TIMEOUT = 120


def write_config(config: SearchConfig | RetrainConfig, folder: Path) -> Path:
    path = folder / "small.yaml"
    path.write_text(dump_yaml(config.to_data()), encoding="utf-8")
    return path


def prnas(
    *arguments: object, cwd: Path, prefix: tuple[str, ...] = ("-m", "prnas")
) -> warm.WarmProcess:
    return warm.start(*prefix, *map(str, arguments), cwd=cwd)


def finish(process: warm.WarmProcess) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=TIMEOUT)
    return process.wait(), out, err


def good(*arguments: object, cwd: Path, prefix: tuple[str, ...] = ("-m", "prnas")) -> str:
    """What a process printed that must end well."""
    code, out, err = finish(prnas(*arguments, cwd=cwd, prefix=prefix))
    assert code == 0, err
    return out


def progress_of(run: Path) -> int:
    folder = run / "checkpoints"
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return max((int(name) for name in names if name.isdecimal()), default=0)


def wait_for_progress(process: warm.WarmProcess, run: Path, checkpoints: int = 1) -> None:
    """Until there are so many more checkpoints, or the process has ended."""
    deadline = time.monotonic() + TIMEOUT
    goal = progress_of(run) + checkpoints
    while process.poll() is None and progress_of(run) < goal:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def killed_and_resumed(
    *arguments: object, run: Path, kills: int, checkpoints: int, seed: int, cwd: Path
) -> str:
    """Kill a run up to `checkpoints` of them later, resume it, and so on; what it printed at last.

    All of it must have enough of them to be killed so often before it ends.
    """
    generator = random.Random(seed)
    process = prnas(*arguments, cwd=cwd)
    for _ in range(kills):
        wait_for_progress(process, run, generator.randint(1, checkpoints))
        time.sleep(generator.uniform(0, 0.1))  # some steps on, or in the midst of a checkpoint
        assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        process = prnas(arguments[0], "--resume", run, cwd=cwd)
    code, out, err = finish(process)
    assert code == 0, err
    return out


def stopped_by(number: int, *arguments: object, run: Path, cwd: Path) -> str:
    """What a run printed that got a signal after its first checkpoint."""
    process = prnas(*arguments, cwd=cwd)
    wait_for_progress(process, run)
    process.send_signal(number)
    code, out, err = finish(process)
    assert code == 128 + number, err
    assert "Traceback" not in out + err
    return out
