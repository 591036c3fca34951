"""Every plot of a report, listed once: pages, comparisons and a paper's figures draw this list."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import groupby, zip_longest
from operator import itemgetter
from statistics import fmean, stdev
from typing import Any

from prnas.report.search_view import SearchView
from prnas.report.view import View
from prnas.runs.records import OPTIONAL
from prnas.space.shape import Role

Values = Sequence[float | None]  # None is a gap
PoolValue = Callable[[Mapping[str, Any]], float | None]

# Names of Okabe and Ito's colours, and dashes as SVG has them: colours alone are not for everyone.
KERNEL_COLORS = ("blue", "orange", "green", "red", "purple", "sky", "gray")
RUN_COLORS = ("blue", "red", "green", "orange", "purple", "sky", "gray")
DASHES = ("", "6 3", "2 3", "9 3 2 3", "1 3")
SCORES = ("accuracy", "error", "loss")  # how the ids of their plots begin
HELD_OUT = ("validation", "test")  # scores on images that train nothing: they are compared first


@dataclass(frozen=True, slots=True)
class Format:
    """The format of values: functions of the page's script by name, and the unit in a figure."""

    name: str
    tick: str  # format of the numbers at the axis
    unit: str = ""
    scale: float = 1.0
    whole: bool = False  # counts, which have no ticks between them


PERCENT = Format("percent", "share", "%", 100.0)
EXACT_PERCENT = Format("exactPercent", "share", "%", 100.0)
SMALL_PERCENT = Format("percent", "percent", "%", 100.0)
LOSS = Format("thousandths", "short")
SIMILARITY = Format("hundredths", "hundredths")
RATE = Format("rate", "rate")
COUNT = Format("whole", "whole", whole=True)
SECONDS = Format("seconds", "short")
MEMORY = Format("memory", "memory", "GB", 1e-9)


@dataclass(frozen=True, slots=True)
class Line:
    """Values at the ends of epochs, or at `xs`.

    With `until`, each value holds until the next, and the last until there. `compared` is the title
    of the plot that has this line of several runs; empty: it is not compared. `deviations` are
    those of the runs whose mean the values are.
    """

    label: str
    ys: Values
    color: str = "blue"
    dash: str = ""
    xs: Sequence[float] | None = None
    until: float | None = None
    compared: str = ""
    deviations: Values | None = None


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over epochs; `low` and `high` are bounds that the data do not move."""

    id: str
    title: str
    section: str
    format: Format
    lines: Sequence[Line]
    low: float | None = None
    high: float | None = None
    note: str = ""


SECTIONS = {
    "learning": "Learning",
    "derived": "The genotype, if the search ended now",
    "pools": "What the pools hold",
    "machine": "Speed and memory",
}
# Beside the headings, by the kind of run.
NOTES = {
    ("search", "learning"): "weights, architecture: while they were trained, each on its half of "
    "the images; shaded: grace epochs",
    (
        "search",
        "derived",
    ): "after each epoch, by the architecture weights; nothing in grace epochs, "
    "when they are equal",
    ("search", "pools"): "steps: the pools that each cycle trained",
}


def sections(plots: Sequence[Plot], kind: str = "") -> list[dict[str, Any]]:
    """The plots as the page draws them, under headings; `kind`: of the single run they are of."""
    return [
        {
            "id": section,
            "title": title,
            "note": NOTES.get((kind, section), ""),
            "plots": [
                _plain(plot)
                | {"format": _plain(plot.format), "lines": [_plain(line) for line in plot.lines]}
                for plot in plots
                if plot.section == section
            ],
        }
        for section, title in SECTIONS.items()
        if any(plot.section == section for plot in plots)
    ]


def _plain(value: Plot | Format | Line) -> dict[str, Any]:
    """The fields that say something."""
    items = {field.name: getattr(value, field.name) for field in fields(value)}
    return {name: item for name, item in items.items() if item is not None and item != ""}


def plots_of(view: View) -> list[Plot]:
    """All plots of a run, also those that have nothing to show yet."""
    if isinstance(view, SearchView):
        plots = [*_search_scores(view), *_columns(view), *_derived(view), *_pools(view)]
    else:
        plots = [*_training_scores(view), *_columns(view)]
    return sorted(plots, key=lambda plot: tuple(SECTIONS).index(plot.section))


def _search_scores(view: View) -> Iterator[Plot]:
    for what, form in (("accuracy", PERCENT), ("loss", LOSS)):
        lines = [
            _column(view, f"weights_{what}", "weights", compared=f"Training {what}"),
            _column(view, f"architecture_{what}", "architecture", "sky", DASHES[1]),
            _column(view, f"validation_{what}", "validation", "red", compared=f"Validation {what}"),
        ]
        yield Plot(what, what.capitalize(), "learning", form, lines)


def _training_scores(view: View) -> Iterator[Plot]:
    for what, form, low in (("error", EXACT_PERCENT, 0.0), ("loss", LOSS, None)):
        lines = [
            _column(view, f"training_{what}", "training", compared=f"Training {what}"),
        ]
        held_out = (("validation", "sky", DASHES[1]), ("test", "red", ""))
        measured = [kind for kind in held_out if f"{kind[0]}_{what}" in view.epochs.columns]
        for name, color, dash in measured or held_out[1:]:
            title = f"{name.capitalize()} {what}"
            lines.append(_column(view, f"{name}_{what}", name, color, dash, compared=title))
        yield Plot(what, what.capitalize(), "learning", form, lines, low)


# Plots of a single line: id, title, column, format.
COLUMNS = (
    ("learning-rate", "Learning rate", "lr", RATE),
    ("architecture-rate", "Learning rate of the architecture", "architecture_lr", RATE),
    ("curvature", "Curvature of the loss in the architecture", "curvature", LOSS),
    ("stopped-candidates", "Candidates that train no more", "stopped_candidates", COUNT),
    ("controller-score", "Score of what the controller wrote", "controller_score", PERCENT),
    ("controller-entropy", "Entropy of the controller", "controller_entropy", LOSS),
    ("controller-baseline", "Baseline of the controller", "controller_baseline", LOSS),
    ("drop-path", "Drop-path", "drop_path", SMALL_PERCENT),
    ("batch-size", "Batch size", "batch", COUNT),
    ("seconds", "Seconds per epoch", "seconds", SECONDS),
    ("images-per-second", "Images per second", "speed", COUNT),
    ("memory", "Peak memory", "memory", MEMORY),
)
# Labels of those lines, by the kind of run, where they are not the title.
LABELS = {"search lr": "learning rate of the weights", "training drop_path": "probability"}
# The columns that stand with accuracy and loss; and those that only some searches have.
LEARNING = ("lr", "architecture_lr", *OPTIONAL)
ONLY = {"drop_path": "training", "architecture_lr": "search"}  # columns of one kind of run


def _columns(view: View) -> Iterator[Plot]:
    for name, title, column, form in COLUMNS:
        if ONLY.get(column, view.kind) != view.kind:
            continue
        if column == "architecture_lr" and _never_recorded(view, column):
            continue
        values = view.epochs.columns.get(column, ())
        if column in OPTIONAL and all(value is None for value in values):
            continue
        label = LABELS.get(f"{view.kind} {column}", title.lower())
        line = _column(view, column, label, compared=title)
        line = _batch_steps(view, line) if column == "batch" else line
        section = "learning" if column in LEARNING else "machine"
        yield Plot(name, title, section, form, [line], 0.0)


def _never_recorded(view: View, column: str) -> bool:
    """Whether a search has had architecture steps without that column, as in older releases."""
    columns = view.epochs.columns
    steps = any(value is not None for value in columns.get("architecture_loss", ()))
    return steps and all(value is None for value in columns.get(column, ()))


def _derived(view: SearchView) -> Iterator[Plot]:
    """Plots of the genotype that would be derived: its changes, and its share of skips."""
    told = any(value is not None for value in view.epochs.columns.get("skips_normal", ()))
    if not told and any(record.derived for record in view.ends):
        yield from _derived_by_measurement(view)
        return
    if _never_recorded(view, "skips_normal"):
        return
    title = "Edits since the epoch before"
    line = _column(view, "edits", "edits", compared=title)
    yield Plot("edits", title, "derived", COUNT, [line], 0.0)
    lines = _all_cells(
        view.cycles.roles,
        lambda role: _column(view, f"skips_{role}", ""),
        "Share of skips if derived, {} cell",
    )
    yield Plot("skips", "Share of skips", "derived", PERCENT, lines, 0.0, 1.0)


def _derived_by_measurement(view: SearchView) -> Iterator[Plot]:
    """The same at the ends of cycles, where candidates are measured and that alone decides."""
    ends = [band.end for band in view.bands]
    derived = [record.derived for record in view.ends][: len(ends)]

    def line(label: str, ys: list[float | None], number: int, compared: str) -> Line:
        color = ("blue", "red")[number]
        return Line(label, ys, color, DASHES[number], ends[: len(ys)], compared=compared)

    title = "Edits since the cycle before"
    edits: list[float | None] = [None if one is None else one.edits for one in derived]
    yield Plot("edits", title, "derived", COUNT, [line("edits", edits, 0, title)], 0.0)
    lines = [
        line(
            f"{role} cell",
            [None if one is None else one.skips.get(role) for one in derived],
            number,
            f"Share of skips if derived, {role} cell",
        )
        for number, role in enumerate(view.cycles.roles)
    ]
    yield Plot("skips", "Share of skips", "derived", PERCENT, lines, 0.0, 1.0)


def _pools(view: SearchView) -> Iterator[Plot]:
    """Statistics of the pools that each cycle trained."""
    roles = view.cycles.roles
    pools = [pool for role in roles for pool in view.cycles.pools[role]]
    sizes = sorted({size for pool in pools for size in pool["kernels"]}, key=int)
    kernels = {size: KERNEL_COLORS[i % len(KERNEL_COLORS)] for i, size in enumerate(sizes)}
    for name, title, key, colors, label, compared in (
        ("operations", "Operations", "types", view.cycles.colors, "{0}", "Share of {0}, {1} cell"),
        ("kernels", "Kernel sizes of convs", "kernels", kernels, "{0}×{0}", ""),
    ):
        for role in roles:
            lines = [
                replace(
                    _pool_line(view, _share(key, word), role, label.format(word)),
                    color=color,
                    dash=DASHES[i % len(DASHES)],
                    compared=compared.format(word, role),
                )
                for i, (word, color) in enumerate(colors.items())
            ]
            title_of_cell = f"{title}, {role} cell"
            yield Plot(f"{name}-{role}", title_of_cell, "pools", PERCENT, lines, 0.0, 1.0)
    similarity = partial(_pool_line, view, itemgetter("similarity"))
    lines = _all_cells(roles, similarity, "Similarity, {} cell")
    yield Plot("similarity", "Similarity within a pool", "pools", SIMILARITY, lines, 0.0, 1.0)
    title = "Probability of the parents"
    lines = _all_cells(roles, partial(_parent_line, view), f"{title}, {{}} cell")
    yield Plot("parents", title, "pools", PERCENT, lines, 0.0)
    ends = [band.end for band in view.bands]
    title = "Decisions beyond chance"
    lines = [
        Line(label, ys[: len(ends)], color, dash, ends[: len(ys)], compared=compared)
        for label, ys, color, dash, compared in (
            ("better than chance", view.cycles.supported, "blue", "", title),
            ("against the measurement", view.cycles.contradicted, "red", DASHES[1], ""),
        )
    ]
    yield Plot("certainty", title, "pools", PERCENT, lines, 0.0, 1.0, note="chance: 5 %")
    lines = _all_cells(roles, partial(_pool_line, view, itemgetter("discovered")))
    note = f"of {view.cycles.discoverable}" if view.cycles.discoverable else ""
    yield Plot("discovered", "Operations discovered", "pools", COUNT, lines, 0.0, note=note)


def _column(
    view: View, name: str, label: str, color: str = "blue", dash: str = "", compared: str = ""
) -> Line:
    return Line(label, view.epochs.columns.get(name, []), color, dash, compared=compared)


def _batch_steps(view: View, line: Line) -> Line:
    """The batch size where it changed, also within an epoch; else from each epoch's start."""
    done, changes = view.epochs.done, view.epochs.batches
    if not changes:
        return replace(line, xs=list(range(done)), until=done)
    xs, sizes = zip(*changes, strict=True)
    return replace(line, xs=xs, ys=sizes, until=done)


def _share(what: str, name: str) -> PoolValue:
    """A share of a pool: 0 if it holds none of the kind, nothing if it holds none of any kind."""
    return lambda pool: pool[what].get(name, 0.0) if pool[what] else None


def _pool_line(view: SearchView, value: PoolValue, role: Role, label: str = "") -> Line:
    """A value for each cycle's pools; the last is of what the search ended with."""
    starts = [0, *(band.end for band in view.bands)]
    ys = [value(pool) for pool in view.cycles.pools[role]]
    xs = [starts[min(i, len(starts) - 1)] for i in range(len(ys))]
    return Line(label, ys, xs=xs, until=max(view.epochs.done, *xs[-1:], 0))


def _parent_line(view: SearchView, role: Role) -> Line:
    """The values at the ends of cycles."""
    ys = view.cycles.parents[role][: len(view.bands)]
    return Line("", ys, xs=[band.end for band in view.bands[: len(ys)]])


def _all_cells(
    roles: Sequence[Role], line_of: Callable[[Role], Line], compared: str = ""
) -> list[Line]:
    normal, *reduction = (
        replace(line_of(role), label=f"{role} cell", compared=compared.format(role))
        for role in roles
    )
    return [normal, *(replace(line, color="red", dash=DASHES[1]) for line in reduction)]


def compared_plots(views: Sequence[View], names: Sequence[str], scores: bool = True) -> list[Plot]:
    """The lines of runs of one kind over each other: a plot for each line that is compared.

    Without `scores`, accuracies, errors and losses are left out: they do not compare.
    """
    runs = [
        {
            line.compared: (plot, line)
            for plot, line in _compared(view)
            if scores or plot.id.partition("-")[0] not in SCORES
        }
        for view in views
    ]
    compared: list[Plot] = []
    for title in dict.fromkeys(title for run in runs for title in run):
        plot = next(run[title][0] for run in runs if title in run)
        lines = [
            replace(
                run[title][1] if title in run else Line(name, ()),
                label=name,
                color=RUN_COLORS[i % len(RUN_COLORS)],
                dash=DASHES[i % len(DASHES)],
            )
            for i, (run, name) in enumerate(zip(runs, names, strict=True))
        ]
        compared.append(replace(plot, title=title, lines=lines))
    return compared


def mean_plots(plots: Sequence[Plot], configs: Mapping[str, Sequence[int]]) -> list[Plot]:
    """Plots of a line for each run, with a line for each config instead: the mean of its runs.

    `configs` has the numbers of each config's runs by what it is called.
    """
    return [
        replace(
            plot,
            lines=[
                replace(
                    _mean_line([plot.lines[number] for number in numbers]),
                    label=label,
                    color=RUN_COLORS[i % len(RUN_COLORS)],
                    dash=DASHES[i % len(DASHES)],
                )
                for i, (label, numbers) in enumerate(configs.items())
            ],
        )
        for plot in plots
    ]


def _mean_line(lines: Sequence[Line]) -> Line:
    """Mean and deviation of a sample wherever all lines have a value; of one line, itself."""
    first, *others = lines
    if not others:
        return first
    steps = all(line.until is not None for line in lines)
    values = [_points(line) for line in lines]
    xs = sorted({x for line in values for x in line})
    until = min(line.until or 0.0 for line in lines) if steps else None
    if until is not None:  # a value holds until the next, but not beyond the shortest run
        xs = [x for x in xs if x <= until]
        values = [_held(line, xs) for line in values]
    columns = [[line.get(x) for line in values] for x in xs]
    full = [[y for y in column if y is not None] for column in columns]
    complete = [len(column) == len(lines) for column in full]
    means = [
        fmean(ys) if is_complete else None for ys, is_complete in zip(full, complete, strict=True)
    ]
    spreads = [
        stdev(ys) if is_complete else None for ys, is_complete in zip(full, complete, strict=True)
    ]
    return replace(first, ys=means, deviations=spreads, xs=xs, until=until)


def _points(line: Line) -> dict[float, float | None]:
    """Values by their position on the axis; of several at one position, the last counts."""
    xs = range(1, len(line.ys) + 1) if line.xs is None else line.xs
    return dict(zip(xs, line.ys, strict=True))


def _held(steps: Mapping[float, float | None], xs: Sequence[float]) -> dict[float, float | None]:
    """The values that hold at `xs`; none before the first."""
    starts = sorted(steps)
    held = {x: bisect_right(starts, x) for x in xs}
    return {x: steps[starts[count - 1]] if count else None for x, count in held.items()}


def _compared(view: View) -> Iterator[tuple[Plot, Line]]:
    """Every line that is compared; the same lines of the two cells follow each other."""
    for _, cells in groupby(plots_of(view), key=lambda plot: plot.id.partition("-")[0]):
        rows = zip_longest(*(_alone(plot) for plot in cells))
        yield from (pair for row in rows for pair in row if pair)


def _alone(plot: Plot) -> list[tuple[Plot, Line]]:
    """Each of a plot's lines that are compared, with an id of its own."""
    lines = [line for line in plot.lines if line.compared]
    if len(lines) == 1:
        return [(plot, lines[0])]
    lines.sort(key=lambda line: line.label not in HELD_OUT)
    return [(replace(plot, id=f"{plot.id}-{line.label.split()[0]}"), line) for line in lines]
