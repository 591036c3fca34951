"""`prnas zoo`: the published cells."""

from dataclasses import asdict
from typing import Any

from prnas.space import zoo
from prnas.space.network_size import network_size
from prnas.space.zoo import Error, ZooEntry
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
            percent(entry.cifar10_error),
            percent(entry.cifar100_error),
            millions(size.parameters),
            millions(size.macs),
            f"{entry.gpu_days:g}",
            entry.reference.removeprefix("arXiv:"),
        ]
        for name, entry in entries.items()
        for size in (network_size(entry.genotype),)
    ]
    show_heading("Published cells")
    headings = ["name", "CIFAR-10", "CIFAR-100", "params", "MACs", "days", "arXiv"]
    show(table(headings, rows, right=(1, 2, 3, 4, 5)), "")
    show_prose(
        "Test errors (%) and GPU days of search are those that the papers report. Parameters and "
        "multiply-accumulates are counted here, for 36 channels, 20 cells and 10 classes, without "
        "the auxiliary head, on a 32x32 image."
    )
    show_next("prnas zoo pr-darts-dl2", "prnas draw pr-darts-dl2 -o cells.svg")


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
    published = f"{entry.published_parameters:.1f} M parameters, {entry.gpu_days:g} GPU days"
    cifar100 = f", CIFAR-100 {percent(entry.cifar100_error)} %" if entry.cifar100_error else ""
    pairs = [
        ("paper", f"{entry.citation} ({entry.reference})"),
        ("test error", f"CIFAR-10 {percent(entry.cifar10_error)} %{cifar100}"),
        ("counted", f"{size.parameters:,} parameters, {size.macs:,} multiply-accumulates"),
        ("published", published + (f"; {entry.note}" if entry.note else "")),
    ]
    show(facts(pairs))
    show_cells(entry.genotype)
    show_next(f"prnas draw {name} -o {name}.svg", f"prnas zoo {name} --json > {name}.json")
