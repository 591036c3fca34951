"""The curves of a run, as in the paper's Figure 3: a picture and a table.

python -m benchmarks.curves runs/RUN -o curves.svg    (needs the extra `figures`)
"""

import argparse
from math import nan
from pathlib import Path
from typing import Any

from prnas.runs.record_lines import read_records
from prnas.runs.records import CycleRecord, EpochRecord


def read(run: Path) -> tuple[list[EpochRecord], list[CycleRecord]]:
    records = list(read_records(run / "records.jsonl"))
    return (
        [record for record in records if isinstance(record, EpochRecord)],
        [record for record in records if isinstance(record, CycleRecord)],
    )


def draw(epochs: list[EpochRecord], cycles: list[CycleRecord], out: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    mpl.rcParams["svg.hashsalt"] = "prnas"
    from matplotlib import pyplot as plt

    figure: Any
    figure, axes = plt.subplots(2, 2, figsize=(9, 5.5), constrained_layout=True)
    number = range(1, len(epochs) + 1)
    ends = [0, *(index + 1 for index in range(len(epochs)) if _last(epochs, index))]
    curves: list[tuple[Any, str, dict[str, list[float]]]] = [
        (
            axes[0][0],
            "accuracy",
            {
                "training, weights' half": [epoch.scores["weights"].accuracy for epoch in epochs],
                "validation, architecture half": [
                    epoch.scores["validation"].accuracy if "validation" in epoch.scores else nan
                    for epoch in epochs
                ],
            },
        ),
        (axes[0][1], "seconds an epoch", {"": [epoch.seconds for epoch in epochs]}),
    ]
    for axis, name, lines in curves:
        for label, values in lines.items():
            axis.plot(number, values, marker=".", label=label)
        for start, end, cycle in zip(ends, ends[1:], cycles, strict=False):
            axis.axvline(end + 0.5, color="0.8", lw=0.8, zorder=0)
            grace = sum(epoch.grace for epoch in epochs if epoch.cycle == cycle.cycle)
            axis.axvspan(start + 0.5, start + grace + 0.5, color="0.94", zorder=0)
        axis.set(xlabel="epoch (shaded: grace)", ylabel=name)
        if len(lines) > 1:
            axis.legend(frameon=False)
    numbers = range(1, len(cycles) + 1)
    shares = [cycle.statistics["average"]["types"] for cycle in cycles]
    for kind in ("conv", "pool", "skip"):
        axes[1][0].plot(numbers, [share[kind] for share in shares], marker="o", label=kind)
    axes[1][0].set(xlabel="after cycle", ylabel="share of candidates", ylim=(0, 1))
    axes[1][0].legend(frameon=False)
    for role, marker in (("normal", "o"), ("reduction", "s")):
        values = [cycle.statistics[role]["cell"]["similarity"] for cycle in cycles]
        points = [(number, value) for number, value in zip(numbers, values, strict=True) if value]
        axes[1][1].plot(*zip(*points, strict=True), marker=marker, label=role)
    axes[1][1].set(xlabel="after cycle", ylabel="similarity within pools")
    axes[1][1].legend(frameon=False)
    figure.savefig(out, metadata={"Date": None} if out.suffix == ".svg" else None, dpi=150)


def _last(epochs: list[EpochRecord], index: int) -> bool:
    return index + 1 == len(epochs) or epochs[index + 1].cycle != epochs[index].cycle


def table(epochs: list[EpochRecord], cycles: list[CycleRecord]) -> str:
    """A row for each cycle, in Markdown."""
    lines = [
        "| cycle | training | validation: first epoch, last | batch | seconds an epoch "
        "| conv / pool / skip after it | similarity, normal / reduction | parents' probability |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for cycle in cycles:
        own = [epoch for epoch in epochs if epoch.cycle == cycle.cycle]
        types = cycle.statistics["average"]["types"]
        alike = [cycle.statistics[role]["cell"]["similarity"] for role in ("normal", "reduction")]
        parents = cycle.statistics["average"]["parent_probability"]
        checked = [
            epoch.scores["validation"].accuracy for epoch in own if "validation" in epoch.scores
        ]
        lines.append(
            f"| {cycle.cycle} | {own[-1].scores['weights'].accuracy:.1%} "
            f"| {checked[0]:.1%}, {checked[-1]:.1%} | {own[-1].batch} "
            f"| {min(e.seconds for e in own):.0f}–{max(e.seconds for e in own):.0f} "
            f"| {types['conv']:.0%} / {types['pool']:.0%} / {types['skip']:.0%} "
            f"| {' / '.join('–' if x is None else f'{x:.2f}' for x in alike)} "
            f"| {'–' if parents is None else f'{parents:.3f}'} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("run", type=Path)
    parser.add_argument("-o", "--out", type=Path, default=Path("curves.svg"))
    options = parser.parse_args()
    epochs, cycles = read(options.run)
    draw(epochs, cycles, options.out)
    print(table(epochs, cycles))
    print(f"\nwrote {options.out}")


if __name__ == "__main__":
    main()
