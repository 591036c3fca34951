"""An operation that a program registers: checked at once, and computed as its plain module does."""

import re
import runpy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from torch import Tensor, nn

import prnas
from prnas.io.errors import FormatError, UserError
from prnas.nets import plain
from prnas.nets.inheritance import inherit
from prnas.nets.inheritance import register as register_morphism
from prnas.nets.operations import build, register
from prnas.nets.supernet import build_supernet
from prnas.nets.weights import construct
from prnas.space.change import Added, CellChange, Change, EdgeChange
from prnas.space.genotype import Cell, Edge, Genotype
from prnas.space.layer_size import NetworkSize, Pixels
from prnas.space.morphisms import MORPHISMS, morphs
from prnas.space.operations import CATEGORIES, OPERATIONS, Conv, Operation, Skip, from_label
from prnas.space.pools import Pools
from prnas.space.setting import Limits
from tests.support.small_models import card, trained
from tests.support.supernets import check_equal, plain_of, randomized

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_operation.py"


@pytest.fixture
def own(own_operations: None) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def genotype(op: Operation) -> Genotype:
    cell = Cell(((Edge(0, op), Edge(1, Skip())),), (2,))
    return Genotype(cell, cell)


def added(op: Operation) -> Change:
    """On every edge, the child of an operation by the example's morphism."""
    child = MORPHISMS["halve reduction"].apply(op)
    edge = EdgeChange(added=(Added(child, op, "halve reduction", 1.0, 1.0),))
    return Change(*(CellChange((edge,) * 5) for _ in range(2)))


@pytest.mark.parametrize("recompute", [False, True])
def test_the_supernet_is_the_plain_one(own: dict[str, Any], recompute: bool) -> None:
    op: Operation = own["Excited"](4)
    pools = Pools.initial(2, [Conv(3), op, Skip()])
    ours = build_supernet(pools, 4, 3, 5, recompute=recompute).double()
    images = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    check_equal(randomized(ours, 1), plain_of(ours), images)
    ours.evolve(added(op), generator())
    check_equal(randomized(ours, 2), plain_of(ours), images)


@pytest.mark.parametrize("stride", [1, 2])
def test_the_example_keeps_the_function(own: dict[str, Any], stride: int) -> None:
    op: Operation = own["Excited"](4)
    parent = construct(lambda: build(op, 8, stride, affine=False), generator()).double()
    child = inherit(parent, op, "halve reduction", 8, stride, generator())
    images = torch.randn(2, 8, 6, 6, dtype=torch.float64)
    torch.testing.assert_close(child(images), parent(images))
    assert child.get_parameter("squeeze.weight").shape[0] == 4
    assert "bn.weight" not in child.state_dict()
    assert [made.label for _, made in morphs(op, Limits())] == ["excited 3x3 r2"]


def test_a_program_without_the_operation_says_what_it_knows(own_operations: None) -> None:
    example = runpy.run_path(str(EXAMPLE))
    text = genotype(example["Excited"](4)).dumps()
    assert Genotype.loads(text).dumps() == text
    with pytest.raises(FormatError, match=r"unknown key.*Choose from: reduction, type"):
        Genotype.loads(text.replace('reduction": 4', 'reductions": 4'))
    del OPERATIONS["excited"]
    with pytest.raises(FormatError, match=r"unknown type 'excited'\..* conv, conv_1x7"):
        Genotype.loads(text)
    with pytest.raises(ValueError, match="op must be an operation"):
        genotype(example["Excited"](4))


def test_a_python_file_takes_its_code_along(own: dict[str, Any], tmp_path: Path) -> None:
    model = trained(card(genotype=genotype(own["Excited"](2))))
    prnas.export(model, tmp_path / "net.py")
    source = (tmp_path / "net.py").read_text()
    assert "class ExcitedConv(nn.Module)" in source
    assert "def hidden_units" in source
    assert "halve" not in re.sub("halves?\\b", "", source)  # nothing of the morphism
    assert "import prnas" not in source


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def conv(c, stride, reduction): return ExcitedConv(c, stride, reduction)", "'conv'"),
        (
            "import numpy\ndef made(c, stride, reduction): numpy; return ExcitedConv(c, stride, 2)",
            "numpy",
        ),
        ("K = 3\ndef made(c, stride, reduction): K; return ExcitedConv(c, stride, 2)", "NameError"),
    ],
)
def test_what_no_python_file_can_have_is_refused(
    own: dict[str, Any], code: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "operation.py"
    file.write_text(EXAMPLE.read_text().partition("HALVE_REDUCTION")[0] + code + "\n")
    module = runpy.run_path(str(file))
    plain.MODULES[own["Excited"]] = module.get("made") or module["conv"]
    model = trained(card(genotype=genotype(own["Excited"](2))))
    with pytest.raises(UserError, match=said):
        prnas.export(model, tmp_path / "net.py")
    assert not (tmp_path / "net.py").exists()


class Gate(nn.Module):
    """A layer with a parameter of its own kind."""

    def __init__(self, c: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.gate = nn.Parameter(torch.zeros(c))

    def forward(self, x: Tensor) -> Tensor:
        return x[:, :, :: self.stride, :: self.stride] * self.gate[:, None, None]


class DrawnGate(Gate):
    def initialize(self, generator: torch.Generator) -> None:
        nn.init.normal_(self.gate, generator=generator)


def in_place(c: int, stride: int) -> nn.Module:
    return nn.Sequential(nn.ReLU(inplace=True), nn.MaxPool2d(3, stride, 1))


@dataclass(frozen=True, slots=True)
class Own(Operation):
    """A gate."""

    category = "own"
    rank = 20
    labels = re.compile("own")
    examples = ("own",)
    type: Literal["own"] = field(default="own", kw_only=True, repr=False, compare=False)

    @property
    def label(self) -> str:
        return "own"

    @property
    def cost(self) -> float:
        return 1.0

    def size(self, channels: int, pixels: Pixels, stride: int) -> NetworkSize:
        return NetworkSize(channels)


@pytest.mark.usefixtures("own_operations")
def test_a_layer_may_draw_its_weights_itself() -> None:
    register(Own, DrawnGate)
    assert from_label("own") == Own()
    assert CATEGORIES[-1] == "own"
    one, other = (prnas.build(genotype(Own()), 4, 3, 2) for _ in range(2))
    gate = "cells.0.operations.0.0.gate"
    assert one.get_parameter(gate).std() > 0.1
    assert torch.equal(one.get_parameter(gate), other.get_parameter(gate))


@pytest.mark.usefixtures("own_operations")
def test_a_faster_module_is_the_one_that_is_built() -> None:
    register(Own, DrawnGate, lambda op, channels, stride, affine: Gate(channels, stride))
    assert type(build(Own(), 4, 1, affine=False)) is Gate
    assert type(plain.factory(Own())(4, 1)) is DrawnGate


@pytest.mark.usefixtures("own_operations")
@pytest.mark.parametrize(
    ("changes", "module", "said"),
    [
        ({}, Gate, "no initialisation is known for Gate"),
        ({}, in_place, "changes its input, which other operations read too"),
        ({}, lambda c, stride: nn.Identity(), "has 0 parameters by its module, 8 by its size"),
        ({"size": Skip.size}, lambda c, stride: nn.Identity(), "makes .* of .*, not"),
        ({}, lambda c: DrawnGate(c, 1), "takes 1 positional argument"),
        ({"rank": Conv.rank}, DrawnGate, "the rank of 'own', 3, is that of another operation"),
        ({"examples": ()}, DrawnGate, "must have examples"),
        ({"examples": ("other",)}, DrawnGate, "must match the labels of 'own', and of no other"),
        (
            {"label": property(lambda op: "skip")},
            DrawnGate,
            "must stay the same as a label and in JSON",
        ),
        ({"labels": Skip.labels, "examples": ("skip",)}, DrawnGate, "and of no other"),
    ],
)
def test_what_is_wrong_is_said_at_once(
    changes: dict[str, Any],
    module: Callable[..., nn.Module],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in changes.items():
        monkeypatch.setattr(Own, name, value)
    with pytest.raises((ValueError, TypeError), match=said):
        register(Own, module)
    assert Own not in OPERATIONS.values()


def test_what_prnas_has_cannot_be_replaced(own: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="'conv' is an operation of prnas"):
        register(Conv, plain.conv)

    @dataclass(frozen=True, slots=True)
    class OwnSkip(Skip):
        """What a supernet would take for a skip, whatever its module does."""

        type: Any = field(default="own skip", kw_only=True, repr=False, compare=False)

    with pytest.raises(ValueError, match="'own skip' derives from Skip; derive it from Operation"):
        register(OwnSkip, DrawnGate)
    morphism = own["HALVE_REDUCTION"]
    with pytest.raises(ValueError, match="'widen' is a morphism of prnas"):
        register_morphism(replace(morphism, name="widen"), own["halve_reduction"])
    with pytest.raises(ValueError, match="Own, which 'halve reduction' changes, is not registered"):
        register_morphism(replace(morphism, operation=Own), own["halve_reduction"])
