"""One Python file that builds a network with PyTorch alone, written for its genotype.

The code is that of `prnas.nets.plain`, as far as the network needs it, and of `python_functions`.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import ModuleType

import prnas
from prnas.exporting import python_functions
from prnas.exporting.python_literals import WIDTH, Call, Value, Word, assigned, filled
from prnas.io.errors import UserError
from prnas.models.card import ModelCard
from prnas.nets import plain
from prnas.space import zoo
from prnas.space.genotype import ROLES, Genotype

MOST_NAMES_AS_A_LIST = 20
COLOURS = {1: "grey ", 3: "colour "}
STEMS: dict[str, type[plain.Stem]] = {"cifar": plain.CifarStem, "imagenet": plain.ImageNetStem}
RAMP_COMMENT = "The first logits for an image that goes evenly from 0 to 1: to try the file."
OUTPUT_COMMENT = {
    "concat": "the states that are concatenated",
    "mean": "the states whose mean is the output",
}

DOCSTRING = '''\
"""{title}

{about}

    from {name} import load, normalize

    network = load()
    logits = network(normalize(pixels))  # pixels from 0 to 1, n x {shape}

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
MAIN = """\
if __name__ == "__main__":
    main()
"""


def python_source(card: ModelCard, name: str, ramp_logits: Sequence[float]) -> str:
    """The file `name.py`.

    Its parameters are called as those of `prnas.build`. `ramp_logits` are the first logits for
    an image that goes evenly from 0 to 1; the file, run as a program, compares with them.
    """
    makers = {label: _maker(make) for label, make in plain.operations_of(card.genotype).items()}
    operations = assigned(
        "OPERATIONS", makers, "Each makes a module, from the number of channels and the stride."
    )
    network = NETWORK.format(
        stem=STEMS[card.stem].__name__, mean=", mean=True" if card.output == "mean" else ""
    )
    own = [operations, network, *_definitions(python_functions).values()]
    code = [*_needed(_definitions(plain), own), *own]
    ramp = assigned("RAMP_LOGITS", list(ramp_logits), RAMP_COMMENT)
    blocks = [_constants(card), *code, f"{ramp}\n\n{MAIN}"]
    return f"{_docstring(card, name)}\n{_imports(code)}\n\n" + "\n\n\n".join(blocks)


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
        shape=f"{channels} x {height} x {width}",
        files=_paragraph(
            f"The weights are in {name}.safetensors, beside this file; `python {name}.py` tries "
            "them. Drop-path and the auxiliary head, which only training needs, are left out."
        ),
    )


def _paragraph(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_on_hyphens=False, break_long_words=False)


def _origin(genotype: Genotype) -> str:
    for entry in zoo.entries().values():
        if entry.genotype == genotype:
            return f"Its cells are those of {entry.title} ({entry.reference})."
    return "Its cells were found by architecture search."


def _constants(card: ModelCard) -> str:
    names = assigned("CLASS_NAMES", list(card.class_names))
    if "\n" in names and card.num_classes > MOST_NAMES_AS_A_LIST:
        names = filled("CLASS_NAMES", card.class_names)
    lines = [
        names,
        assigned("INPUT_SHAPE", list(card.input_shape), "channels, height, width"),
        assigned("MEAN", list(card.mean), "of each channel, for pixels from 0 to 1"),
        assigned("STD", list(card.std)),
        assigned("CHANNELS", card.channels, "of the first cells; reduction cells double them"),
        assigned("CELLS", card.cells),
        "",
        LEGEND,
    ]
    for role in ROLES:
        cell = card.genotype.cell(role)
        lines.append(assigned(role.upper(), plain.nodes_of(cell)))
        comment = OUTPUT_COMMENT[card.output]
        lines.append(assigned(f"{role.upper()}_OUTPUT", list(cell.concat), comment))
    return "\n".join(lines)


def _parsed(module: ModuleType) -> tuple[str, ast.Module]:
    """The text of a module, and its parts."""
    try:
        text = inspect.getsource(module)
    except (OSError, TypeError):
        raise UserError(
            f"no Python file can be written: it is made of the source code of {module.__name__}, "
            "which is missing where prnas is installed"
        ) from None
    return text, ast.parse(text)


def _definitions(module: ModuleType) -> dict[str, str]:
    """The code of a module's functions and classes, by name, in its order.

    Without `Network`, since a file has its own.
    """
    text, tree = _parsed(module)
    lines = text.splitlines()
    return {
        part.name: "\n".join(lines[part.lineno - 1 : part.end_lineno])
        for part in tree.body
        if isinstance(part, ast.FunctionDef | ast.ClassDef) and part.name != "Network"
    }


def _needed(definitions: dict[str, str], code: Iterable[str]) -> list[str]:
    """The definitions that the code uses, and those that they use in turn."""
    names, needed = _names(code), set[str]()
    while names:
        name = names.pop()
        if name in definitions and name not in needed:
            needed.add(name)
            names |= _names([definitions[name]])
    return [text for name, text in definitions.items() if name in needed]


def _names(code: Iterable[str]) -> set[str]:
    parts = (part for text in code for part in ast.walk(ast.parse(text)))
    return {part.id for part in parts if isinstance(part, ast.Name)}


def _imports(code: Sequence[str]) -> str:
    """The imports that the code uses, sorted as formatters do: PyTorch's after Python's own."""
    used = _names(code)
    lines: set[str] = set()
    for module in (plain, python_functions):
        for part in _parsed(module)[1].body:
            if isinstance(part, ast.Import | ast.ImportFrom):
                part.names = [name for name in part.names if (name.asname or name.name) in used]
                if part.names:
                    lines.add(ast.unparse(part))
    ordered = sorted(lines, key=lambda line: (line.startswith("from"), line))
    torch = [line for line in ordered if line.split()[1].startswith("torch")]
    return "\n".join([*(line for line in ordered if line not in torch), "", *torch])
