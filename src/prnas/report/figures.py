"""Figures for a paper of two columns, as SVG and PDF. This module needs matplotlib."""

# pyright: reportUnknownMemberType=false
# (matplotlib's own types leave keyword arguments open)

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from prnas.drawing.cells import draw_cell, draw_genotype
from prnas.drawing.matplotlib_writer import to_bytes
from prnas.drawing.picture import Box, Curve, Item, Picture, Point, Polygon, Text, to_svg
from prnas.report.plots import Band, Data, Line, Plot, bands_of, plots_of
from prnas.space.genotype import ROLES, Genotype

FORMATS = ("svg", "pdf")
COLUMN, PAGE = 3.35, 6.9  # inches: one column, and both with the gap between them
HEIGHT = 1.9
POINTS = 72
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 7,
    "axes.linewidth": 0.6,
    "axes.labelsize": 7,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": 6.5,
    "lines.linewidth": 1.1,
    "pdf.fonttype": 42,  # whole TrueType fonts: text stays text
    "svg.fonttype": "none",
    "svg.hashsalt": "prnas",  # the same plots give the same bytes
}


def figures(run: Data, genotype: Genotype | None) -> Iterator[tuple[str, bytes]]:
    """(file name, content) of every figure: each plot by itself, all together, the cells."""
    plots, bands = plots_of(run), bands_of(run)
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # the reader's own matplotlibrc must not change them
        matplotlib.rcParams.update(STYLE)
        for plot in plots:
            # Fixed margins, so that the axes of all figures are alike (and it is much quicker).
            figure = Figure(figsize=(COLUMN, HEIGHT))
            figure.subplots_adjust(left=0.13, right=0.98, bottom=0.19, top=0.83)
            _draw(figure.add_subplot(), plot, bands, run)
            yield from _files(plot.name, figure)
        if plots:
            yield from _files("all", _together(plots, bands, run))
        if run.get("confusion"):
            yield from _files("confusion", _confusion(run["confusion"]))
    if genotype is not None:
        pictures = {f"cell-{role}": draw_cell(genotype.cell(role)) for role in ROLES}
        pictures["cells"] = draw_genotype(genotype)
        for name, picture in pictures.items():
            fitting = _fitting(picture, PAGE * POINTS)
            yield f"{name}.svg", to_svg(fitting).encode()
            yield f"{name}.pdf", to_bytes(fitting, "pdf")


def _together(plots: Sequence[Plot], bands: Sequence[Band], run: Data) -> Figure:
    """The paper's Figure 3: all plots on one page's width."""
    columns = 3
    rows = math.ceil(len(plots) / columns)
    height = 1.45 * rows
    figure = Figure(figsize=(PAGE, height))
    figure.subplots_adjust(
        left=0.06,
        right=0.99,
        bottom=0.4 / height,
        top=1 - 0.32 / height,
        wspace=0.25,
        hspace=0.9,
    )
    for number, plot in enumerate(plots, 1):
        _draw(figure.add_subplot(rows, columns, number), plot, bands, run)
    return figure


def _draw(axes: Axes, plot: Plot, bands: Sequence[Band], run: Data) -> None:
    for band in bands:
        axes.axvspan(band.start, band.grace_end, color="#eceff1", linewidth=0, zorder=0)
        axes.axvline(band.start, color="#b0b8be", linewidth=0.4, linestyle=(0, (2, 2)), zorder=0.5)
    for line in plot.lines:
        _line(axes, line, 100.0 if plot.shares else 1.0)
    epochs = len(run["epochs"]["lr"])
    axes.set_xlim(0, max(1, epochs))
    scale = 100.0 if plot.shares else 1.0
    low = None if plot.low is None else plot.low * scale
    # A little room, so that lines at the bounds are seen whole.
    high = None if plot.high is None else plot.high * scale * 1.03
    axes.set_ylim(bottom=low, top=high)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.set_xlabel("epoch")
    axes.set_title(plot.title, fontsize=7, loc="left", pad=10 if len(plot.lines) > 1 else 4)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if len(plot.lines) > 1:
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(-0.02, 0.98),
            ncols=len(plot.lines),
            frameon=False,
            handlelength=1.6,
            columnspacing=0.9,
            handletextpad=0.4,
            borderaxespad=0,
            fontsize=6,
        )


def _line(axes: Axes, line: Line, scale: float) -> None:
    values = [math.nan if value is None else value * scale for value in line.ys]
    axes.plot(
        list(line.xs),
        values,
        label=line.label,
        color=line.color,
        linestyle=line.style,
        drawstyle="steps-post" if line.step else "default",
        # A value between two gaps is a point, which a line alone would not show.
        marker="." if _has_lonely(line) else None,
        markersize=2.5,
    )


def _has_lonely(line: Line) -> bool:
    known = [False, *(value is not None for value in line.ys), False]
    triples = zip(known, known[1:], known[2:], strict=False)
    return any(here and not before and not after for before, here, after in triples)


def _confusion(confusion: Data) -> Figure:
    """Rows are the true classes; the shade is the share of a row."""
    counts: list[list[int]] | None = confusion["counts"]
    figure = Figure(figsize=(COLUMN, COLUMN))
    figure.subplots_adjust(left=0.25, right=0.97, bottom=0.25, top=0.97)
    axes = figure.add_subplot()
    if counts is None:
        axes.set_axis_off()
        return figure
    shares = [[count / max(1, sum(row)) for count in row] for row in counts]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    size: int = confusion["size"]
    if size <= 20:
        names = [str(confusion["names"].get(str(place), place))[:14] for place in range(size)]
        axes.set_xticks(range(size), names, rotation=60, ha="right", parse_math=False)
        axes.set_yticks(range(size), names, parse_math=False)
        for row, line in enumerate(counts):
            for column, count in enumerate(line):
                if count:
                    color = "white" if shares[row][column] > 0.5 else "black"
                    axes.text(
                        column, row, str(count), ha="center", va="center", color=color, fontsize=5
                    )
    axes.set_xlabel("taken for")
    axes.set_ylabel("class")
    return figure


def _files(name: str, figure: Figure) -> Iterator[tuple[str, bytes]]:
    for file_format in FORMATS:
        buffer = io.BytesIO()
        metadata: dict[str, Any] = {"CreationDate" if file_format == "pdf" else "Date": None}
        figure.savefig(buffer, format=file_format, metadata=metadata)
        yield f"{name}.{file_format}", buffer.getvalue()


def _fitting(picture: Picture, width: float) -> Picture:
    """The picture, made smaller where it is wider than `width` points."""
    factor = min(1.0, width / picture.width)
    items = tuple(_scaled(item, factor) for item in picture.items)
    size = (picture.width * factor, picture.height * factor)
    return replace(picture, width=size[0], height=size[1], items=items)


def _scaled(item: Item, factor: float) -> Item:
    def points(found: Sequence[Point]) -> tuple[Point, ...]:
        return tuple(Point(x * factor, y * factor) for x, y in found)

    match item:
        case Box():
            place = {key: getattr(item, key) * factor for key in ("x", "y", "width", "height")}
            return replace(item, **place, radius=item.radius * factor)
        case Text():
            place = {key: getattr(item, key) * factor for key in ("x", "baseline", "size")}
            return replace(item, **place)
        case Curve():
            return replace(item, points=points(item.points), width=item.width * factor)
        case Polygon():
            return replace(item, points=points(item.points))
