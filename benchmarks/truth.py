"""How well a supernet's one-shot scores agree with the truth of NAS-Bench-201.

    python -m benchmarks.truth nasbench201-small --epochs 2 5 10 20   # train one, score on the way
    python -m benchmarks.truth runs/RUN                               # the checkpoint of a search

A cell's one-shot score is that of the supernet with exactly one candidate on every edge, on
validation images, with the statistics of those images: with the mixing weight that it has among
the others or, "weighed 1", with the sum of theirs, as in the cell's own network. Kendall's tau-b
compares the order of random cells by it with their order by true test accuracy; the interval is a
bootstrap over cells. A supernet that is trained here has the recipe's first pools in one cycle;
`--architecture` trains architecture weights too, and then their order (the sum of the log
probabilities of a cell's operations) is compared as well.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from random import Random
from typing import Any

import torch
from torch import Tensor

from prnas.config.search import SearchConfig
from prnas.data.augment import plain
from prnas.data.dataset import DataSet, load, normalization
from prnas.io.errors import FormatError, UserError
from prnas.nets.removal import CandidateIndex, scores_without
from prnas.nets.supernet import Supernet
from prnas.runs.checkpoint import Checkpoints, read_checkpoint
from prnas.runs.folder import read_config
from prnas.runs.named import config_of
from prnas.runs.names import CHECKPOINTS, CONFIG
from prnas.runs.processes import Processes
from prnas.runs.run import Stopped
from prnas.runs.session import start_run
from prnas.searching.search import Search, split_halves
from prnas.searching.state import SearchState
from prnas.space.genotype import Cell, Edge, Genotype
from prnas.space.nasbench201.cells import index_of, string_of
from prnas.space.nasbench201.table import UNITS, column
from prnas.space.pools import Pools
from prnas.space.schedule import Cycle, Schedule
from prnas.studies.statistics import kendall_tau

RESAMPLES = 2000
Choice = tuple[int, ...]  # of a candidate on every edge


@dataclass(frozen=True, slots=True)
class Tau:
    """Kendall's tau-b with an interval that covers it in 95 % of all draws of cells."""

    tau: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.tau:.3f} ({self.low:.3f} to {self.high:.3f})"


def random_choices(pools: Pools, number: int, seed: int) -> list[Choice]:
    """Different cells of a supernet's candidates, drawn uniformly; all, if there are no more."""
    sizes = [len(edge.candidates) for edge in pools.normal.edges]
    generator, total = Random(seed), prod(sizes)

    def choice(index: int) -> Choice:
        digits: list[int] = []
        for size in sizes:
            index, digit = divmod(index, size)
            digits.append(digit)
        return tuple(digits)

    return [choice(index) for index in generator.sample(range(total), min(number, total))]


def genotype_of(pools: Pools, choice: Choice) -> Genotype:
    """The cell of these candidates."""
    cell = pools.normal
    chosen = [edge.candidates[index] for edge, index in zip(cell.edges, choice, strict=True)]
    nodes: dict[int, list[Edge]] = {}
    for (state, source), op in zip(cell.positions, chosen, strict=True):
        nodes.setdefault(state, []).append(Edge(source, op))
    last = max(nodes)
    return Genotype(Cell(tuple(tuple(node) for node in nodes.values()), (last,), shape=cell.shape))


def true_accuracies(pools: Pools, choices: Sequence[Choice], suffix: str = "c10") -> list[float]:
    """The test accuracies of cells after 200 epochs, in per cent."""
    table = column(f"e200_test_{suffix}")
    indices = [index_of(genotype_of(pools, choice)) for choice in choices]
    if None in indices:
        raise SystemExit("the supernet's candidates are not those of NAS-Bench-201")
    return [table[index] / UNITS for index in indices if index is not None]


@torch.no_grad()
def one_shot(
    supernet: Supernet,
    choices: Sequence[Choice],
    images: Tensor,
    labels: Tensor,
    batch: int,
    weighed_1: bool,
) -> tuple[list[float], list[float]]:
    """Accuracy and loss of every cell."""
    sizes = [len(edge.candidates) for edge in supernet.pools.normal.edges]
    removals = [
        [
            CandidateIndex("normal", edge, index)
            for edge, size in enumerate(sizes)
            for index in range(size)
            if index != choice[edge]
        ]
        for choice in choices
    ]
    correct = torch.zeros(len(choices), dtype=torch.float64)
    loss = torch.zeros(len(choices), dtype=torch.float64)
    for start in range(0, len(images), batch):
        window = slice(start, start + batch)
        scores = scores_without(
            supernet, images[window], labels[window], removals, renormalise=weighed_1
        )
        correct += scores.correct.sum(1).double().cpu()
        loss += scores.loss.double().sum(1).cpu()
    return (correct / len(images)).tolist(), (loss / len(images)).tolist()


def by_weights(supernet: Supernet, choices: Sequence[Choice]) -> list[float]:
    """The sums of the log probabilities of each cell's operations."""
    edges = [
        weights.detach().double().log_softmax(0).tolist()
        for weights in supernet.architecture_weights("normal")
    ]
    return [sum(edge[i] for edge, i in zip(edges, choice, strict=True)) for choice in choices]


def tau_of(first: Sequence[float], second: Sequence[float], seed: int = 0) -> Tau | None:
    """`None` if one of both is all ties."""
    tau = kendall_tau(first, second)
    if tau is None:
        return None
    x, y = (
        torch.sign(values[:, None] - values[None, :])
        for values in (
            torch.tensor(list(sample), dtype=torch.float64) for sample in (first, second)
        )
    )
    # How often each cell is drawn again: pairs of the same one are ties in both orders.
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(len(first), (RESAMPLES, len(first)), generator=generator)
    times = torch.zeros(RESAMPLES, len(first), dtype=torch.float64)
    times.scatter_add_(1, drawn, torch.ones(drawn.shape, dtype=torch.float64))

    def total(signs: Tensor) -> Tensor:
        return ((times @ signs) * times).sum(1)

    taus = total(x * y) / (total(x.abs()) * total(y.abs())).sqrt()
    low, high = torch.nanquantile(taus, torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    return Tau(tau, low, high)


class Judge:
    """Scores the same cells on the same images, at every stage of a supernet."""

    def __init__(self, config: SearchConfig, data: DataSet, options: argparse.Namespace) -> None:
        indices = split_halves(config, data)
        numbers = normalization(data.train, torch.cat(list(indices.values())).sort().values)
        half = indices["architecture"]
        generator = torch.Generator().manual_seed(options.cells_seed)
        chosen = half[torch.randperm(len(half), generator=generator)[: options.images]]
        self.images = plain(data.train.fetch(chosen), numbers)
        self.labels = data.train.labels[chosen].to(self.images.device)
        self.options = options

    def judge(self, supernet: Supernet) -> dict[str, Any]:
        """Tau by every scoring, and the truth about the cells that score best."""
        options, pools = self.options, supernet.pools
        choices = random_choices(pools, options.cells, options.cells_seed)
        truth = true_accuracies(pools, choices, options.truth)
        scores: dict[str, list[float]] = {}
        for weighed_1, name in ((False, ""), (True, ", weighed 1")):
            accuracy, loss = one_shot(
                supernet, choices, self.images, self.labels, options.batch, weighed_1
            )
            scores |= {f"accuracy{name}": accuracy, f"loss{name}": [-value for value in loss]}
        weights = by_weights(supernet, choices)
        if len(set(weights)) > 1:
            scores["weights"] = weights
        agreement: dict[str, Any] = {"cells": len(choices), "images": len(self.images)}
        for name, values in scores.items():
            best = max(range(len(choices)), key=values.__getitem__)
            index = index_of(genotype_of(pools, choices[best]))
            assert index is not None
            agreement[name] = {
                "tau": tau_of(values, truth),
                "best": truth[best],
                "cell": string_of(index),
            }
        agreement["best possible"] = max(truth)
        agreement["mean"] = sum(truth) / len(truth)
        return agreement


def trained(
    config: SearchConfig, epochs: Sequence[int], architecture: bool, then: Callable[[Search], None]
) -> None:
    """Train the supernet of the first pools; `then` is called after each of these epochs."""
    last = max(epochs)
    cycle = Cycle(last, 0 if architecture else last, 0, 1)
    first = config.schedule.cycles[0]
    cycle = replace(cycle, cells=first.cells, channels=first.channels)
    config = config.model_copy(update={"schedule": Schedule((cycle,))})

    class Watched(Search):
        def end_epoch(self) -> None:
            super().end_epoch()
            if self.state.position.epoch in epochs:
                then(self)

    start_run(Watched, config, runs=None)


def from_folder(folder: Path) -> tuple[SearchConfig, DataSet, Supernet]:
    """The supernet of a run's newest checkpoint. Nothing in the folder changes."""
    config = read_config(folder, SearchConfig)
    processes = Processes(config.compute)
    data = load(config.images, processes.device)
    numbers = Checkpoints(folder / CHECKPOINTS, 1).numbers()
    if not numbers:
        raise SystemExit(f"{folder} has no checkpoint")
    checkpoint = read_checkpoint(folder / CHECKPOINTS / f"{numbers[-1]:06}")
    state = SearchState(config, data, processes, checkpoint.state)
    state.load_tensors(checkpoint.tensors)
    return config, data, state.supernet


def show(epoch: int | None, agreement: dict[str, Any], as_json: bool) -> None:
    if as_json:
        plain_data = {
            name: {**value, "tau": _numbers(value["tau"])} if isinstance(value, dict) else value
            for name, value in agreement.items()
        }
        print(json.dumps({"epoch": epoch, **plain_data}), flush=True)
        return
    where = "checkpoint" if epoch is None else f"epoch {epoch}"
    for name, scoring in agreement.items():
        if isinstance(scoring, dict):
            tau = "all ties" if scoring["tau"] is None else str(scoring["tau"])
            best = f"best by it: {scoring['best']:.2f} %, {scoring['cell']}"
            print(f"{where:>10}  by {name:19}  tau {tau:26}  {best}", flush=True)


def _numbers(tau: Tau | None) -> list[float] | None:
    return None if tau is None else [tau.tau, tau.low, tau.high]


def main() -> None:
    text = __doc__ or ""
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recipe", help="a recipe, a YAML file, or the folder of a search")
    parser.add_argument("--epochs", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--architecture", action="store_true", help="train those weights too")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seed", type=int, default=None, help="of the supernet's training")
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--cells-seed", type=int, default=0, help="of the random cells")
    parser.add_argument("--images", type=int, default=1000, help="that cells are scored on")
    parser.add_argument("--batch", type=int, default=500, help="images whose statistics are shared")
    parser.add_argument("--truth", choices=("c10", "c100", "in16"), default="c10")
    parser.add_argument("--json", action="store_true", dest="as_json")
    try:
        measure(parser.parse_args())
    except (UserError, FormatError, Stopped) as error:
        raise SystemExit(str(error)) from None


def measure(options: argparse.Namespace) -> None:
    """Judge the supernet of a run's folder, or train one and judge it on the way."""
    folder = Path(options.recipe)
    if (folder / CONFIG).is_file():
        config, data, supernet = from_folder(folder)
        show(None, Judge(config, data, options).judge(supernet), options.as_json)
        return
    seed = [] if options.seed is None else [f"seed={options.seed}"]
    config = config_of(options.recipe, [*options.overrides, *seed], SearchConfig)
    judge: Judge | None = None

    def then(search: Search) -> None:
        nonlocal judge
        judge = judge or Judge(config, search.data, options)
        agreement = judge.judge(search.state.supernet)
        search.probe.reset()  # the next batch size follows from training, not from this
        show(search.state.position.epoch, agreement, options.as_json)

    trained(config, options.epochs, options.architecture, then)


if __name__ == "__main__":
    main()
