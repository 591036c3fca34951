"""The accuracies of NAS-Bench-201's cells as tables in a terminal."""

from collections.abc import Mapping
from statistics import fmean, stdev

from prnas.space.nasbench201.cells import NUM_CELLS
from prnas.space.nasbench201.truth import DATA_SETS, Truth
from prnas.terminal.output import show, show_heading, show_prose, table

HEADINGS = ("", "test", "rank", "regret", "validation", "12 epochs", "parameters", "MACs")


def show_truth(truth: Truth) -> None:
    """All accuracies of a cell, with a row for each data set."""
    rows = [
        [
            data.title,
            f"{of.test:.2f} %",
            f"{of.rank:,}",
            f"{of.regret:.2f}",
            f"{of.validation:.2f} %",
            f"{of.test_12:.2f} %",
            f"{of.parameters:,}",
            f"{of.macs / 1e6:,.1f} M",
        ]
        for data in DATA_SETS
        for of in (truth.data_sets[data.name],)
    ]
    show_heading(f"Truth, by NAS-Bench-201: {truth.string}")
    show(table(HEADINGS, rows, right=range(1, len(HEADINGS))))
    show_prose(
        f"Test accuracy after 200 epochs (the mean of its trainings), its rank among all "
        f"{NUM_CELLS:,} cells, and how much better the best one is; validation accuracy after 200 "
        f"epochs, test accuracy after 12. All is of the benchmark's own trainings on these three "
        f"sets, and says nothing of other images. No search sees any of it before it has ended."
    )


def show_truths(truths: Mapping[str, Truth]) -> None:
    """The test accuracies of several cells, with rank and regret on the first data set."""
    first = DATA_SETS[0]
    rows = [
        [
            name,
            *(f"{truth.data_sets[data.name].test:.2f}" for data in DATA_SETS),
            f"{truth.data_sets[first.name].rank:,}",
            f"{truth.data_sets[first.name].regret:.2f}",
        ]
        for name, truth in truths.items()
    ]
    columns = [[truth.data_sets[data.name].test for truth in truths.values()] for data in DATA_SETS]
    means = [f"{fmean(column):.2f} ± {stdev(column):.2f}" for column in columns]
    regret = fmean(truth.data_sets[first.name].regret for truth in truths.values())
    rows.append([f"mean ± sd, n = {len(truths)}", *means, "", f"{regret:.2f}"])
    headings = ["", *(data.title for data in DATA_SETS), "rank", "regret"]
    show_heading("Truth, by NAS-Bench-201: test accuracy in per cent")
    show(table(headings, rows, right=range(1, len(headings))))
    show_prose(f"Rank among all {NUM_CELLS:,} cells, and regret, are those on {first.title}.")
