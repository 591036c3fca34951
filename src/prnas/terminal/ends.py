"""The end of a run: its results, the files in its folder, and what to do next."""

import shlex
from pathlib import Path
from statistics import fmean, stdev

from prnas.retraining.seeds import RESULTS, SeedsResult
from prnas.runs import names
from prnas.runs.events import RetrainResult, SearchResult
from prnas.runs.records import FitRecord
from prnas.space.fitting import in_short
from prnas.space.nasbench201.truth import truth_of
from prnas.terminal.amounts import counted, duration, exact_percent, percent
from prnas.terminal.cells import show_cells
from prnas.terminal.evidence_lines import show_table
from prnas.terminal.nasbench201 import show_truth
from prnas.terminal.output import facts, show, show_next, table
from prnas.terminal.searcher_lines import score_of

# Files of a run's folder in the order in which they are listed; others are just named.
CONTENTS = {
    names.GENOTYPE: "the cells",
    names.MODEL: "the trained model",
    names.REPORT: "the report; open it in a browser",
    names.CONFIG: "the full configuration, to repeat the run",
    names.RECORDS: "a record of every epoch",
    names.ENVIRONMENT: "versions, device and commands",
    names.DECISIONS: "every choice of the batch size",
    names.CHECKPOINTS: "the saved state",
    names.TENSORBOARD: "curves, for TensorBoard",
}
Facts = list[tuple[str, str]]


def show_result(result: SearchResult | RetrainResult) -> None:
    if isinstance(result, SearchResult):
        _show_search(result)
    else:
        _show_training(result)


def _show_search(result: SearchResult) -> None:
    show_cells(result.genotype)
    if (truth := truth_of(result.genotype)) is not None:
        show("")
        show_truth(truth)
    last = result.cycles[-1].evidence if result.cycles else None
    if last is not None:
        show_table(last, result.genotype)
    accuracy, sure = result.validation_accuracy, result.how_sure
    measured = "not measured" if accuracy is None else f"{percent(accuracy)} (supernet)"
    pairs = [
        *([("validation", measured)] if result.epochs or not result.evaluations else []),
        *_best_evaluation(result),
        *([("how sure", sure)] if sure else []),
        *([("limits", kept_limits(result.fit))] if result.fit else []),
        ("time", duration(result.seconds)),
    ]
    _show_end(pairs, result.folder, "prnas retrain {}")


def _best_evaluation(result: SearchResult) -> Facts:
    """The score by which a searcher chose what it found."""
    if not result.evaluations:
        return []
    deciding = [record for record in result.evaluations if record.stage != "repeat"]
    last = deciding[-1].stage
    stage = [evaluation for evaluation in deciding if evaluation.stage == last]
    best = max(stage, key=lambda evaluation: (evaluation.share or 1.0, evaluation.score))
    number = sum(evaluation.stage == "search" for evaluation in result.evaluations)
    text = f"{score_of(best)}, in evaluation {best.number} of {number:,}"
    if last == "final":
        text += f", the best of {counted(len(stage), 'finalist')}"
    repeated = [record.score for record in result.evaluations if record.stage == "repeat"]
    if len(repeated) > 1:
        text += (
            f"; trained {len(repeated)} times more: {exact_percent(fmean(repeated))} "
            f"± {100 * stdev(repeated):.2f}"
        )
    return [("score", text)]


def kept_limits(fit: FitRecord) -> str:
    """The final network's costs, their limits, and whether they are kept, in short."""
    return in_short(fit.limits, fit.cost, fit.fits, len(fit.given_up))


def _show_training(result: RetrainResult) -> None:
    pairs = [
        ("test error", f"{exact_percent(result.test_error)} ({_weights_of(result)})"),
        *_validation(result),
        *_size(result),
        ("time", duration(result.seconds)),
    ]
    commands = ("evaluate {}", "predict {} IMAGES", "export {} -o model.onnx --normalize")
    _show_end(pairs, result.folder, *(f"prnas {command}" for command in commands))


def show_seeds(seeds: SeedsResult) -> None:
    """A table of all seeds, and their mean."""
    first, number = seeds.results[0], len(seeds.results)
    rows = [
        [str(result.seed), exact_percent(result.test_error), duration(result.seconds)]
        for result in seeds.results
    ]
    show("", table(["seed", "test error", "time"], rows, right=(0, 1, 2)))
    spread = "" if seeds.deviation is None else f" ± {100 * seeds.deviation:.2f}"
    mean = "mean ± standard deviation" if spread else "mean"
    of_seeds = f"{mean} over {counted(number, 'seed')}, each the {_weights_of(first)}"
    pairs = [
        ("test error", f"{100 * seeds.mean:.2f}{spread} % ({of_seeds})"),
        *_size(first),
        ("time", duration(sum(result.seconds for result in seeds.results))),
    ]
    if seeds.folder is not None:
        pairs += [
            ("run folder", str(seeds.folder)),
            ("", f"{RESULTS}: these figures"),
            *[("", line) for line in _contents(seeds.folder) if line.startswith(names.REPORT)],
            ("", "seed-…: the run of each seed, with its model"),
        ]
    show("", facts(pairs))
    if first.folder is not None:
        show_next(f"prnas evaluate {shlex.quote(str(first.folder))}", logged=True)


def _validation(result: RetrainResult) -> Facts:
    score = result.validation
    if score is None:
        return []
    return [("validation", f"error {exact_percent(1 - score.accuracy)}, {score.images:,} images")]


def _weights_of(result: RetrainResult) -> str:
    """The weights that a test error was measured with, in words."""
    if result.kept_epoch is not None:
        return f"weights of epoch {result.kept_epoch}, the best by validation"
    epochs = result.averaged_epochs
    return "last epoch" if epochs == 1 else f"mean of the last {epochs} epochs"


def _size(result: RetrainResult) -> Facts:
    return [
        ("parameters", f"{result.parameters:,}"),
        ("MACs", f"{result.macs / 1e6:,.1f} million an image"),
    ]


def _show_end(pairs: Facts, folder: Path | None, *commands: str) -> None:
    """`commands` are those to type next, with {} for the folder."""
    if folder is not None:
        pairs = [*pairs, ("run folder", str(folder)), *[("", line) for line in _contents(folder)]]
    show("", facts(pairs))
    if folder is not None:
        quoted = shlex.quote(str(folder))
        show_next(*(command.format(quoted) for command in commands), logged=True)


def _contents(folder: Path) -> list[str]:
    try:
        inside = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    except OSError:  # It was moved or removed meanwhile; the result itself is in memory.
        return []
    listed = [f"{name}: {what}" for name, what in CONTENTS.items() if name in inside]
    return listed + sorted(inside - set(CONTENTS))
