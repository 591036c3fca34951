"""Published and random cells, trained in the same small way on CIFAR-10.

python -m benchmarks.cells [--seeds 2] [--random 5] [--runs runs/cells] [--data-root FOLDER]

Prints a Markdown table. Trainings that are already there are not repeated, and one that was
stopped goes on.
"""

import argparse
from pathlib import Path
from random import Random

from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.retraining.seeds import SeedsResult, is_group, resume_seeds, start_seeds
from prnas.runs.named import config_of
from prnas.space import zoo
from prnas.space.analysis.sampling import random_genotype
from prnas.space.genotype import Genotype

PUBLISHED = ("pr-darts-dl1", "pr-darts-dl2", "pr-darts-dr", "pr-darts-ur", "darts-v2", "p-darts")
# Test errors on CIFAR-10 as published, in per cent: for comparison only.
PAPER_ERRORS = {
    "pr-darts-dl1": "2.74 ± 0.12",
    "pr-darts-dl2": "2.51 ± 0.09",
    "pr-darts-dr": "2.55 ± 0.19",
    "pr-darts-ur": "3.79 ± 0.24",
    "darts-v2": "2.83",
    "p-darts": "2.50",
}


def cells(number: int) -> dict[str, Genotype]:
    """The published ones, and some drawn from DARTS's space."""
    operations = config_of("darts", (), SearchConfig).space.initial_pool
    drawn = {f"random-{seed}": random_genotype(operations, Random(seed)) for seed in range(number)}
    return {name: zoo.get(name) for name in PUBLISHED} | drawn


def train(name: str, config: RetrainConfig, seeds: int, runs: Path) -> SeedsResult:
    folder = runs / name
    if is_group(folder):
        return resume_seeds(folder, watchers=lambda number, of: [])
    return start_seeds(config, seeds, runs=runs, name=name, watchers=lambda number, of: [])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--random", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=Path, default=Path("runs/cells"))
    parser.add_argument("--data-root")
    parser.add_argument(
        "--part", type=int, default=0, help="train only every --of-th cell, from this on"
    )
    parser.add_argument("--of", type=int, default=1)
    options = parser.parse_args()
    base = config_of("retrain-cifar10-small", (), RetrainConfig)
    base = RetrainConfig.from_data(base.to_data(), [f"compute.threads={options.threads}"])
    if options.data_root:
        data = base.data.model_copy(update={"root": options.data_root})
        base = base.model_copy(update={"data": data})
    print(
        "| cell | parameters | MACs, million | test error, % | by seed | published, % | time, s |"
    )
    print("|---|---|---|---|---|---|---|", flush=True)
    for name, genotype in cells(options.random).items():
        config = base.model_copy(update={"genotype": genotype})
        trained = train(name, config, options.seeds, options.runs)
        first = trained.results[0]
        spread = "" if trained.deviation is None else f" ± {100 * trained.deviation:.2f}"
        by_seed = ", ".join(f"{100 * error:.2f}" for error in trained.test_errors)
        seconds = sum(result.seconds for result in trained.results)
        row = [
            name,
            f"{first.parameters:,}",
            f"{first.macs / 1e6:.2f}",
            f"{100 * trained.mean:.2f}{spread}",
            by_seed,
            PAPER_ERRORS.get(name, "–"),
            f"{seconds:.0f}",
        ]
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
