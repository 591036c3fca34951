"""Pictures as PNG and PDF. This module alone needs matplotlib."""

# pyright: reportUnknownMemberType=false
# (matplotlib's own types leave keyword arguments open)

import io
from typing import Any

import matplotlib
from matplotlib import patches, text
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.path import Path

from prnas.drawing.picture import Box, Curve, Item, Picture, Polygon, Text, printable

PNG_DPI = 200
POINTS_PER_INCH = 72  # one unit of a picture is one point


def to_bytes(picture: Picture, file_format: str) -> bytes:
    """A PNG or PDF file; the same bytes for the same picture."""
    buffer = io.BytesIO()
    # The reader's own matplotlibrc must not change the picture.
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams["pdf.fonttype"] = 42  # whole TrueType fonts: text stays text
        size = (picture.width / POINTS_PER_INCH, picture.height / POINTS_PER_INCH)
        figure = Figure(figsize=size, facecolor="white")
        _paint(figure, picture)
        # No date, so that the same picture gives the same bytes.
        dates: dict[str, Any] = {"CreationDate": None} if file_format == "pdf" else {}
        metadata = {"Title": printable(picture.title), **dates}
        figure.savefig(buffer, format=file_format, dpi=PNG_DPI, metadata=metadata)
    return buffer.getvalue()


def _paint(figure: Figure, picture: Picture) -> None:
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, picture.width)
    axes.set_ylim(picture.height, 0)
    for order, item in enumerate(picture.items):
        artist = _artist(item)
        artist.set_zorder(order)
        axes.add_artist(artist)


def _artist(item: Item) -> Artist:
    match item:
        case Box():
            corners = f"round,pad=0,rounding_size={item.radius}"
            patch = patches.FancyBboxPatch((item.x, item.y), item.width, item.height, corners)
            patch.set(facecolor=item.fill, edgecolor=item.stroke, linewidth=item.stroke_width)
            return patch
        case Text():
            middle = item.x + item.width / 2
            label = text.Text(middle, item.baseline, printable(item.text), parse_math=False)
            label.set(fontsize=item.size, fontfamily="DejaVu Sans", color=item.color)
            label.set(horizontalalignment="center", verticalalignment="baseline")
            return label
        case Curve():
            codes = [Path.MOVETO] + [Path.CURVE4] * (len(item.points) - 1)
            patch = patches.PathPatch(Path(item.points, codes), facecolor="none", capstyle="butt")
            dash = (0, item.dash) if item.dash else "solid"
            patch.set(edgecolor=item.stroke, linewidth=item.width, linestyle=dash)
            return patch
        case Polygon():
            return patches.Polygon(item.points, closed=True, facecolor=item.fill)
