"""The Python file: the same network, for every genotype, with nothing that it does not need."""

import ast
import re
import subprocess
import sys
import types
from pathlib import Path
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prnas.exporting.python_source import python_source
from prnas.models.card import ModelCard
from prnas.space import zoo
from prnas.space.analysis.sampling import random_genotype
from prnas.space.genotype import Cell, Edge, Genotype
from prnas.space.operations import Conv, Skip
from prnas.space.setting import INITIAL_POOL
from prnas.space.shape import CellShape
from tests.support.settings import GENOTYPE201
from tests.support.small_models import card, colour_card, logits_of, some_pixels, trained
from tests.support.strategies import cells

VARIANTS = [
    card(),
    card(output="mean", cells=5, channels=3, input_shape=(1, 7, 9)),
    colour_card(stem="imagenet", cells=4, class_names=tuple(f"class {k}" for k in range(200))),
    colour_card(stem="imagenet", output="mean", class_names=("one",)),
    card(input_shape=(2, 5, 5), mean=(0.1, 0.2), std=(1e-5, 2.0)),
]
# Cells of other shapes than DARTS', and no cells at all.
SHAPED = [
    card(kind="resnet", genotype=None),
    colour_card(kind="resnet", genotype=None, cells=6, channels=3, input_shape=(3, 9, 8)),
    card(genotype=GENOTYPE201, cells=6),
    colour_card(genotype=GENOTYPE201, output="last", input_shape=(3, 9, 8)),
    card(output="sum"),
    *(
        card(genotype=random_genotype(list(INITIAL_POOL), Random(1), 2, shape), output=output)
        for shape, output in (
            (CellShape(("normal",), 1), "concat"),
            (CellShape(("normal",), 2, "all", "residual"), "sum"),
            (CellShape(reads="all"), "last"),
        )
    ),
]


def cards_of_the_zoo() -> list[ModelCard]:
    names = zoo.names()[:9]  # the others have the operations and the shape of DARTS
    return [
        VARIANTS[place % len(VARIANTS)].model_copy(update={"genotype": zoo.get(name)})
        for place, name in enumerate(names + names[::2])
    ] + VARIANTS


def run_source(source: str) -> types.ModuleType:
    module = types.ModuleType("generated")
    exec(compile(source, "generated.py", "exec"), module.__dict__)  # noqa: S102
    return module


def assert_same(known: ModelCard) -> None:
    model = trained(known)
    module = run_source(python_source(known, "net", [0.5]))
    network = module.Network()
    assert list(network.state_dict()) == list(model.network.state_dict())
    network.load_state_dict(model.network.state_dict())
    pixels = some_pixels(known)
    with torch.no_grad():
        logits = network.eval()(module.normalize(pixels))
    torch.testing.assert_close(logits, logits_of(model, pixels), rtol=1e-6, atol=1e-6)
    assert list(known.class_names) == module.CLASS_NAMES
    assert (tuple(module.MEAN), tuple(module.STD)) == (known.mean, known.std)


@pytest.mark.parametrize("known", [*cards_of_the_zoo(), *SHAPED])
def test_the_network_is_the_same(known: ModelCard) -> None:
    assert_same(known)


@settings(max_examples=15)
@given(st.builds(Genotype, cells(), cells()), st.sampled_from(VARIANTS))
def test_any_genotype(genotype: Genotype, variant: ModelCard) -> None:
    assert_same(variant.model_copy(update={"genotype": genotype, "cells": 3, "channels": 2}))


def test_names_of_classes_cannot_become_code() -> None:
    names = ('"""', "'''\nraise SystemExit", "$name {x}", "\\", '"]; raise SystemExit #', "\u202e")
    for padding in (0, 100):
        known = card(class_names=names + ("x",) * padding)
        assert list(known.class_names) == run_source(python_source(known, "net", [])).CLASS_NAMES


def test_only_what_is_needed() -> None:
    skips = Cell(((Edge(0, Skip()), Edge(1, Skip())),), (2,))
    source = python_source(card(genotype=Genotype(skips, skips)), "net", [0.5])
    assert "depthwise" not in source
    assert "Pool" not in source
    assert "architecture search" in source
    published = card(genotype=zoo.get("pr-darts-dl2"))
    assert "PR-DARTS DL2" in python_source(published, "net", [0.5])
    assert "1x7" in python_source(card(genotype=zoo.get("amoebanet-a")), "net", [0.5])
    for known in [*cards_of_the_zoo(), *SHAPED]:
        source = python_source(known, "net", [0.5])
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name != "load":
                assert len(re.findall(rf"\b{node.name}\b", source)) > 1, node.name
        imported = re.findall(r"^(?:import|from) (\w+)", source, re.MULTILINE)
        assert set(imported) - set(sys.stdlib_module_names) == {"torch"}


def test_formatters_and_linters_have_nothing_to_say(tmp_path: Path) -> None:
    deep = Cell(((Edge(0, Conv(7, 3, (2,) * 40)), Edge(1, Conv(5, 2, (1, 2, 3, 4, 5)))),), (2,))
    quotes = ("it's", 'the "same"', "both '\"", "日本語" * 20)
    known = [*cards_of_the_zoo(), *SHAPED, card(genotype=Genotype(deep, deep), class_names=quotes)]
    for place, one in enumerate(known):
        source = python_source(one, "net", [0.5, -1.23456789] * 2)
        (tmp_path / f"net{place}.py").write_text(source, encoding="utf-8")
        assert max(map(len, source.splitlines())) <= 88 or place == len(known) - 1
    for command in (["format", "--diff"], ["check", "--select", "A,B,E,F,I,N,RET,SIM,UP,W"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--isolated", "--no-cache", str(tmp_path)]
        if "check" in command:
            ruff += ["--ignore", "E501,N812,B905,UP"]
        done = subprocess.run(ruff, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
