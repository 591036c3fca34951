"""Drawings of what a search works with: the cells of a genotype, the graph of morphisms."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from prnas.drawing.colors import INPUT, NODE, OUTPUT, Paint, color_of
from prnas.drawing.layout import Link, Size, Spacing, lay_out
from prnas.drawing.panels import CAPTION_SIZE, INK, LABEL_SIZE, Panel, captioned, finished, stacked
from prnas.drawing.picture import Box, Curve, Item, Picture, Point, Polygon, Rectangle, placed_text
from prnas.drawing.typeface import shortened, text_width
from prnas.space.genotype import Cell, Genotype
from prnas.space.operations import Operation

STATE_SIZE, WIDEST_LABEL = 10.5, 220.0  # text in a state's box; label of an operation
INPUT_SIZE, NODE_SIZE = Size(36.0, 26.0), Size(30.0, 26.0)
CONCAT_LINE, LINE = "#c7721b", "#4d4d4d"
MINUS = "\N{MINUS SIGN}"
PANEL_GAP = 30.0
PREFERRED_ASPECT = 1.7  # the arrangement of the cells that is nearer to it is taken

# Okabe and Ito's colours, which the colour-blind can tell apart; black and yellow left out.
LINK_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#777777")
DASHES: tuple[tuple[float, ...], ...] = ((), (4.0, 2.0), (1.0, 2.0))
GRAPH = Spacing(boxes=6.0, ports=3.0, least_gap=60.0, most_gap=130.0, slope=0.3, lead=2.0)
ARC = 24.0  # less than the least gap between columns


def draw_genotype(genotype: Genotype, title: str | None = None) -> Picture:
    """All kinds of cell, from their inputs on the left to their output on the right.

    Blue boxes are nodes, numbered B1, B2, ...; on the way into each there are its operations.
    Thin orange lines lead from the states that make up the output to it.
    """
    if len(genotype.roles) == 1:
        return finished(_cell_panel(genotype.normal), title, "the cell")
    panels = {f"{role} cell": _cell_panel(genotype.cell(role)) for role in genotype.roles}
    below = stacked([captioned(panel, text) for text, panel in panels.items()], PANEL_GAP)
    body = min(_beside(panels), below, key=_distance_from_preferred)
    return finished(body, title, "normal and reduction cell")


def draw_cell(cell: Cell) -> Picture:
    """One cell by itself, without a caption."""
    return finished(_cell_panel(cell), None, "a cell")


def _beside(panels: Mapping[str, Panel]) -> Panel:
    """Panels next to each other, centred below their captions, which stand at one height."""
    items: list[Item] = []
    height = max(panel.height for panel in panels.values())
    x, bottom = 0.0, 0.0
    for caption, panel in panels.items():
        centered = panel.moved(0.0, (height - panel.height) / 2)
        titled = captioned(Panel(panel.width, height, centered), caption)
        items += titled.moved(x, 0.0)
        x += titled.width + PANEL_GAP
        bottom = titled.height
    return Panel(x - PANEL_GAP, bottom, tuple(items))


def _distance_from_preferred(panel: Panel) -> float:
    ratio = panel.width / panel.height / PREFERRED_ASPECT
    return max(ratio, 1 / ratio)


def _label_of(operation: Operation) -> str:
    return shortened(operation.label, LABEL_SIZE, WIDEST_LABEL)


def _label_size(label: str) -> Size:
    return Size(text_width(label, LABEL_SIZE) + 12.0, 18.0)


def _labelled_box(
    box: Rectangle, label: str, paint: Paint, size: float = LABEL_SIZE, radius: float = 4.0
) -> list[Item]:
    middle = Point(box.x + box.width / 2, box.y + box.height / 2)
    text = placed_text(label, middle, size, INK)
    return [Box(*box, paint.fill, paint.stroke, 0.8, radius), text]


# --- a cell -------------------------------------------------------------------------------


def _cell_panel(cell: Cell) -> Panel:
    # Boxes are numbered: the states, then the operations of all edges, then the output.
    inputs = cell.shape.inputs
    states = inputs + cell.num_nodes
    labels = [_label_of(op) for op in cell.operations]
    output = states + len(labels)
    sizes = [INPUT_SIZE] * inputs + [NODE_SIZE] * cell.num_nodes
    sizes += [*map(_label_size, labels), NODE_SIZE]
    links = _cell_links(cell, output)
    layout = lay_out(sizes, _cell_columns(cell), links)
    items: list[Item] = []
    for route in layout.routes:
        target = links[route.link].target
        color, width = (CONCAT_LINE, 0.7) if target == output else (LINE, 1.0)
        into_state = target < states or target == output
        items += _line(route.points, color, width, arrow=route.arrives and into_state)
    for state, box in enumerate(layout.boxes[:inputs]):
        items += _output_box(box, INPUT, f"k{MINUS}{inputs - state}")
    for number, box in enumerate(layout.boxes[inputs:states], 1):
        items += _labelled_box(box, f"B{number}", NODE, STATE_SIZE, radius=5.0)
    for op, label, box in zip(cell.operations, labels, layout.boxes[states:output], strict=True):
        items += _labelled_box(box, label, color_of(op.category).paint)
    items += _output_box(layout.boxes[output], OUTPUT, "k")
    return Panel(layout.width, layout.height, tuple(items))


def _cell_links(cell: Cell, output: int) -> list[Link]:
    links: list[Link] = []
    for number, (target, edge) in enumerate(cell.edges, cell.shape.inputs + cell.num_nodes):
        # All that reads one state hangs on one line, which branches on its way.
        links += [Link(edge.input, number, bundle=edge.input), Link(number, target)]
    return links + [Link(state, output, bundle=output) for state in cell.concat]


def _cell_columns(cell: Cell) -> list[list[int]]:
    """Each node one step after the last state it reads, its operations just before it."""
    states = cell.shape.inputs + cell.num_nodes
    depths = [0] * cell.shape.inputs
    for node in cell.nodes:
        depths.append(1 + max(depths[edge.input] for edge in node))
    columns: list[list[int]] = [[] for _ in range(2 * max(depths) + 2)]
    for state, depth in enumerate(depths):
        columns[2 * depth].append(state)
    for number, (target, _) in enumerate(cell.edges, states):
        columns[2 * depths[target] - 1].append(number)
    columns[-1].append(states + len(cell.edges))
    return columns


def _output_box(box: Rectangle, paint: Paint, subscript: str) -> list[Item]:
    """The output of a cell: the letter c with a subscript."""
    large, small = STATE_SIZE + 1, STATE_SIZE - 2.5
    left = text_width("c", large) + 0.5
    x = box.x + (box.width - left - text_width(subscript, small)) / 2
    letter = placed_text("c", Point(x, box.y + box.height / 2 - 1.5), large, INK, align=0.0)
    y = letter.baseline + 3.0
    below = replace(letter, x=x + left, baseline=y, text=subscript, size=small)
    return [Box(*box, paint.fill, paint.stroke, 0.8, 5.0), letter, below]


def _line(points: tuple[Point, ...], color: str, width: float, arrow: bool) -> list[Item]:
    if not arrow:
        return [Curve(points, color, width)]
    tip = points[-1]
    base, half = tip.x - 5.5, 2.4
    # The line ends under the head, or it would stick out beside the tip.
    shaft = (*points[:-2], Point(base + 1, tip.y), Point(base + 1, tip.y))
    head = (tip, Point(base, tip.y - half), Point(base, tip.y + half))
    return [Curve(shaft, color, width), Polygon(head, color)]


# --- the graph of morphisms ---------------------------------------------------------------


def draw_morphism_graph(
    operations_by_distance: Sequence[Sequence[Operation]],
    links: Sequence[tuple[Operation, Operation, str]],
    title: str | None = None,
) -> Picture:
    """Operations in columns by their morphing distance, joined by the morphisms between them.

    A link is (parent, child, name of the morphism). Two operations that several morphisms
    join, such as growing and shrinking a kernel, share a line, which the legend names after all.
    """
    operations = [op for column in operations_by_distance for op in column]
    numbers = {op: number for number, op in enumerate(operations)}
    if len(numbers) < len(operations):
        raise ValueError("an operation is in the graph twice")
    names = _names_by_pair(links, numbers)
    kinds = {kind: number for number, kind in enumerate(sorted(set(names.values())))}
    lines = {ends: kinds[kind] for ends, kind in names.items()}
    graph = _graph_panel(operations_by_distance, numbers, lines)
    body = stacked([graph, _legend(kinds, graph.width)], CAPTION_SIZE)
    return finished(body, title, "operations by morphing distance")


_Names = tuple[str, ...]


def _names_by_pair(
    links: Iterable[tuple[Operation, Operation, str]], numbers: Mapping[Operation, int]
) -> dict[tuple[int, int], _Names]:
    """The morphisms between two operations, by their numbers, the one further left first."""
    pairs: dict[tuple[int, int], set[str]] = {}
    for parent, child, name in links:
        for op in (parent, child):
            if op not in numbers:
                raise ValueError(f"{op.label!r} is in a link, but in no column")
        if parent != child:
            ends = sorted((numbers[parent], numbers[child]))
            pairs.setdefault((ends[0], ends[1]), set()).add(name)
    return {ends: tuple(sorted(names)) for ends, names in pairs.items()}


def _graph_panel(
    columns: Sequence[Sequence[Operation]],
    numbers: Mapping[Operation, int],
    lines: Mapping[tuple[int, int], int],
) -> Panel:
    """The columns under their headers; `lines` are a kind of link for two operations each."""
    headers = ["1 step" if steps == 1 else f"{steps} steps" for steps in range(len(columns))]
    steps = {numbers[op]: number for number, column in enumerate(columns) for op in column}
    across = [ends for ends in lines if steps[ends[0]] != steps[ends[1]]]
    within = [ends for ends in lines if steps[ends[0]] == steps[ends[1]]]
    sizes: list[Size] = []
    for header, column in zip(headers, columns, strict=True):
        # All boxes of a column are as wide as the widest needs, and as the header.
        widths = [_label_size(_label_of(op)).width for op in column]
        widest = max([*widths, text_width(header, CAPTION_SIZE)])
        sizes += [Size(widest, 16.0)] * len(column)
    numbered = [[numbers[op] for op in column] for column in columns]
    layout = lay_out(sizes, numbered, [Link(*ends) for ends in across], GRAPH)
    items: list[Item] = [_link(r.points, lines[across[r.link]]) for r in layout.routes]
    items += [_link(_arc(*(layout.boxes[end] for end in ends)), lines[ends]) for ends in within]
    for op, box in zip(numbers, layout.boxes, strict=True):
        items += _labelled_box(box, _label_of(op), color_of(op.category).paint, radius=3.0)
    top = 2 * CAPTION_SIZE
    for header, column in zip(headers, layout.columns, strict=True):
        if column.width:
            middle = Point(column.x + column.width / 2, CAPTION_SIZE / 2 - top)
            items.append(placed_text(header, middle, CAPTION_SIZE, INK))
    width = layout.width + (ARC if within else 0.0)
    return Panel(width, layout.height + top, Panel(0.0, 0.0, tuple(items)).moved(0.0, top))


def _arc(first: Rectangle, second: Rectangle) -> tuple[Point, ...]:
    """A line between two boxes of a column, bulging into the gap on its right."""
    right = first.x + first.width
    start, end = (Point(right, box.y + box.height / 2) for box in (first, second))
    return start, Point(right + ARC, start.y), Point(right + ARC, end.y), end


def _link(points: tuple[Point, ...], kind: int) -> Curve:
    round_, color = divmod(kind, len(LINK_COLORS))
    return Curve(points, LINK_COLORS[color], 0.8, DASHES[round_ % len(DASHES)])


def _legend(kinds: Iterable[_Names], width: float) -> Panel:
    items: list[Item] = []
    swatch, gap, row = 22.0, 18.0, 1.8 * LABEL_SIZE
    x, y, widest = 0.0, 0.0, 0.0
    for number, names in enumerate(kinds):
        label = _joined(names)
        needed = swatch + 5.0 + text_width(label, LABEL_SIZE)
        if x and x + needed > width:
            x, y = 0.0, y + row
        ends = Point(x, y + row / 2), Point(x + swatch, y + row / 2)
        items.append(replace(_link((ends[0], *ends, ends[1]), number), width=1.6))
        start = Point(x + swatch + 5.0, y + row / 2)
        items.append(placed_text(label, start, LABEL_SIZE, INK, align=0.0))
        widest = max(widest, x + needed)
        x += needed + gap
    return Panel(widest, y + row if items else 0.0, tuple(items))


def _joined(names: _Names) -> str:
    """Several names as one: "grow / shrink kernel"."""
    split = [name.rpartition(" ") for name in names]
    if all(head for head, _, _ in split) and len({tail for _, _, tail in split}) == 1:
        return f"{' / '.join(head for head, _, _ in split)} {split[0][2]}"
    return " / ".join(names)
