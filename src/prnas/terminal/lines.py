"""A run in lines: its start, its epochs in a log, and the view at the foot of a terminal."""

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from prnas.config.architecture import UNTRAINED
from prnas.config.search import SearchConfig
from prnas.runs.events import RunStart, StepEvent, Validating
from prnas.runs.records import EpochRecord, Score
from prnas.terminal import searcher_lines
from prnas.terminal.amounts import counted, duration, exact_percent, memory, percent, rate, speed
from prnas.terminal.output import reason_lines
from prnas.terminal.searcher_lines import Evaluations

BAR = 40
LEAST_BAR = 8  # Shorter bars would show nothing.


def start_lines(start: RunStart, title: str) -> list[str]:
    """Lines on what runs, on what device, where it is written, and where it was resumed."""
    if start.without_supernet:
        return _cell_lines(start, title)
    images = start.config.data.name
    epochs = counted(sum(start.epochs_of_cycles), "epoch")
    if start.is_search:
        what = f"search on {images}: {counted(len(start.epochs_of_cycles), 'cycle')}"
        network = f"supernet of {start.num_parameters:,} parameters"
    else:
        validation = start.validation_images
        more = f"{validation:,} to validate, " if validation else ""
        what = f"training on {images}: {start.train_images:,} images, {more}"
        what += f"{start.test_images:,} to test"
        macs = f"{(start.macs or 0) / 1e6:,.1f} million multiply-accumulates an image"
        network = f"network of {start.num_parameters:,} parameters, {macs}"
    processes = f", {start.world_size} processes" if start.world_size > 1 else ""
    what = f"{title}{what}, {epochs}, seed {start.config.seed}"
    lines = [what, f"{start.device}{processes}; {network}"]
    if start.folder is not None:
        lines.append(f"run folder {start.folder}")
    lines += [*start.notes, *reason_lines(start.reasons)]
    if isinstance(start.config, SearchConfig):
        budget = searcher_lines.supernet_budget(start.config)
        lines += [] if budget is None else [f"budget: {budget}"]
    if start.resumed:
        cycle = f"cycle {start.cycle}, " if start.is_search else ""
        epoch = "its end" if start.at_end_of_cycle else f"epoch {start.epoch}"
        lines.append(f"resumed at {cycle}{epoch}")
    return lines + (_legend(start.config) if isinstance(start.config, SearchConfig) else [])


def _legend(config: SearchConfig) -> list[str]:
    """The meanings of the words and percentages in a search's line of an epoch."""
    lines = ["weights, architecture: accuracy on images that train the one, or the other"]
    if config.architecture.step in UNTRAINED:
        lines = ["weights: accuracy on the images that train the network's weights"]
    lines.append("validation: accuracy on images that do not train the weights, after the epoch")
    if any(cycle.grace_epochs for cycle in config.schedule.cycles):
        lines.append("grace: an epoch that does not train the architecture")
    return lines


def _cell_lines(start: RunStart, title: str) -> list[str]:
    """The same of a search that scores cells one by one."""
    assert isinstance(start.config, SearchConfig)
    lines = [f"{title}{searcher_lines.cell_search(start.config)}, seed {start.config.seed}"]
    if start.folder is not None:
        lines.append(f"run folder {start.folder}")
    lines += reason_lines(start.reasons)
    if start.resumed:
        lines.append(f"resumed after {counted(start.evaluations, 'evaluation')}")
    return lines


def evaluations_view(
    evaluations: Evaluations, title: str, elapsed: str, width: int
) -> RenderableType:
    """Four lines, as `live_view`, while a searcher is at work."""
    last, total = evaluations.last, evaluations.total
    assert last is not None
    name = searcher_lines.in_short(evaluations.config)
    bar = _line(f"{last.number:,} evaluations")
    if total is not None:
        bar = _progress_bar(last.number, total, "evaluations", width)
    return Group(
        _line(f"{title}{name}  {evaluations.position}", "bold"),
        bar,
        _line(evaluations.in_a_line()),
        _line(f"{elapsed}  {last.images:,} images' worth{budget_used(last.used)}"),
    )


def budget_used(used: float | None) -> str:
    """'  63 % of the budget', or nothing where there is none."""
    return "" if used is None else f"  {100 * used:.0f} % of the budget"


def _position(start: RunStart, event: StepEvent | EpochRecord, separator: str) -> str:
    """'cycle 2/9, epoch 1/3 (grace)'; a training has no cycles."""
    epochs = start.epochs_of_cycles
    cycle = f"cycle {event.cycle}/{len(epochs)}{separator}" if start.is_search else ""
    grace = " (grace)" if event.grace else ""
    return f"{cycle}epoch {event.epoch}/{epochs[event.cycle - 1]}{grace}"


def sentence(start: RunStart, record: EpochRecord, seconds_left: float | None) -> str:
    """The whole epoch in words, for a log."""
    texts = [
        ", ".join(_score(name, score) for name, score in record.scores.items()),
        f"lr {rate(record.lr)}",
        f"batch {record.batch}",
        f"{speed(record.images_per_second)} images/s",
        memory(record.memory),
        duration(record.seconds),
    ]
    if record.controller_score is not None and record.controller_entropy is not None:
        wrote = percent(record.controller_score)
        texts.insert(1, f"controller {wrote} (entropy {record.controller_entropy:.2f})")
    if seconds_left:
        texts.append(f"about {duration(seconds_left)} left")
    return f"{_position(start, record, ', ')}: {', '.join(texts)}"


def _score(name: str, score: Score) -> str:
    error = f"test error {exact_percent(1 - score.accuracy)}"
    result = error if name == "test" else f"{name} {percent(score.accuracy)}"
    return f"{result} (loss {score.loss:.4f})"


def live_view(
    start: RunStart,
    title: str,
    pools: str,
    step: StepEvent | None,
    validating: Validating | None,
    elapsed: str,
    width: int,
) -> RenderableType:
    """Four lines, each cut at the terminal's edge: a view that changes its height flickers."""
    if step is None:
        return _line(f"{title}preparing; {elapsed}")
    if validating is None:
        bar = _progress_bar(step.images, step.epoch_images, "images", width)
    else:
        done = "validated" if start.is_search else "tested"
        bar = _progress_bar(validating.images, validating.of_images, done, width)
    left = "" if step.seconds_left is None else f", about {duration(step.seconds_left)} left"
    scores = list(step.scores.items())
    accuracies = ", ".join(
        percent(score.accuracy) + (f" {name}" if start.is_search else "") for name, score in scores
    )
    position = f"{title}{_position(start, step, '  ')}  step {step.step}  {pools}".rstrip()
    training = f"loss {scores[0][1].loss:.4f}  accuracy {accuracies}"
    machine = f"{speed(step.images_per_second)} images/s  {memory(step.memory)}"
    return Group(
        _line(position, "bold"),
        bar,
        _line(f"{training}  lr {rate(step.lr)}  batch {step.batch}"),
        _line(f"{elapsed}{left}{budget_used(step.used)}  {machine}"),
    )


def _line(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _progress_bar(done: int, total: int, what: str, width: int) -> RenderableType:
    done = min(done, total)  # The last batch of an epoch may have more images than were left.
    label = f"{done:,}/{total:,} {what}"
    bar = min(BAR, width - len(label) - 2)
    if bar < LEAST_BAR:
        return _line(label)
    row = Table.grid(padding=(0, 2, 0, 0))
    row.add_row(ProgressBar(total=max(total, 1), completed=done, width=bar), label)
    return row
