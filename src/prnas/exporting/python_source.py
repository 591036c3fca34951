"""One Python file that builds a network with PyTorch alone, written for its genotype.

The code is that of `prnas.nets.plain` or, of a plain ResNet, `prnas.nets.resnet`, as far as the
network needs it, of `python_functions`, and of the files that define operations of a program's own.
"""

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import prnas
from prnas.exporting import python_functions
from prnas.exporting.python_literals import WIDTH, Call, Value, Word, assigned, filled
from prnas.io.errors import UserError
from prnas.models.card import ModelCard
from prnas.nets import plain
from prnas.nets.resnet import ResNet
from prnas.space import zoo
from prnas.space.genotype import Genotype
from prnas.space.shape import DARTS, CellShape

MOST_NAMES_AS_A_LIST = 20
COLOURS = {1: "grey ", 3: "colour "}
STEMS: dict[str, type[plain.Stem]] = {"cifar": plain.CifarStem, "imagenet": plain.ImageNetStem}
RAMP_COMMENT = "The first logits for an image that goes evenly from 0 to 1: to try the file."
READING = """\
    predict("photo.jpg", network)  # classes and probabilities; needs Pillow
"""
READERS = ("read", "predict")  # Functions that an image file of so many channels has no use for.
LEFT_OUT = " Drop-path and the auxiliary head, which only training needs, are left out."
OUTPUT_COMMENT = {
    "concat": "the states that are concatenated",
    "mean": "the states whose mean is the output",
    "sum": "the states whose sum is the output",
    "last": "the states of which the last is the output",
}

DOCSTRING = '''\
"""{title}

{about}

    from {name} import {names}

    network = load()
    logits = network(normalize(pixels))  # pixels from 0 to 1, n x {shape}
{reading}
{files}
"""
'''
LEGEND = """\
# The two cells. A line is a node: it adds up two operations, each on the state that is
# given with it. States 0 and 1 are the outputs of the two cells before; the nodes
# follow. In a reduction cell, operations on states 0 and 1 have stride 2. What the
# names mean is in OPERATIONS, below."""
NETWORK = '''\
class Network(CellNetwork):
    """The network of the two cells. It takes normalised images."""

    def __init__(
        self,
        channels: int = CHANNELS,
        cells: int = CELLS,
        classes: int = len(CLASS_NAMES),
        input_channels: int = INPUT_SHAPE[0],
    ) -> None:
        super().__init__(
            {stem}(input_channels, channels),
            partial(Cell, NORMAL, NORMAL_OUTPUT, OPERATIONS{mean}),
            partial(Cell, REDUCTION, REDUCTION_OUTPUT, OPERATIONS{mean}),
            channels,
            cells,
            classes,
        )'''
# The same for a plain network.
RESNET = '''\
class Network(ResNet):
    """The plain residual network. It takes normalised images."""

    def __init__(
        self,
        channels: int = CHANNELS,
        blocks: int = BLOCKS,
        classes: int = len(CLASS_NAMES),
        input_channels: int = INPUT_SHAPE[0],
    ) -> None:
        super().__init__(channels, blocks, classes, input_channels)'''
# The same for cells of other shapes.
OPEN_LEGEND = """\
{cells} A line is a node: it adds up operations, each on the state that is given with \
it. {inputs}; the nodes follow. {strides}What the names mean is in OPERATIONS, below."""
HEAD = '''\
class Network({base}):
    """The network of the cells. It takes normalised images."""

    def __init__(
        self,
        channels: int = CHANNELS,
        cells: int = CELLS,
        classes: int = len(CLASS_NAMES),
        input_channels: int = INPUT_SHAPE[0],
    ) -> None:
        super().__init__(
'''
OPEN_CELL = """\
            partial(
                OpenCell,
                {role},
                {role}_OUTPUT,
                OPERATIONS,
                inputs={inputs},
                projects={projects},
                combined="{output}",
            ),
"""
MAIN = """\
if __name__ == "__main__":
    main()
"""


def python_source(card: ModelCard, name: str, ramp_logits: Sequence[float]) -> str:
    """The file `name.py`.

    Its parameters are called as those of `prnas.build`. `ramp_logits` are the first logits for
    an image that goes evenly from 0 to 1; the file, run as a program, compares with them.
    """
    functions = _source(python_functions.normalize)
    if card.genotype is None:
        files, own = [_source(ResNet)], [RESNET]
    else:
        made = plain.operations_of(card.genotype)
        makers = {label: _maker(make) for label, make in made.items()}
        operations = assigned(
            "OPERATIONS", makers, "Each makes a module, from the number of channels and the stride."
        )
        files = list(dict.fromkeys(map(_source, [plain.conv, *map(_function, made.values())])))
        own = [operations, _network(card, card.genotype.shape)]
    own += [
        text
        for name, text in _definitions(functions).items()
        if card.reading or name not in READERS
    ]
    code = [*_needed([_definitions(file) for file in files], own), *own]
    ramp = assigned("RAMP_LOGITS", list(ramp_logits), RAMP_COMMENT)
    blocks = [_constants(card), *code, f"{ramp}\n\n{MAIN}"]
    imports = _imports(code, [functions, *files])
    return f"{_docstring(card, name)}\n{imports}\n\n" + "\n\n\n".join(blocks)


def _is_darts(card: ModelCard, shape: CellShape) -> bool:
    """Whether `Cell` is made for these cells; all others are `OpenCell`s."""
    return shape == DARTS and card.output in ("concat", "mean")


def _network(card: ModelCard, shape: CellShape) -> str:
    stem = STEMS[card.stem].__name__
    if _is_darts(card, shape):
        return NETWORK.format(stem=stem, mean=", mean=True" if card.output == "mean" else "")
    residual = shape.network == "residual"
    # In a network of DARTS' form, cells of one kind stand at reductions too.
    roles = shape.roles if residual else ("normal", shape.roles[-1])
    cells = "".join(
        OPEN_CELL.format(
            role=role.upper(), inputs=shape.inputs, projects=not residual, output=card.output
        )
        for role in roles
    )
    sizes = ["channels", "cells", "classes"]
    sizes += ["input_channels"] if residual else []
    images = "" if residual else f"            {stem}(input_channels, channels),\n"
    rest = "".join(f"            {size},\n" for size in sizes)
    base = "ResidualNetwork" if residual else "CellNetwork"
    return f"{HEAD.format(base=base)}{images}{cells}{rest}        )"


def _legend(card: ModelCard, shape: CellShape) -> str:
    if _is_darts(card, shape):
        return LEGEND
    single = shape.inputs == 1
    inputs = "State 0 is the output of the cell before"
    if not single:
        inputs = "States 0 and 1 are the outputs of the two cells before"
    strides = "Where images are halved, operations on "
    strides += f"{'state 0' if single else 'states 0 and 1'} have stride 2. "
    text = OPEN_LEGEND.format(
        cells="The cell." if len(shape.roles) == 1 else "The two cells.",
        inputs=inputs,
        strides="" if shape.network == "residual" else strides,
    )
    return textwrap.fill(text, WIDTH, initial_indent="# ", subsequent_indent="# ")


def _output_comment(card: ModelCard, shape: CellShape, number: int) -> str:
    if number == 1 and not _is_darts(card, shape):
        return "the state that is the output"
    return OUTPUT_COMMENT[card.output]


def _function(make: Callable[..., object]) -> Callable[..., object]:
    return make.func if isinstance(make, partial) else make


def _maker(make: Callable[..., object]) -> Value:
    """The code of a function, or of one with some of its arguments."""
    if not isinstance(make, partial):
        return Word(make.__name__)
    parameters = inspect.signature(make.func).parameters
    values: dict[str, Value] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in make.keywords.items()
        if value != parameters[name].default
    }
    return Call("partial", Word(make.func.__name__), values)


def _docstring(card: ModelCard, name: str) -> str:
    channels, height, width = card.input_shape
    classes = "one class" if card.num_classes == 1 else f"{card.num_classes:,} classes"
    return DOCSTRING.format(
        title=f"A network that sorts {height} x {width} {COLOURS.get(channels, '')}images "
        f"into {classes}.",
        about=_paragraph(
            f"{_origin(card.genotype)} Made by prnas {prnas.__version__}. PyTorch is all that it "
            "needs:"
        ),
        name=name,
        names="load, normalize, predict" if card.reading else "load, normalize",
        reading=READING if card.reading else "",
        shape=f"{channels} x {height} x {width}",
        files=_paragraph(
            f"The weights are in {name}.safetensors, beside this file; `python {name}.py` tries "
            f"them.{'' if card.genotype is None else LEFT_OUT}"
        ),
    )


def _paragraph(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_on_hyphens=False, break_long_words=False)


def _origin(genotype: Genotype | None) -> str:
    if genotype is None:
        return "It is a plain residual network (He et al., 2016), of which nothing was searched."
    for entry in zoo.entries().values():
        if entry.genotype == genotype:
            return f"Its cells are those of {entry.title} ({entry.reference})."
    return "Its cells were found by architecture search."


def _constants(card: ModelCard) -> str:
    names = assigned("CLASS_NAMES", list(card.class_names))
    if "\n" in names and card.num_classes > MOST_NAMES_AS_A_LIST:
        names = filled("CLASS_NAMES", card.class_names)
    genotype = card.genotype
    shape = None if genotype is None else genotype.shape
    residual = shape is not None and shape.network == "residual"
    doubling = "residual blocks" if residual else "reduction cells"
    if shape is None:
        doubling = "the second and the third stage"
    first = "cells" if shape else "blocks"
    lines = [
        names,
        assigned("INPUT_SHAPE", list(card.input_shape), "channels, height, width"),
        assigned("MEAN", list(card.mean), "of each channel, for pixels from 0 to 1"),
        assigned("STD", list(card.std)),
        assigned("CHANNELS", card.channels, f"of the first {first}; {doubling} double them"),
    ]
    if genotype is None:
        return "\n".join([*lines, assigned("BLOCKS", card.cells, "in three stages")])
    lines += [assigned("CELLS", card.cells), "", _legend(card, genotype.shape)]
    for role in genotype.roles:
        cell = genotype.cell(role)
        lines.append(assigned(role.upper(), plain.nodes_of(cell)))
        comment = _output_comment(card, genotype.shape, len(cell.concat))
        lines.append(assigned(f"{role.upper()}_OUTPUT", list(cell.concat), comment))
    return "\n".join(lines)


def _source(made: Callable[..., object]) -> str:
    """The text of the file that defines a function or a class."""
    try:
        # A class is found by its first function: it may stand in a program that is no module.
        lines, _ = inspect.findsource(vars(made).get("__init__", made))
    except (OSError, TypeError):
        raise UserError(
            f"no Python file can be written: it is made of the source code of {made.__module__}, "
            "which is missing"
        ) from None
    return "".join(lines)


def _definitions(text: str) -> dict[str, str]:
    """The code of a file's functions and classes, by name, in its order.

    Without `Network`, since a file has its own.
    """
    lines = text.splitlines()
    return {
        node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno])
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name != "Network"
    }


def _needed(files: Sequence[dict[str, str]], code: Iterable[str]) -> list[str]:
    """The definitions that the code uses, and those that they use in turn."""
    names, needed = _names(code), set[str]()
    while names:
        name = names.pop()
        sources = [definitions[name] for definitions in files if name in definitions]
        if len(sources) > 1:
            raise UserError(
                f"no Python file can be written: '{name}', which your operation defines, is a name "
                "in prnas.nets.plain or another operation's file too"
            )
        if sources and name not in needed:
            needed.add(name)
            names |= _names(sources)
    return [text for file in files for name, text in file.items() if name in needed]


def _names(code: Iterable[str]) -> set[str]:
    nodes = (node for text in code for node in ast.walk(ast.parse(text)))
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def _imports(code: Sequence[str], files: Iterable[str]) -> str:
    """The imports that the code uses, sorted as formatters do: PyTorch's after Python's own."""
    used = _names(code)
    names: dict[str, set[str]] = {}
    for node in (node for text in files for node in ast.parse(text).body):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for alias in node.names:
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
            root = module.split(".")[0]
            if (alias.asname or alias.name) not in used or root == "prnas":
                continue
            if root not in ("torch", *sys.stdlib_module_names):
                raise UserError(f"no Python file can be written: it would need {root or module}")
            start = "import " if isinstance(node, ast.Import) else f"from {module} import "
            names.setdefault(start, set()).add(ast.unparse(alias))
    plain_imports = [f"import {name}" for name in names.pop("import ", ())]
    lines = [*plain_imports, *(start + ", ".join(sorted(names[start])) for start in names)]
    ordered = sorted(lines, key=lambda line: (line.startswith("from"), line))
    torch = [line for line in ordered if line.split()[1].startswith("torch")]
    return "\n".join([*(line for line in ordered if line not in torch), "", *torch])
