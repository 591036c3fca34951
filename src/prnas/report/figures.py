"""Figures for a paper of two columns, as SVG and PDF. This module needs matplotlib."""

# pyright: reportUnknownMemberType=false
# (matplotlib's own types leave keyword arguments open)

import io
import math
from collections.abc import Iterator, Sequence
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
from prnas.report.plots import Line, Plot, Values, plots_of
from prnas.report.training_view import TrainingView, is_sound
from prnas.report.view import View
from prnas.space.genotype import ROLES

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
COLORS = {color.name: color.line for color in PALETTE}  # as on the page
DASH_UNIT = 1.8  # pixels: the width of lines on the page, which dashes are made for


def figures(view: View) -> Iterator[tuple[str, bytes]]:
    """(file name, content) of every figure: each plot by itself, all together, the cells."""
    plots = [
        plot
        for plot in plots_of(view)
        if any(value is not None for line in plot.lines for value in line.ys)
    ]
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # the reader's own matplotlibrc must not change them
        matplotlib.rcParams.update(STYLE)
        for plot in plots:
            # Fixed margins, so that the axes of all figures are alike (and it is much quicker).
            figure = Figure(figsize=(COLUMN, HEIGHT))
            figure.subplots_adjust(left=0.13, right=0.98, bottom=0.19, top=0.83)
            _draw(figure.add_subplot(), plot, view)
            yield from _files(plot.id, figure)
        if plots:
            yield from _files("all", _together(plots, view))
    for name, picture in _pictures(view):
        fitting = _fitting(picture, PAGE * POINTS)
        yield f"{name}.svg", to_svg(fitting).encode()
        yield f"{name}.pdf", to_bytes(fitting, "pdf")


def _pictures(view: View) -> Iterator[tuple[str, Picture]]:
    """What prnas lays out itself: the cells, and what classes were taken for."""
    if view.genotype is not None:
        for role in ROLES:
            yield f"cell-{role}", draw_cell(view.genotype.cell(role))
        yield "cells", draw_genotype(view.genotype)
    trained = view.trained if isinstance(view, TrainingView) else None
    if trained is not None and is_sound(trained):
        yield "confusion", draw_confusion(trained.confusion, trained.class_names)


def _together(plots: Sequence[Plot], view: View) -> Figure:
    """The paper's Figure 3: all plots on one page's width."""
    rows, columns = math.ceil(len(plots) / 3), 3
    height = 1.45 * rows
    figure = Figure(figsize=(PAGE, height))
    figure.subplots_adjust(left=0.06, right=0.99, bottom=0.4 / height, top=1 - 0.32 / height)
    figure.subplots_adjust(wspace=0.25, hspace=0.9)
    for number, plot in enumerate(plots, 1):
        _draw(figure.add_subplot(rows, columns, number), plot, view)
    return figure


def _draw(axes: Axes, plot: Plot, view: View) -> None:
    for band in view.bands:
        grace_end = band.start + band.grace
        axes.axvspan(band.start, grace_end, color="#eceff1", linewidth=0, zorder=0)
        axes.axvline(band.start, color="#b0b8be", linewidth=0.4, linestyle=(0, (2, 2)), zorder=0.5)
    scale = plot.format.scale
    for line in plot.lines:
        _line(axes, line, scale)
    axes.set_xlim(0, max(1, view.epochs.done))
    low = None if plot.low is None else plot.low * scale
    # A little room, so that lines at the bounds are seen whole.
    high = None if plot.high is None else plot.high * scale * 1.03
    axes.set_ylim(bottom=low, top=high)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    if plot.format.whole:
        axes.yaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    axes.set_xlabel("epoch")
    title = f"{plot.title} ({plot.format.unit})" if plot.format.unit else plot.title
    axes.set_title(title, fontsize=7, loc="left", pad=10 if len(plot.lines) > 1 else 4)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if len(plot.lines) > 1:
        axes.legend(ncols=len(plot.lines), **LEGEND)


def _line(axes: Axes, line: Line, scale: float) -> None:
    values = list(line.ys)
    xs = list(range(1, len(values) + 1) if line.xs is None else line.xs)
    if line.until is not None and values:
        xs, values = [*xs, line.until], [*values, values[-1]]
    dash = [float(length) / DASH_UNIT for length in line.dash.split()]
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


def _has_lonely(values: Values) -> bool:
    gaps = [True, *(value is None for value in values), True]
    triples = zip(gaps, gaps[1:], gaps[2:], strict=False)
    return any(before and not here and after for before, here, after in triples)


def _files(name: str, figure: Figure) -> Iterator[tuple[str, bytes]]:
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
