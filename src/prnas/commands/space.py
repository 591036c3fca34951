"""`prnas space`: the size and the members of a search space."""

from pathlib import Path
from typing import Any

from prnas.commands.options import SpaceOptions
from prnas.runs import named
from prnas.space.analysis.counting import by_distance, count_cells, count_convs, discoverable, links
from prnas.space.operations import to_json
from prnas.space.setting import NASBENCH201_SETTINGS, SETTINGS, Setting, setting_to_data
from prnas.space.shape import SHAPES, USUAL
from prnas.terminal.output import facts, show, show_heading, show_json, show_next, show_prose, table

DARTS_OPERATIONS = 8
NODES, _ = USUAL["darts"]
WHY_TWO_COUNTS = (
    "Why two counts: the numbers in parentheses include kernel 1 with dilation 2. The paper's "
    "table counts it (36 and 80 convolutions, 39 and 83 operations in 5 steps), although its "
    "caption excludes it and no morphism makes it: it computes what dilation 1 does."
)


def run(name: str | None, options: SpaceOptions) -> None:
    steps, graph, shape = options.steps, options.graph, options.shape
    if name is None and shape is None and not (options.listing or graph):
        _overview(steps, options.as_json)
        return
    setting = named.setting(name or "darts-like")
    if graph:
        _write_graph(setting, steps, graph, quiet=options.as_json)
    if options.as_json:
        show_json(_data(setting, steps, options.listing, shape))
    elif options.listing:
        _list(setting, steps)
    elif not graph:
        _details(setting, name or setting.name, steps, shape)


def _counts(setting: Setting, steps: int, shape: str | None = None) -> tuple[int, int, int, int]:
    """The number of convolutions without and with dilated 1x1 ones, of operations, of cells."""
    convs = count_convs(setting, steps)
    with_dilated = count_convs(setting, steps, dilated_1x1=True)
    operations = len(discoverable(setting, steps))
    name = shape or shape_of(setting)
    cells = count_cells(operations, USUAL[name][0], SHAPES[name])
    return convs, with_dilated, operations, cells


def shape_of(setting: Setting) -> str:
    """The shape of the cells that the setting is for."""
    return "nasbench201" if setting in NASBENCH201_SETTINGS else "darts"


def _data(setting: Setting, steps: int, listing: bool, shape: str | None = None) -> dict[str, Any]:
    convs, with_dilated, operations, cells = _counts(setting, steps, shape)
    data: dict[str, Any] = {
        **setting_to_data(setting),
        "steps": steps,
        "convolutions": convs,
        "convolutions_with_dilated_1x1": with_dilated,
        "operations": operations,
        "cells": cells,
    }
    name = shape or shape_of(setting)
    if name != "darts":
        data |= {"shape": name, "nodes": USUAL[name][0]}
    if listing:
        layers = by_distance(setting, steps)
        data["by_distance"] = [[to_json(op) for op in layer] for layer in layers]
    return data


def _range(least: int, most: int) -> str:
    return f"{least}-{most}" if least < most else str(least)


def _overview(steps: int, as_json: bool) -> None:
    if as_json:
        show_json([_data(setting, steps, False) for setting in SETTINGS.values()])
        return
    rows: list[list[str]] = []
    for setting in SETTINGS.values():
        limits = setting.limits
        convs, with_dilated, operations, cells = _counts(setting, steps)
        extra = with_dilated - convs
        rows.append(
            [
                setting.name,
                _range(limits.kernel_min, limits.kernel_max),
                _range(1, limits.dilation_max),
                "-" if limits.depth_max is None else str(limits.depth_max),
                "-" if limits.width_max is None else str(limits.width_max),
                f"{convs} ({convs + extra})" if extra else str(convs),
                f"{operations} ({operations + extra})" if extra else str(operations),
                f"{cells:.1e}",
            ]
        )
    darts = count_cells(DARTS_OPERATIONS, NODES)
    rows.append(["DARTS, to compare", "", "", "", "", "", str(DARTS_OPERATIONS), f"{darts:.1e}"])
    show_heading(
        f"Search spaces: what {steps} morphing steps can reach, and cells of {NODES} nodes (of "
        f"NAS-Bench-201: its own)"
    )
    headings = ["setting", "kernel", "dilation", "depth", "width", "convs", "ops", "cells"]
    show(table(headings, rows, right=(3, 4, 5, 6, 7)), "")
    show_prose(WHY_TWO_COUNTS)
    show("")
    show_prose(
        f"Cells: {count_cells(1, NODES)} ways to wire {NODES} nodes, times the number of "
        f"operations to the power of {2 * NODES}. The paper's 9.3e+09 for DARTS is a slip: its own "
        f"'153 times' needs {darts:.1e}."
    )
    show_next("prnas space darts-like --list", "prnas draw pr-darts-dl2")


def _details(setting: Setting, name: str, steps: int, shape: str | None) -> None:
    limits = setting.limits
    convs, with_dilated, operations, cells = _counts(setting, steps, shape)
    number = f"{cells:.1e}" if cells > 1e6 else f"{cells:,}"
    name_of_shape = shape or shape_of(setting)
    like = "" if name_of_shape == "darts" else f", shape {name_of_shape}"
    show_heading(f"Setting {setting.name}")
    depth, width = (
        "unlimited" if limit is None else f"at most {limit}"
        for limit in (limits.depth_max, limits.width_max)
    )
    pairs = [
        ("kernel", f"{limits.kernel_min} to {limits.kernel_max}, odd"),
        ("dilation", f"1 to {limits.dilation_max}"),
        ("expansion depth", depth),
        ("expansion width", width),
        ("initial pool", ", ".join(op.label for op in setting.initial_pool)),
        (f"convs in {steps} steps", str(convs)),
        (f"operations in {steps} steps", str(operations)),
        (f"cells of {USUAL[name_of_shape][0]} nodes{like}", number),
    ]
    show(facts(pairs))
    if convs != with_dilated:
        show("")
        show_prose(
            f"With kernel 1 and dilation above 1 counted too, as the paper does in its table, it "
            f"is {with_dilated} convolutions and {operations + with_dilated - convs} operations. "
            f"The morphisms never make those, since they compute nothing new."
        )
    show_next(f"prnas space {name} --list", f"prnas space {name} --graph space.svg")


def _list(setting: Setting, steps: int) -> None:
    rows: list[list[str]] = []
    for distance, layer in enumerate(by_distance(setting, steps)):
        rows += [[str(distance) if index == 0 else "", op.label] for index, op in enumerate(layer)]
    show_heading(f"Setting {setting.name}: operations by morphing distance from the initial pool")
    show(table(["steps", "operation"], rows))


def _write_graph(setting: Setting, steps: int, path: Path, quiet: bool) -> None:
    from prnas.commands.draw import save_picture
    from prnas.drawing.cells import draw_morphism_graph

    layers = by_distance(setting, steps)
    every_link = links(setting, [op for layer in layers for op in layer])
    title = f"{setting.name}: {sum(map(len, layers))} operations within {steps} morphing steps"
    save_picture(draw_morphism_graph(layers, every_link, title), path, quiet)
