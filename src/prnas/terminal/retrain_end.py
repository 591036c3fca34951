"""The end of a training: the test error, and where the model lies."""

import shlex

from prnas.report.page import FILE
from prnas.retraining.seeds import RESULTS, SeedsResult
from prnas.runs.callbacks import RetrainResult
from prnas.terminal.amounts import duration
from prnas.terminal.folder_contents import contents
from prnas.terminal.output import facts, show, show_next, table
from prnas.terminal.run_end import show_end


def percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def mean_of(epochs: int) -> str:
    return "last epoch" if epochs == 1 else f"mean of the last {epochs} epochs"


def show_trained(result: RetrainResult) -> None:
    """Tell a person how a training ended."""
    pairs = [
        ("test error", f"{percent(result.test_error)} ({mean_of(result.averaged_epochs)})"),
        *_size(result),
        ("time", duration(result.seconds)),
    ]
    commands = ("prnas evaluate {}", "prnas export {} -o model.onnx")
    show_end(pairs, result.folder, *commands)


def show_seeds(found: SeedsResult) -> None:
    """One table over all seeds."""
    first = found.results[0]
    rows = [
        [str(one.seed), percent(one.test_error), duration(one.seconds)] for one in found.results
    ]
    show("", table(["seed", "test error", "time"], rows, right=(0, 1, 2)))
    spread = "" if found.deviation is None else f" ± {100 * found.deviation:.2f}"
    number = len(found.results)
    pairs = [
        (
            "test error",
            f"{100 * found.mean:.2f}{spread} % (mean{' ± standard deviation' if spread else ''} "
            f"over {number} {'seed' if number == 1 else 'seeds'}, each the "
            f"{mean_of(first.averaged_epochs)})",
        ),
        *_size(first),
        ("time", duration(sum(one.seconds for one in found.results))),
    ]
    if found.folder is not None:
        pairs += [
            ("run folder", str(found.folder)),
            ("", f"{RESULTS}: these figures"),
            *[("", line) for line in contents(found.folder) if line.startswith(FILE)],
            ("", "seed-…: the run of each seed, with its model"),
        ]
    show("", facts(pairs))
    if first.folder is not None:
        show_next(f"prnas evaluate {shlex.quote(str(first.folder))}", logged=True)


def _size(result: RetrainResult) -> list[tuple[str, str]]:
    return [
        ("parameters", f"{result.parameters:,}"),
        ("MACs", f"{result.macs / 1e6:,.1f} million an image"),
    ]
