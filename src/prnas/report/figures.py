"""Figures for a paper of two columns, as SVG and PDF. This module needs matplotlib."""

# pyright: reportUnknownMemberType=false
# (matplotlib's own types leave keyword arguments open)

import io
import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from prnas.drawing.cells import draw_cell, draw_genotype
from prnas.drawing.colors import PALETTE
from prnas.drawing.confusion import draw_confusion
from prnas.drawing.matplotlib_writer import to_bytes
from prnas.drawing.picture import Picture, to_svg, transformed
from prnas.report.comparison import letter_of, same_configs, scores_compare
from prnas.report.evaluations import SCORE_PLOTS, Evaluations
from prnas.report.plots import (
    RUN_COLORS,
    Line,
    Plot,
    Values,
    compared_plots,
    mean_plots,
    plots_of,
)
from prnas.report.results_table import config_names
from prnas.report.search_view import SearchView
from prnas.report.training_view import TrainingView, confusion_of, is_sound
from prnas.report.view import Band, View

Files = Iterator[tuple[str, bytes]]  # names and contents
FORMATS = ("svg", "pdf")
COLUMN, PAGE = 3.35, 6.9  # inches: one column, and both with the gap between them
HEIGHT = 1.9
POINTS = 72
STYLE: dict[Any, Any] = {
    **{"font.family": "DejaVu Sans", "font.size": 7, "legend.fontsize": 6.5},
    **{"axes.linewidth": 0.6, "axes.labelsize": 7, "lines.linewidth": 1.1},
    **{"xtick.labelsize": 6.5, "ytick.labelsize": 6.5},
    **{"xtick.major.width": 0.6, "ytick.major.width": 0.6},
    **{"pdf.fonttype": 42, "svg.fonttype": "none"},  # whole TrueType fonts: text stays text
    "svg.hashsalt": "prnas",  # the same plots give the same bytes
}
LEGEND: dict[str, Any] = {
    **{"loc": "lower left", "bbox_to_anchor": (-0.02, 0.98), "borderaxespad": 0, "fontsize": 6},
    **{"frameon": False, "handlelength": 1.6, "columnspacing": 0.9, "handletextpad": 0.4},
}
COLORS = {color.name: color.line for color in PALETTE}  # The colours of the page.
BAND: dict[str, Any] = {"alpha": 0.2, "linewidth": 0}
WIDEST_LEGEND = 60  # letters above a plot; a wider legend stands within it, name under name
NAMES_A_ROW = 4  # above all plots
LONGEST_LABEL = 28
MILLIONS_FROM = 100_000
DASH_UNIT = 1.8  # pixels: the width of lines on the page, which dashes are made for


@dataclass(frozen=True, slots=True)
class Epochs:
    """The common part of plots over epochs: their end, and the cycles in the background.

    `same_lines`: all have lines of the same names, so that one legend does for a figure.
    """

    done: int
    bands: Sequence[Band]
    same_lines: bool = False


def figures(view: View) -> Files:
    """(file name, content) of every figure: each plot by itself, all together, the cells."""
    yield from _curves(plots_of(view), Epochs(view.epochs.done, view.bands))
    if isinstance(view, SearchView):
        yield from _scores(view.evaluations)
    yield from _drawn(_pictures(view))


def comparison_figures(views: Sequence[View]) -> Files:
    """(file name, content) of figures that compare runs: results, curves, confusions.

    A curve is the mean over the seeds of a config, with its standard deviation as a band.
    """
    for kind in dict.fromkeys(view.kind for view in views):
        same = [view for view in views if view.kind == kind]
        groups = same_configs(same)
        scores = scores_compare(kind, len(groups))
        labels = config_names(same, groups, LONGEST_LABEL)
        members = dict(zip(labels, groups, strict=True))
        counted = {label: _counted(same, numbers) for label, numbers in members.items()}
        if scores:
            yield from _results(f"{kind}-results", same, counted)
        plots = compared_plots(same, [view.info.name for view in same], scores)
        named = {_named(label, numbers, len(groups)): numbers for label, numbers in counted.items()}
        plots = [replace(plot, id=f"{kind}-{plot.id}") for plot in mean_plots(plots, named)]
        alike = all(view.bands == same[0].bands for view in same)
        done = max(view.epochs.done for view in same)
        epochs = Epochs(done, same[0].bands if alike else (), same_lines=True)
        yield from _curves(plots, epochs, f"{kind}-all")
        yield from _drawn(_confusions(f"{kind}-confusion", same, members.values()))


def _named(label: str, numbers: Sequence[int], num_configs: int) -> str:
    """The name of a line, with the number of runs if it is a mean."""
    if len(numbers) == 1:
        return label
    return f"{label} (n = {len(numbers)})" if num_configs > 1 else f"mean ± sd, n = {len(numbers)}"


def _counted(views: Sequence[View], numbers: Sequence[int]) -> list[int]:
    """The runs that count in a mean: those that have ended or, if none has, all."""
    return [number for number in numbers if views[number].ended] or list(numbers)


def _results(name: str, views: Sequence[View], configs: Mapping[str, Sequence[int]]) -> Files:
    """Every run's result as a dot, mean and standard deviation beside it; all on one axis."""
    rows: dict[str, list[float]] = {}
    for label, numbers in configs.items():
        results = [views[number].data() for number in numbers if views[number].ended]
        values = [run[views[0].result] for run in results]
        rows[label] = [100 * value for value in values if value is not None]
    if not any(rows.values()):
        return
    height = 0.55 + 0.24 * len(rows)
    with _style():
        figure = Figure(figsize=(COLUMN, height))
        figure.subplots_adjust(left=0.3, right=0.97, bottom=0.42 / height, top=1 - 0.06 / height)
        axes = figure.add_subplot()
        for row, values in enumerate(rows.values()):
            color = COLORS[RUN_COLORS[row % len(RUN_COLORS)]]
            axes.plot(values, [row] * len(values), "o", color=color, alpha=0.55, markersize=3)
            if len(values) > 1:
                middle, deviation = fmean(values), stdev(values)
                axes.errorbar(
                    *([middle], [row + 0.25]),
                    xerr=[deviation],
                    **{"fmt": "|", "color": color, "markersize": 5, "linewidth": 0.9, "capsize": 2},
                )
        labels = [f"{label} (n = {len(values)})" for label, values in rows.items()]
        axes.set_yticks(range(len(rows)), labels)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
        axes.set_ylim(len(rows) - 0.5, -0.5)  # the first config on top
        axes.set_xlabel(f"{views[0].result_name} (%): every run, mean ± sd")
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        yield from _files(name, figure)


def _confusions(
    name: str, views: Sequence[View], groups: Iterable[Sequence[int]]
) -> Iterator[tuple[str, Picture]]:
    """Confusion matrices, each config's seeds together."""
    listed = list(groups)
    for i, numbers in enumerate(listed):
        trainings = [view for n in numbers if isinstance(view := views[n], TrainingView)]
        trained = [view.trained for view in trainings if view.trained]
        together = confusion_of(trained) if trained else None
        if together is not None and together["counts"] is not None:
            own = name if len(listed) == 1 else f"{name}-{letter_of(i).lower()}"
            yield own, draw_confusion(together["counts"], trained[0].class_names)


def _curves(plots: Sequence[Plot], epochs: Epochs, all_of: str = "all") -> Files:
    """Each plot that has something to show by itself, and all together."""
    plots = [
        plot for plot in plots if any(value is not None for line in plot.lines for value in line.ys)
    ]
    with _style():
        for plot in plots:
            # Fixed margins, so that the axes of all figures are alike (and it is much quicker).
            figure = Figure(figsize=(COLUMN, HEIGHT))
            figure.subplots_adjust(left=0.13, right=0.98, bottom=0.19, top=0.83)
            _draw(figure.add_subplot(), plot, epochs, epochs.same_lines or len(plot.lines) > 1)
            yield from _files(plot.id, figure)
        if plots:
            yield from _files(all_of, _together(plots, epochs))


def _scores(evaluations: Evaluations) -> Files:
    """Figures of a searcher's evaluations: scores over images and over sizes."""
    factor, unit = (1.0, evaluations.measure) if evaluations.measure else (100.0, "%")
    scores = [factor * score for score in evaluations.scores]
    with _style():
        for plot in SCORE_PLOTS:
            column: Sequence[int | None] = getattr(evaluations, plot.column)
            dots = [(x, y) for x, y in zip(column, scores, strict=True) if x is not None]
            if not dots:
                continue
            figure = Figure(figsize=(COLUMN, HEIGHT))
            figure.subplots_adjust(left=0.15, right=0.98, bottom=0.21, top=0.96)
            axes = figure.add_subplot()
            if plot.course:
                _course(axes, evaluations, scores, factor)
            blue = COLORS["blue"]
            axes.plot(*zip(*dots, strict=True), "o", color=blue, alpha=0.55, markersize=2.5)
            millions = max(x for x, _ in dots) >= MILLIONS_FROM
            axes.set_xlabel(f"{plot.across}{' (million)' if millions else ''}")
            axes.set_ylabel(f"score ({unit})")
            axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
            if millions:
                axes.xaxis.set_major_formatter(lambda x, _: f"{x / 1e6:g}")
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
            yield from _files(plot.id, figure)


def _course(axes: Axes, evaluations: Evaluations, scores: Sequence[float], factor: float) -> None:
    """The best so far as steps, and a thin line from every parent to its child."""
    xs = evaluations.images
    for child, parent in enumerate(evaluations.parents):
        if parent is not None and parent <= child:
            ends = [parent - 1, child]
            line = [xs[i] for i in ends], [scores[i] for i in ends]
            axes.plot(*line, color=COLORS["gray"], alpha=0.3, linewidth=0.4)
    bests = [factor * best for best in evaluations.bests]
    axes.plot(xs, bests, color=COLORS["red"], drawstyle="steps-post")


def _drawn(pictures: Iterable[tuple[str, Picture]]) -> Files:
    for name, picture in pictures:
        fitting = _fitting(picture, PAGE * POINTS)
        yield f"{name}.svg", to_svg(fitting).encode()
        yield f"{name}.pdf", to_bytes(fitting, "pdf")


@contextmanager
def _style() -> Generator[None]:
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # the reader's own matplotlibrc must not change them
        matplotlib.rcParams.update(STYLE)
        yield


def _pictures(view: View) -> Iterator[tuple[str, Picture]]:
    """Pictures that prnas draws itself: cells and confusion matrices."""
    if view.genotype is not None:
        for role in view.genotype.roles:
            yield f"cell-{role}", draw_cell(view.genotype.cell(role))
        yield "cells", draw_genotype(view.genotype)
    trained = view.trained if isinstance(view, TrainingView) else None
    if trained is not None and is_sound(trained):
        yield "confusion", draw_confusion(trained.confusion, trained.class_names)


def _together(plots: Sequence[Plot], epochs: Epochs) -> Figure:
    """The paper's Figure 3: all plots on one page's width."""
    rows, columns = math.ceil(len(plots) / 3), 3
    names_high = 0.0
    if epochs.same_lines:
        names_high = 0.1 + 0.13 * math.ceil(len(plots[0].lines) / NAMES_A_ROW)
    height = 1.45 * rows + names_high
    figure = Figure(figsize=(PAGE, height))
    top = 1 - (0.32 + names_high) / height
    figure.subplots_adjust(left=0.06, right=0.99, bottom=0.4 / height, top=top)
    figure.subplots_adjust(wspace=0.25, hspace=0.9)
    for number, plot in enumerate(plots, 1):
        legend = not epochs.same_lines and len(plot.lines) > 1
        _draw(figure.add_subplot(rows, columns, number), plot, epochs, legend)
    if epochs.same_lines:
        lines, labels = figure.axes[0].get_legend_handles_labels()
        position = {"loc": "upper left", "bbox_to_anchor": (0.05, 1.0), "borderaxespad": 0.3}
        figure.legend(lines, labels, ncols=NAMES_A_ROW, **LEGEND | position)
    return figure


def _draw(axes: Axes, plot: Plot, epochs: Epochs, legend: bool) -> None:
    for band in epochs.bands:
        grace_end = band.start + band.grace
        axes.axvspan(band.start, grace_end, color="#eceff1", linewidth=0, zorder=0)
        axes.axvline(band.start, color="#b0b8be", linewidth=0.4, linestyle=(0, (2, 2)), zorder=0.5)
    scale = plot.format.scale
    for line in plot.lines:
        _line(axes, line, scale)
    axes.set_xlim(0, max(1, epochs.done))
    low = None if plot.low is None else plot.low * scale
    # A little room, so that lines at the bounds are seen whole.
    high = None if plot.high is None else plot.high * scale * 1.03
    axes.set_ylim(bottom=low, top=high)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    if plot.format.whole:
        axes.yaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    axes.set_xlabel("epoch")
    title = f"{plot.title} ({plot.format.unit})" if plot.format.unit else plot.title
    axes.set_title(title, fontsize=7, loc="left", pad=10 if legend else 4)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if legend:
        fits = sum(len(line.label) + 6 for line in plot.lines) <= WIDEST_LEGEND
        position = {} if fits else {"loc": "best", "bbox_to_anchor": None, "borderaxespad": 0.3}
        axes.legend(ncols=len(plot.lines) if fits else 1, **LEGEND | position)


def _line(axes: Axes, line: Line, scale: float) -> None:
    values = list(line.ys)
    xs = list(range(1, len(values) + 1) if line.xs is None else line.xs)
    if line.until is not None and values:
        xs, values = [*xs, line.until], [*values, values[-1]]
    dash = [float(length) / DASH_UNIT for length in line.dash.split()]
    step = None if line.until is None else "post"
    if line.deviations is not None:
        spreads = [*line.deviations, *line.deviations[-1:]][: len(values)]
        pairs = list(zip(values, spreads, strict=True))
        low, high = ([_scaled(y, s, sign, scale) for y, s in pairs] for sign in (-1, 1))
        axes.fill_between(xs, low, high, step=step, color=COLORS[line.color], **BAND)
    axes.plot(
        xs,
        [math.nan if value is None else value * scale for value in values],
        label=line.label,
        color=COLORS[line.color],
        linestyle=(0, dash) if dash else "-",
        drawstyle="default" if line.until is None else "steps-post",
        # A value between two gaps is a point, which a line alone would not show.
        marker="." if _has_lonely(values) else None,
        markersize=2.5,
    )


def _scaled(value: float | None, deviation: float | None, sign: int, scale: float) -> float:
    return math.nan if value is None or deviation is None else (value + sign * deviation) * scale


def _has_lonely(values: Values) -> bool:
    gaps = [True, *(value is None for value in values), True]
    triples = zip(gaps, gaps[1:], gaps[2:], strict=False)
    return any(before and not here and after for before, here, after in triples)


def _files(name: str, figure: Figure) -> Files:
    for file_format in FORMATS:
        buffer = io.BytesIO()
        metadata: dict[str, Any] = {"CreationDate" if file_format == "pdf" else "Date": None}
        figure.savefig(buffer, format=file_format, metadata=metadata)
        yield f"{name}.{file_format}", buffer.getvalue()


def _fitting(picture: Picture, width: float) -> Picture:
    """The picture, made smaller where it is wider than `width` points."""
    scale = min(1.0, width / picture.width)
    items = tuple(transformed(item, scale=scale) for item in picture.items)
    return Picture(picture.width * scale, picture.height * scale, items, picture.title)
