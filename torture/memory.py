"""Memory that runs out for real, and memory that must not grow.

    python -m torture.memory pressure [--rounds 6]
    python -m torture.memory leaks [--cycles 40] [--epochs 60] [--runs 20]

Pressure: searches and trainings in a process whose address space is bounded (RLIMIT_AS). With room
for the smallest batch, the batch must shrink and the run go on to its end; with less, the process
must end with one message. Leaks: long runs, and many in one process, watched at every step.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from prnas.io.yaml_files import dump_yaml
from prnas.retraining import api as retrain
from prnas.runs.events import Callback, StepEvent
from prnas.searching import api as search
from tests.support import warm
from tests.support.made_data import picture_folder
from tests.support.settings import small_config, small_training, write_images

# Everything is imported and one thread has computed before the bound is set: what is bounded is
# the room for a run, whatever the libraries take. Large blocks are mapped one by one and threads
# share one heap: so what is freed is free, and a run takes as much address space every time. At its
# end the process prints the most that it took.
BOUNDED = """
import ctypes, resource, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
import prnas.searching.api, prnas.retraining.api, prnas.terminal.display
from prnas.cli import main
M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8
libc = ctypes.CDLL(None)
if hasattr(libc, "mallopt"):
    libc.mallopt(M_MMAP_THRESHOLD, 2**17)
    libc.mallopt(M_ARENA_MAX, 1)
def size(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(one.split()[1]) for one in lines if one.startswith(key))
before, megabytes = size("VmSize"), float(sys.argv.pop(1))
most = resource.getrlimit(resource.RLIMIT_AS)[1]
if megabytes != float("inf"):
    bound = before + int(megabytes * 2**20)
    resource.setrlimit(resource.RLIMIT_AS, (bound, most))
try:
    main(sys.argv[1:])
finally:
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    print((size("VmPeak") - before) / 2**20)
"""


@dataclass(frozen=True)
class Squeezed:
    """How a run in bounded memory went."""

    code: int
    error: str
    batches: list[tuple[int, str]]  # sizes in order, and why
    megabytes: float  # the most address space that it took

    @property
    def times_lowered(self) -> int:
        return sum(reason == "out-of-memory" for _, reason in self.batches)


def squeeze(arguments: Sequence[str], run: Path, megabytes: float) -> Squeezed:
    """A command that writes to `run`, with so much address space for the run itself.

    Infinitely many megabytes are no bound.
    """
    process = warm.start("-c", BOUNDED, str(megabytes), *arguments)
    out, error = process.communicate(600)
    records = run / "records.jsonl"
    lines = records.read_text().splitlines() if records.exists() else []
    batches = [record for record in map(json.loads, lines) if record["type"] == "batch"]
    return Squeezed(
        process.wait(),
        error,
        [(record["batch"], record["reason"]) for record in batches],
        float(out.splitlines()[-1]) if out else nan,  # one that was aborted says nothing
    )


def write_hungry(
    folder: Path, task: str = "search", cycles: int = 1, step: int = 4, number: int = 512
) -> Path:
    """A run whose batch grows until memory ends; the machine's own bound is far away.

    Batches are multiples of `step`; `number` images.
    """
    images = write_images(folder / "large.npz", number=number, size=32)
    batch = {"min": step, "multiple": step, "max": 128, "every": 1}
    if task == "search":
        cycle = {"epochs": 1, "grace_epochs": 0, "morphisms": 2, "candidates": 4}
        last = {"epochs": 2, "grace_epochs": 0, "morphisms": 0, "candidates": 1}
        config: Any = small_config(
            images,
            network={"nodes": 2},
            batch=batch,
            schedule={"cycles": [cycle] * (cycles - 1) + [last]},
        )
    else:
        config = small_training(
            images,
            genotype="pr-darts-dl1",
            batch=batch,
            training={"epochs": 1, "warmup_epochs": 0},
        )
    path = folder / f"{task}.yaml"
    path.write_text(dump_yaml(config.to_data()), encoding="utf-8")
    return path


@dataclass
class Usage:
    """What this process holds, step by step."""

    memory: list[int] = field(default_factory=list[int])
    handles: list[int] = field(default_factory=list[int])
    threads: list[int] = field(default_factory=list[int])
    children: list[int] = field(default_factory=list[int])

    def take(self) -> None:
        process = psutil.Process()
        self.memory.append(process.memory_info().rss)
        self.handles.append(process.num_fds())
        self.threads.append(process.num_threads())
        self.children.append(len(process.children(recursive=True)))

    def growth(self) -> float:
        """Of resident memory, from the middle third to the last: a share."""
        third = len(self.memory) // 3
        middle, last = self.memory[third : 2 * third], self.memory[-third:]
        return median(last) / median(middle) - 1

    def constant(self) -> bool:
        """Handles, threads and processes are as many in the last third as in the middle one."""
        third = len(self.handles) // 3
        return all(
            max(values[-third:]) <= max(values[third : 2 * third])
            for values in (self.handles, self.threads, self.children)
        )

    def text(self) -> str:
        third = len(self.memory) // 3
        return (
            f"n = {len(self.memory)}, resident {median(self.memory[third : 2 * third]) / 1e6:.1f} "
            f"MB in the middle third, {median(self.memory[-third:]) / 1e6:.1f} MB in the last "
            f"({self.growth():+.2%}); handles {_range(self.handles[third:])}, threads "
            f"{_range(self.threads[third:])}, child processes {_range(self.children[third:])}"
        )


def _range(values: Sequence[int]) -> str:
    return str(min(values)) if min(values) == max(values) else f"{min(values)}-{max(values)}"


class UsageOfSteps(Callback):
    """Looks at the usage after every step of a run."""

    def __init__(self) -> None:
        self.usage = Usage()

    def on_step(self, step: StepEvent) -> None:
        self.usage.take()


def long_search(images: str, cycles: int, folder: Path | None = None, **data: Any) -> Usage:
    """A search of many short cycles: each prunes and replaces half of the candidates."""
    cycle = {"epochs": 1, "grace_epochs": 0, "morphisms": 2, "candidates": 4}
    last = {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1}
    config = small_config(
        Path("unused"),
        schedule={"cycles": [cycle] * (cycles - 1) + [last]},
        data={"name": images, "crop_padding": 1, **data},
        batch={"min": 4, "multiple": 4, "max": 4},
    )
    watch = UsageOfSteps()
    search.start(config, runs=folder, callbacks=[watch])
    return watch.usage


def long_training(images: str, epochs: int, folder: Path | None = None, **data: Any) -> Usage:
    config = small_training(
        Path("unused"),
        data={"name": images, "crop_padding": 1, "cutout": 2, **data},
        training={"epochs": epochs, "warmup_epochs": 0},
        batch={"min": 4, "multiple": 4, "max": 4},
    )
    watch = UsageOfSteps()
    retrain.start(config, runs=folder, callbacks=[watch])
    return watch.usage


def many_searches(images: str, number: int, **data: Any) -> Usage:
    """What is held after each of many searches in one process."""
    usage = Usage()
    for _ in range(number):
        long_search(images, 2, **data)
        usage.take()
    return usage


def _pressure(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for task in ("search", "retrain"):
            recipe = write_hungry(folder, task, cycles=3)
            what = [task, *(["pr-darts-dl1"] if task == "retrain" else []), str(recipe)]
            for number in range(rounds):
                megabytes = 400 / 2**number
                run = folder / f"{task}-{number}"
                arguments = [*what, "--quiet", "--runs", str(folder), "--name", run.name]
                outcome = squeeze(arguments, run, megabytes)
                assert outcome.code in (0, 2), (outcome.code, outcome.error)
                assert "Traceback" not in outcome.error, outcome.error
                if outcome.code:  # maybe before its first step
                    assert outcome.error.count("prnas: ") == 1, outcome.error
                    end = outcome.error.strip().splitlines()[-1]
                else:
                    most = max(batch for batch, _ in outcome.batches)
                    end = f"ended well, lowered {outcome.times_lowered} times, at most {most}"
                print(f"{task}, {megabytes:.0f} MB: {end}", flush=True)


def _leaks(cycles: int, epochs: int, runs: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        images = f"npz:{write_images(folder / 'images.npz')}"
        pictures = f"folder:{picture_folder(folder / 'pictures', per_class=24)}"
        streamed: dict[str, Any] = {"storage": "stream", "workers": 2, "image_size": 8}
        cases = {
            f"search of {cycles} cycles": lambda: long_search(images, cycles, folder / "a"),
            f"search of {cycles} cycles, streamed": lambda: long_search(
                pictures, cycles, folder / "b", **streamed
            ),
            f"training of {epochs} epochs": lambda: long_training(images, epochs, folder / "c"),
            f"training of {epochs} epochs, streamed": lambda: long_training(
                pictures, epochs, folder / "d", **streamed
            ),
            f"{runs} searches in one process": lambda: many_searches(images, runs),
            f"{runs} streamed searches in one process": lambda: many_searches(
                pictures, runs, **streamed
            ),
        }
        for what, act in cases.items():
            usage = act()
            print(f"{what}: {usage.text()}", flush=True)
            assert usage.growth() < 0.05, what
            assert usage.constant(), what


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["pressure", "leaks"])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--cycles", type=int, default=40)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--runs", type=int, default=20)
    wanted = parser.parse_args()
    if wanted.what == "pressure":
        _pressure(wanted.rounds)
    else:
        _leaks(wanted.cycles, wanted.epochs, wanted.runs)


if __name__ == "__main__":
    main()
