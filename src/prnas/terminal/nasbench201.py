"""What is known of cells of NAS-Bench-201, as tables in a terminal."""

from prnas.space.nasbench201.cells import NUM_CELLS
from prnas.space.nasbench201.truth import DATA_SETS, Truth
from prnas.terminal.output import show, show_heading, show_prose, table

HEADINGS = ("", "test", "rank", "regret", "validation", "12 epochs", "parameters", "MACs")


def show_truth(truth: Truth) -> None:
    """The accuracies of a cell on each data set."""
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
        f"epochs, test accuracy after 12. No search sees any of it before it has ended."
    )
