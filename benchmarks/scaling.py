"""How the cost of a search step grows: one setting changed at a time, in the DARTS-like space.

python -m benchmarks.scaling [--repeats 3]
"""

import argparse
from dataclasses import dataclass, replace

import torch

from benchmarks.measure import interleaved, ratio
from benchmarks.search_step import batches, our_step, stage_pools
from prnas.nets.supernet import build_supernet


@dataclass(frozen=True)
class Setting:
    batch: int = 32
    candidates: int = 4
    channels: int = 16
    cells: int = 8


BASE = Setting()
CHANGES: dict[str, tuple[int, ...]] = {
    "batch": (8, 16, 32, 64),
    "candidates": (2, 4, 6),
    "channels": (8, 16, 32),
    "cells": (5, 8, 11),
}


def seconds_of(settings: list[Setting], repeats: int) -> list[list[float]]:
    steps = {
        str(number): our_step(
            build_supernet(stage_pools("DL", setting.candidates), setting.channels, setting.cells),
            batches(setting.batch),
        )
        for number, setting in enumerate(settings)
    }
    return list(interleaved(dict(steps), repeats).values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"cost of a search step, relative to {BASE}")
    for name, values in CHANGES.items():
        settings = [replace(BASE, **{name: value}) for value in values]
        seconds = seconds_of(settings, options.repeats)
        base = seconds[values.index(getattr(BASE, name))]
        row = "; ".join(
            f"{value}: {ratio(times, base)}, linear {value / getattr(BASE, name):.2f}"
            for value, times in zip(values, seconds, strict=True)
        )
        print(f"{name:11} {row}", flush=True)


if __name__ == "__main__":
    main()
