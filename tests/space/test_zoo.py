import json
from collections import Counter
from pathlib import Path

import pytest

import prnas
from prnas.io.errors import FormatError
from prnas.space import zoo
from prnas.space.genotype import ROLES, Edge, Genotype
from prnas.space.layer_size import NetworkSize
from prnas.space.network_size import network_size
from prnas.space.operations import Conv, Conv1x7x1, Pool, Skip

GOLDEN = Path(__file__).parent
LATER = json.loads((GOLDEN / "later-cells.json").read_text())["cells"]
SHORT = {
    "s3": Conv(3, 1, (1,)),
    "s5": Conv(5, 1, (1,)),
    "d3": Conv(3, 2),
    "d5": Conv(5, 2),
    "mx": Pool("max"),
    "av": Pool("avg"),
    "sk": Skip(),
}


def test_names() -> None:
    first, later = prnas.zoo.names()[:10], prnas.zoo.names()[10:]
    assert later == list(LATER)
    assert len(later) == 26
    assert first == [
        "darts-v1",
        "darts-v2",
        "p-darts",
        "pr-darts-dl1",
        "pr-darts-dl2",
        "pr-darts-dr",
        "pr-darts-ur",
        "nasnet-a",
        "amoebanet-a",
        "enas",
    ]


@pytest.mark.parametrize("name", zoo.names())
def test_every_entry_is_whole(name: str) -> None:
    entry = zoo.entry(name)
    assert entry.title
    assert entry.citation
    assert entry.reference.startswith(("arXiv:", "openreview:"))
    assert entry.cifar10_error is None or entry.method_error is None
    assert name not in LATER or entry.source is not None
    assert Genotype.loads(entry.genotype.dumps()) == entry.genotype
    assert prnas.zoo.get(name) == entry.genotype


def test_every_cell_is_the_published_one() -> None:
    published = json.loads((GOLDEN / "published-cells.json").read_text())["cells"]
    assert list(published) == zoo.names()[:9]
    for name, cells in published.items():
        for role in ROLES:
            ours = zoo.get(name).cell(role).to_json()
            assert ours["nodes"] == cells[role]["nodes"], name
            assert ours["concat"] == cells[role]["concat"], name


@pytest.mark.parametrize("name", LATER)
def test_every_later_cell_and_its_size(name: str) -> None:
    genotype, golden = zoo.get(name), LATER[name]
    for role in ROLES:
        cell = genotype.cell(role)
        nodes = [node.split() for node in golden[role].split(" / ")]
        edges = [[edge.split("<-") for edge in node] for node in nodes]
        expected = tuple(tuple(Edge(int(i), SHORT[op]) for op, i in node) for node in edges)
        assert cell.nodes == expected
        assert cell.concat == (2, 3, 4, 5)
    assert network_size(genotype) == NetworkSize(golden["parameters"], golden["macs"])


def test_no_cell_has_two_names() -> None:
    """Also not with the edges of a node in another order."""
    found = Counter(
        tuple(
            (tuple(tuple(sorted(node)) for node in cell.nodes), cell.concat)
            for cell in (entry.genotype.normal, entry.genotype.cell("reduction"))
        )
        for entry in zoo.entries().values()
    )
    assert set(found.values()) == {1}


def test_a_size_that_disagrees_has_a_note() -> None:
    for name, entry in zoo.entries().items():
        published, counted = entry.published_parameters, network_size(entry.genotype).parameters
        if published is not None and abs(counted / 1e6 - published) > 0.06:
            assert "counted" in entry.note or "gives" in entry.note, name
    assert "not the size that the paper gives" in zoo.entry("oles-cifar10").note


def test_every_published_result() -> None:
    rows = {
        name: (one.cifar10_error, one.cifar100_error, one.published_parameters, one.gpu_days)
        for name, one in zoo.entries().items()
    }
    assert rows == {
        "darts-v1": ((2.94, None), None, 2.9, 1.5),
        "darts-v2": ((2.83, None), None, 3.4, 4.0),
        "p-darts": ((2.50, None), (16.55, None), 3.4, 0.3),
        "pr-darts-dl1": ((2.74, 0.12), (17.37, 0.14), 3.2, 0.82),
        "pr-darts-dl2": ((2.51, 0.09), (15.53, 0.29), 4.0, 0.82),
        "pr-darts-dr": ((2.55, 0.19), (16.69, 0.08), 4.2, 0.88),
        "pr-darts-ur": ((3.79, 0.24), None, 5.4, 1.10),
        "nasnet-a": ((2.65, None), None, 3.3, 1800),
        "amoebanet-a": ((3.34, 0.06), None, 3.2, 3150),
        "enas": ((2.89, None), None, 4.6, 0.5),
        "pc-darts-cifar10": ((2.57, 0.07), None, 3.6, 0.1),
        "pc-darts-imagenet": (None, None, None, 3.8),
        "snas-mild": (None, None, 2.9, 1.5),
        "snas-moderate": ((2.85, 0.02), None, 2.8, 1.5),
        "drnas-cifar10": ((2.46, 0.03), None, 4.1, 0.6),
        "drnas-imagenet": (None, None, None, None),
        "sdarts-rs": ((2.67, 0.03), None, 3.4, 0.4),
        "sdarts-adv": ((2.61, 0.02), None, 3.3, 1.3),
        "darts-pt-0": (None, None, 2.85, 0.8),
        "darts-pt-1": (None, None, 3.05, 0.8),
        "darts-pt-2": (None, None, 2.66, 0.8),
        "darts-pt-3": (None, None, 3.33, 0.8),
        "gdas-v1": ((2.93, None), (18.38, None), 3.4, 0.2),
        "oles-cifar10": (None, None, None, 0.4),
        "oles-cifar100": (None, None, None, None),
        "lambda-darts-corr": (None, None, None, 0.8),
        "lambda-darts-sign": (None, None, None, 0.8),
        "sharpsepconv-darts": ((2.45, None), None, 3.6, 0.8),
        "mdenas": ((2.55, None), None, 4.1, 0.16),
        "asap": (None, None, None, 0.2),
        **{f"darts-minus-{number}": (None, None, None, 0.4) for number in range(5)},
        "darts-minus-c100": (None, None, None, 0.4),
    }


def test_cells_of_other_shapes() -> None:
    assert zoo.get("amoebanet-a").cell("reduction").concat == (3, 4, 6)
    assert Conv1x7x1() in zoo.get("amoebanet-a").cell("reduction").operations
    assert zoo.get("nasnet-a").normal.num_nodes == 5


def test_the_cell_of_enas_is_what_its_script_says() -> None:
    """Of each node two inputs, each with its operation; loose ends make the output."""
    said = "0 2 0 0 0 4 0 1 0 4 1 1 1 0 0 1 0 2 1 1", "1 0 1 0 0 3 0 2 1 1 3 1 1 0 0 4 0 3 1 1"
    operations = (SHORT["s3"], SHORT["s5"], SHORT["av"], SHORT["mx"], SHORT["sk"])
    for role, text in zip(ROLES, said, strict=True):
        numbers = [int(word) for word in text.split()]
        edges = [
            Edge(source, operations[op])
            for source, op in zip(numbers[::2], numbers[1::2], strict=True)
        ]
        cell = zoo.get("enas").cell(role)
        assert [edge for node in cell.nodes for edge in node] == edges
        read = {edge.input for edge in edges}
        assert cell.concat == tuple(state for state in range(2, 7) if state not in read)


def test_cells_that_a_genotype_cannot_hold() -> None:
    with pytest.raises(FormatError, match=r"B .*2\.55 ± 0\.05 %, 2\.8 M .*: its cells have"):
        zoo.get("amoebanet-b")
    with pytest.raises(FormatError, match=r"12 .*10 2\.50 %, 7\.4 M .*0\.3 GPU.*: its normal cell"):
        zoo.get("nasp-12")
    unknown = r"2\.54 ± 0\.05 % as the mean .* cell unknown, 2\.83 M .*, unknown GPU days\)"
    with pytest.raises(FormatError, match=f"FairDARTS_a .*{unknown}.*: of its normal"):
        zoo.get("fairdarts-a")
    assert not set(zoo.ABSENT) & set(zoo.names())


def test_an_unknown_name() -> None:
    with pytest.raises(FormatError, match="Did you mean 'nasnet-a'"):
        zoo.get("nasnet")
