"""One Python file that builds a network with PyTorch alone, written for its genotype."""

import textwrap
from collections.abc import Sequence
from string import Template
from typing import assert_never

import prnas
from prnas.exporting import python_templates as pieces
from prnas.exporting.python_literals import WIDTH, Call, Value, Word, assigned, filled
from prnas.models.card import ModelCard
from prnas.space import zoo
from prnas.space.genotype import NUM_INPUTS, ROLES, Cell, Genotype
from prnas.space.operations import Conv, Conv1x7x1, Operation, Pool, Skip, Zero

MOST_NAMES_AS_A_LIST = 20
COLOURS = {1: "grey ", 3: "colour "}


def python_source(card: ModelCard, name: str, ramp_logits: Sequence[float]) -> str:
    """The file `name.py`.

    Its parameters are called as those of `prnas.build`. `ramp_logits` are the first logits for
    an image that goes evenly from 0 to 1; the file, run as a program, compares with them.
    """
    used = sorted({op for role in ROLES for op in card.genotype.cell(role).operations})
    blocks = [
        _docstring(card, name) + "\n" + _imports(used),
        _constants(card),
        pieces.RELU_CONV_BN,
        pieces.FACTORIZED_REDUCTION,
        *_definitions(used),
        assigned(
            "OPERATIONS", {_label(op): _factory(op) for op in used}, pieces.OPERATIONS_COMMENT
        ),
        Template(pieces.CELL).substitute(joined=pieces.JOINED[card.output]),
        pieces.STEMS[card.stem],
        Template(pieces.NETWORK).substitute(
            stem_channels=pieces.STEM_CHANNELS[card.stem],
            after_reduction=pieces.FIRST_AFTER_REDUCTION[card.stem],
            output_channels=pieces.OUTPUT_CHANNELS[card.output],
        ),
        pieces.USE,
        assigned("RAMP_LOGITS", list(ramp_logits), pieces.RAMP_COMMENT) + "\n\n" + pieces.MAIN,
    ]
    first, second, *rest = (block.strip("\n") for block in blocks)
    return first + "\n\n" + "\n\n\n".join([second, *rest]) + "\n"


def _docstring(card: ModelCard, name: str) -> str:
    channels, height, width = card.input_shape
    classes = "one class" if card.num_classes == 1 else f"{card.num_classes:,} classes"
    words = {
        "name": name,
        "version": prnas.__version__,
        "origin": _origin(card.genotype),
        "shape": f"{channels} x {height} x {width}",
    }
    paragraphs = {
        "title": f"A network that sorts {height} x {width} {COLOURS.get(channels, '')}images "
        f"into {classes}.",
        "about": _paragraph(Template(pieces.ABOUT).substitute(words)),
        "files": _paragraph(Template(pieces.FILES).substitute(words)),
    }
    return Template(pieces.DOCSTRING).substitute(words | paragraphs)


def _paragraph(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_on_hyphens=False, break_long_words=False)


def _origin(genotype: Genotype) -> str:
    for entry in zoo.entries().values():
        if entry.genotype == genotype:
            return f"Its cells are those of {entry.title} ({entry.reference})."
    return "Its cells were found by architecture search."


def _imports(used: Sequence[Operation]) -> str:
    lines = ["import json"]
    if any(isinstance(op, Conv) for op in used):
        lines.append("from collections.abc import Sequence")
    if any(isinstance(op, Conv | Pool) for op in used):
        lines.append("from functools import partial")
    if any(isinstance(op, Conv) for op in used):
        lines.append("from itertools import pairwise")
    lines += [
        "from pathlib import Path",
        "",
        "import torch",
        "import torch.nn.functional as F",
        "from torch import Tensor, nn",
    ]
    return "\n".join(lines)


def _constants(card: ModelCard) -> str:
    names = assigned("CLASS_NAMES", list(card.class_names))
    if "\n" in names and card.num_classes > MOST_NAMES_AS_A_LIST:
        names = filled("CLASS_NAMES", card.class_names)
    comment = pieces.OUTPUT_COMMENT[card.output]
    lines = [
        names,
        assigned("INPUT_SHAPE", list(card.input_shape), "channels, height, width"),
        assigned("MEAN", list(card.mean), "of each channel, for pixels from 0 to 1"),
        assigned("STD", list(card.std)),
        assigned("CHANNELS", card.channels, "of the first cells; reduction cells double them"),
        assigned("CELLS", card.cells),
        "",
        pieces.LEGEND,
    ]
    for role in ROLES:
        cell = card.genotype.cell(role)
        lines.append(assigned(role.upper(), _nodes(cell)))
        lines.append(assigned(f"{role.upper()}_OUTPUT", list(cell.concat), comment))
    return "\n".join(lines)


def _nodes(cell: Cell) -> dict[int, Value]:
    return {
        NUM_INPUTS + number: [(_label(edge.op), edge.input) for edge in node]
        for number, node in enumerate(cell.nodes)
    }


def _label(op: Operation) -> str:
    return op.label.replace("×", "x")


def _definitions(used: Sequence[Operation]) -> list[str]:
    """The pieces that define the operations, each once."""
    return list(dict.fromkeys(_definition(op) for op in used))


def _definition(op: Operation) -> str:
    match op:
        case Conv():
            return pieces.SEPARABLE_CONV
        case Pool():
            return pieces.MAX_POOL if op.kind == "max" else pieces.AVG_POOL
        case Skip():
            return pieces.SKIP
        case Conv1x7x1():
            return pieces.CONV_1X7_7X1
        case Zero():
            raise ValueError("a genotype has no 'zero' operation")
        case _:
            assert_never(op)


def _factory(op: Operation) -> Value:
    """What makes the operation's module from channels and stride."""
    match op:
        case Conv():
            values: dict[str, Value] = {"kernel": op.kernel}
            if op.dilation > 1:
                values["dilation"] = op.dilation
            if op.expansions:
                values["expansions"] = list(op.expansions)
            return Call("partial", Word("conv"), values)
        case Pool():
            return Call("partial", Word(f"{op.kind}_pool"), {"kernel": op.kernel})
        case Skip():
            return Word("skip")
        case Conv1x7x1():
            return Word("Conv1x7x1")
        case Zero():
            raise ValueError("a genotype has no 'zero' operation")
        case _:
            assert_never(op)
