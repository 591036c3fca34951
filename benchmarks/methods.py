"""What a step of each method takes, in time and memory, relative to first-order DARTS.

    python -m benchmarks.methods [--batch 16] [--turns 3] [--methods darts snas ...] [--csv FILE]

The recipe `darts` is switched to a method by its settings (`prnas methods NAME`), with fewer cells
and images. A step trains architecture and weights by a batch each, or as the method does it. Every
turn of a method is a process of its own; the methods take turns. Time is the processor's, so other
programs disturb it little; memory is the peak of the resident set less its level before.
"""

import argparse
import csv
import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from statistics import median

import torch

from benchmarks.measure import ratio, resident
from prnas.config import recipes
from prnas.config.methods import METHODS, Method
from prnas.config.methods import method as method_named
from prnas.config.search import SearchConfig
from prnas.runs.events import Callback, StepEvent
from prnas.searching import api

STEPS = 5  # the first of which is not counted
SMALLER = (
    "network.cells=5",
    "network.channels=16",
    "data.name=digits",
    "data.image_size=32",
    "data.flip=false",
    "data.crop_padding=1",
    "evidence.measure=none",
)


class EnoughError(Exception):
    """All steps are done."""


class Watch(Callback):
    """The processor's time and the peak of memory over some steps."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.level = resident("VmRSS")

    def on_step(self, step: StepEvent) -> None:
        self.times.append(time.process_time())
        if len(self.times) == STEPS:
            raise EnoughError

    @property
    def seconds(self) -> float:
        return median(b - a for a, b in zip(self.times, self.times[1:], strict=False))


def config_of(method: Method, batch: int) -> SearchConfig:
    config = recipes.any_recipe("darts")
    assert isinstance(config, SearchConfig)
    config = config.override(
        [*SMALLER, f"batch.min={batch}", f"batch.max={batch}", "compute.threads=1"]
    )
    return config.override(method.overrides())


def measure(method: Method, batch: int) -> tuple[float, float]:
    """Seconds and MiB of a step, in this process."""
    torch.set_num_threads(1)
    watch = Watch()
    with suppress(EnoughError):
        api.start(config_of(method, batch), runs=None, callbacks=[watch])
    return watch.seconds, resident("VmHWM") - watch.level


def in_a_process(method: Method, batch: int) -> tuple[float, float]:
    command = [sys.executable, "-m", "benchmarks.methods", "--only", method.name]
    command += ["--batch", str(batch)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    seconds, memory = json.loads(done.stdout.splitlines()[-1])
    return seconds, memory


def trained() -> list[Method]:
    """DARTS, and the methods whose steps differ from it: no mere schedules, no mere searchers."""

    def steps(method: Method) -> bool:
        sections = {section.split(".")[0] for section in method.settings}
        return "schedule" not in sections and bool(sections - {"searcher"})

    return [method for method in METHODS if method.name == "darts" or steps(method)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="besides DARTS; default: all")
    parser.add_argument("--csv", type=Path, help="write the ratios of every turn to this file")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(method_named(options.only), options.batch)))
        return
    names = options.methods
    chosen = [method for method in trained() if names is None or method.name in ("darts", *names)]
    seconds: dict[str, list[float]] = {method.name: [] for method in chosen}
    memory: dict[str, list[float]] = {method.name: [] for method in chosen}
    for turn in range(options.turns):
        for method in chosen:
            took, peak = in_a_process(method, options.batch)
            seconds[method.name].append(took)
            memory[method.name].append(peak)
        print(f"turn {turn + 1} of {options.turns} is done", file=sys.stderr, flush=True)
    print(f"PyTorch {torch.__version__}, 1 thread, batch {options.batch}, {options.turns} turns")
    print(f"{'method':16}{'estimate':>10}{'time':>22}{'memory':>22}")
    for method in chosen:
        time_ratio = ratio(seconds[method.name], seconds["darts"])
        memory_ratio = ratio(memory[method.name], memory["darts"])
        print(f"{method.name:16}{method.cost:>10.2f}{time_ratio:>22}{memory_ratio:>22}")
    if options.csv is not None:
        write_csv(options.csv, {"time": seconds, "memory": memory})


def write_csv(file: Path, measures: dict[str, dict[str, list[float]]]) -> None:
    """A line for each method, measure and turn: the ratio to first-order DARTS in that turn."""
    with file.open("w", encoding="utf-8", newline="") as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["method", "measure", "turn", "ratio"])
        for method in measures["time"]:
            for measure, values in measures.items():
                for turn, value in enumerate(values[method], 1):
                    ratio_here = value / values["darts"][turn - 1]
                    writer.writerow([method, measure, turn, f"{ratio_here:.4f}"])


if __name__ == "__main__":
    main()
