"""`prnas zoo`: the published cells."""

from dataclasses import asdict
from typing import Any

from prnas.space import zoo
from prnas.space.network_size import network_size
from prnas.space.zoo import Absent, Error, ZooEntry
from prnas.terminal.cells import show_cells
from prnas.terminal.output import facts, show, show_heading, show_json, show_next, show_prose, table


def run(name: str | None, as_json: bool) -> None:
    if name is not None:
        _show_genotype(name, as_json)
        return
    entries = zoo.entries()
    if as_json:
        show_json([_data(name, entry) for name, entry in entries.items()])
        return
    rows = [
        [
            name,
            _cifar10(entry),
            percent(entry.cifar100_error),
            f"{size.parameters / 1e6:.3f}",
            "-" if entry.published_parameters is None else str(entry.published_parameters),
            f"{size.macs / 1e6:.1f}",
            "-" if entry.gpu_days is None else f"{entry.gpu_days:g}",
        ]
        for name, entry in entries.items()
        for size in (network_size(entry.genotype),)
    ]
    rows += [
        [
            name,
            _cifar10(absent),
            *("-", "-", str(absent.published_parameters), "-"),
            "-" if absent.gpu_days is None else f"{absent.gpu_days:g}",
        ]
        for name, absent in zoo.ABSENT.items()
    ]
    show_heading("Published cells")
    headings = ["name", "CIFAR-10", "CIFAR-100", "params", "paper's", "MACs", "days"]
    show(table(headings, rows, right=(1, 2, 3, 4, 5, 6)), "")
    show_prose(
        "Test errors (%), paper's parameters and GPU days of search are those that the papers "
        "report; an error in brackets is the mean over a paper's searches, not of this very cell. "
        "Parameters and multiply-accumulates, in millions, are counted here, for 36 channels, 20 "
        "cells and 10 classes, without the auxiliary head, on a 32x32 image. `prnas zoo NAME` has "
        "the source of a cell, and what is known where sizes disagree; of cells without a counted "
        "size, why a genotype cannot hold them."
    )
    show_next("prnas zoo pr-darts-dl2", "prnas draw pr-darts-dl2 -o cells.svg")


def _cifar10(entry: ZooEntry | Absent) -> str:
    """The cell's own error, or in brackets that of its method."""
    if entry.cifar10_error is None and entry.method_error is not None:
        return f"({percent(entry.method_error)})"
    return percent(entry.cifar10_error)


def percent(error: Error | None) -> str:
    if error is None:
        return "-"
    mean, spread = error
    return f"{mean:.2f}" if spread is None else f"{mean:.2f} ± {spread:.2f}"


def _data(name: str, entry: ZooEntry) -> dict[str, Any]:
    data = {key: value for key, value in asdict(entry).items() if key != "genotype"}
    size = asdict(network_size(entry.genotype))
    return {"name": name, **data, **size, "genotype": entry.genotype.to_json()}


def millions(number: int) -> str:
    return f"{number / 1e6:.3f} M" if number < 1e8 else f"{number / 1e6:.1f} M"


def _show_genotype(name: str, as_json: bool) -> None:
    entry = zoo.entry(name)
    if as_json:
        print(entry.genotype.dumps(), end="")
        return
    size = network_size(entry.genotype)
    show_heading(entry.title)
    pairs = [
        ("paper", f"{entry.citation} ({entry.reference})"),
        *([("cell from", entry.source)] if entry.source else []),
        ("test error", _errors(entry)),
        ("counted", f"{size.parameters:,} parameters, {size.macs:,} multiply-accumulates"),
        ("published", "; ".join(fact for fact in (*_published(entry), entry.note) if fact)),
    ]
    show(facts(pairs))
    show_cells(entry.genotype)
    show_next(f"prnas draw {name} -o {name}.svg", f"prnas zoo {name} --json > {name}.json")


def _errors(entry: ZooEntry) -> str:
    published = (("CIFAR-10", entry.cifar10_error), ("CIFAR-100", entry.cifar100_error))
    errors = [f"{data} {percent(error)} %" for data, error in published if error is not None]
    if entry.method_error is not None:
        errors.append(
            f"CIFAR-10 {percent(entry.method_error)} %, the mean over the paper's searches"
        )
    return ", ".join(errors) or "none of this very cell"


def _published(entry: ZooEntry) -> list[str]:
    """Size and days of search, as far as they are known."""
    size, days = entry.published_parameters, entry.gpu_days
    published = [
        *([f"{size} M parameters"] if size else []),
        *([f"{days:g} GPU days"] if days else []),
    ]
    return [", ".join(published)]
