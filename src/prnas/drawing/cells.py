"""Drawings of what a search works with: the cells of a genotype, the graph of morphisms."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from prnas.drawing.colors import INPUT, NODE, OUTPUT, color_of
from prnas.drawing.layout import Link, Size, Spacing, lay_out
from prnas.drawing.parts import (
    CAPTION_SIZE,
    INK,
    LABEL_SIZE,
    STATE_SIZE,
    Panel,
    box_with_subscript,
    captioned,
    finished,
    label_of,
    label_size,
    labelled_box,
    line,
    stacked,
)
from prnas.drawing.picture import (
    Curve,
    Item,
    Picture,
    Point,
    Rectangle,
    Text,
    baseline_for,
    centered_text,
    text_width,
    transformed,
)
from prnas.space.genotype import NUM_INPUTS, Cell, Genotype
from prnas.space.operations import Operation

INPUT_SIZE, NODE_SIZE = Size(36.0, 26.0), Size(30.0, 26.0)
CONCAT_LINE, LINE = "#c7721b", "#4d4d4d"
MINUS = "\N{MINUS SIGN}"
PANEL_GAP = 30.0
PREFERRED_ASPECT = 1.7  # of two ways to arrange the cells, the one nearer to this is taken

# Okabe and Ito's colours, which the colour-blind can tell apart; black and yellow left out.
LINK_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#777777")
DASHES: tuple[tuple[float, ...], ...] = ((), (4.0, 2.0), (1.0, 2.0))
GRAPH = Spacing(boxes=6.0, ports=3.0, least_gap=60.0, most_gap=130.0, slope=0.3, lead=2.0)
ARC = 24.0  # less than the least gap between columns


def draw_genotype(genotype: Genotype, title: str | None = None) -> Picture:
    """Both cells, from their inputs on the left to their output on the right.

    Blue boxes are nodes, numbered B1, B2, ...; on the way into each there are its two
    operations. Thin orange lines lead from the states that are concatenated to the output.
    """
    cells = {"normal cell": genotype.normal, "reduction cell": genotype.reduction}
    panels = {caption: _cell_panel(cell) for caption, cell in cells.items()}
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
        whole = captioned(Panel(panel.width, height, centered), caption)
        items += whole.moved(x, 0.0)
        x += whole.width + PANEL_GAP
        bottom = whole.height
    return Panel(x - PANEL_GAP, bottom, tuple(items))


def _distance_from_preferred(panel: Panel) -> float:
    ratio = panel.width / panel.height / PREFERRED_ASPECT
    return max(ratio, 1 / ratio)


# --- a cell -------------------------------------------------------------------------------


def _cell_panel(cell: Cell) -> Panel:
    # Boxes are numbered: the states, then the operations of all edges, then the output.
    states = NUM_INPUTS + cell.num_nodes
    labels = [label_of(op) for op in cell.operations]
    output = states + len(labels)
    sizes = [INPUT_SIZE] * NUM_INPUTS + [NODE_SIZE] * cell.num_nodes
    sizes += [*map(label_size, labels), NODE_SIZE]
    links = _cell_links(cell, output)
    layout = lay_out(sizes, _cell_columns(cell), links)
    items: list[Item] = []
    for route in layout.routes:
        target = links[route.link].target
        color, width = (CONCAT_LINE, 0.7) if target == output else (LINE, 1.0)
        into_state = target < states or target == output
        items += line(route.points, color, width, arrow=route.arrives and into_state)
    for state, box in enumerate(layout.boxes[:NUM_INPUTS]):
        items += box_with_subscript(box, INPUT, "c", f"k{MINUS}{NUM_INPUTS - state}")
    for number, box in enumerate(layout.boxes[NUM_INPUTS:states], 1):
        items += labelled_box(box, f"B{number}", NODE, STATE_SIZE, radius=5.0)
    for op, label, box in zip(cell.operations, labels, layout.boxes[states:output], strict=True):
        items += labelled_box(box, label, color_of(op.category).paint)
    items += box_with_subscript(layout.boxes[output], OUTPUT, "c", "k")
    return Panel(layout.width, layout.height, tuple(items))


def _cell_links(cell: Cell, output: int) -> list[Link]:
    links: list[Link] = []
    for number, (target, edge) in enumerate(cell.edges, NUM_INPUTS + cell.num_nodes):
        # All that reads one state hangs on one line, which branches on its way.
        links += [Link(edge.input, number, bundle=edge.input), Link(number, target)]
    return links + [Link(state, output, bundle=output) for state in cell.concat]


def _cell_columns(cell: Cell) -> list[list[int]]:
    """Each node one step after the last state it reads, its operations just before it."""
    states = NUM_INPUTS + cell.num_nodes
    depths = [0] * NUM_INPUTS
    for node in cell.nodes:
        depths.append(1 + max(depths[edge.input] for edge in node))
    columns: list[list[int]] = [[] for _ in range(2 * max(depths) + 2)]
    for state, depth in enumerate(depths):
        columns[2 * depth].append(state)
    for number, (target, _) in enumerate(cell.edges, states):
        columns[2 * depths[target] - 1].append(number)
    columns[-1].append(states + len(cell.edges))
    return columns


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
        widths = [label_size(label_of(op)).width for op in column]
        widest = max([*widths, text_width(header, CAPTION_SIZE)])
        sizes += [Size(widest, 16.0)] * len(column)
    numbered = [[numbers[op] for op in column] for column in columns]
    layout = lay_out(sizes, numbered, [Link(*ends) for ends in across], GRAPH)
    items: list[Item] = [_link(r.points, lines[across[r.link]]) for r in layout.routes]
    items += [_link(_arc(*(layout.boxes[end] for end in ends)), lines[ends]) for ends in within]
    for op, box in zip(numbers, layout.boxes, strict=True):
        items += labelled_box(box, label_of(op), color_of(op.category).paint, radius=3.0)
    top = 2 * CAPTION_SIZE
    items = [transformed(item, dy=top) for item in items]
    for header, column in zip(headers, layout.columns, strict=True):
        if column.width:
            middle = Point(column.x + column.width / 2, CAPTION_SIZE / 2)
            items.append(centered_text(header, middle, CAPTION_SIZE, INK))
    return Panel(layout.width + (ARC if within else 0.0), layout.height + top, tuple(items))


def _arc(first: Rectangle, second: Rectangle) -> tuple[Point, ...]:
    """From box to box of a column, bulging into the gap on its right."""
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
        baseline = baseline_for(y + row / 2, LABEL_SIZE)
        items.append(Text(x + swatch + 5.0, baseline, label, LABEL_SIZE, INK))
        widest = max(widest, x + needed)
        x += needed + gap
    return Panel(widest, y + row if items else 0.0, tuple(items))


def _joined(names: _Names) -> str:
    """Several names as one: "grow / shrink kernel"."""
    parts = [name.rpartition(" ") for name in names]
    if all(head for head, _, _ in parts) and len({tail for _, _, tail in parts}) == 1:
        return f"{' / '.join(head for head, _, _ in parts)} {parts[0][2]}"
    return " / ".join(names)
