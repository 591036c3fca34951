import json
from pathlib import Path

import pytest

import prnas
from prnas.io.errors import FormatError
from prnas.space import zoo
from prnas.space.genotype import ROLES, Genotype
from prnas.space.operations import Conv1x7x1


def test_names() -> None:
    assert prnas.zoo.names() == [
        "darts-v1",
        "darts-v2",
        "p-darts",
        "pr-darts-dl1",
        "pr-darts-dl2",
        "pr-darts-dr",
        "pr-darts-ur",
        "nasnet-a",
        "amoebanet-a",
    ]


@pytest.mark.parametrize("name", zoo.names())
def test_every_entry_is_whole(name: str) -> None:
    entry = zoo.entry(name)
    assert entry.title
    assert entry.citation
    assert entry.reference.startswith("arXiv:")
    assert entry.cifar10_error is not None
    assert Genotype.loads(entry.genotype.dumps()) == entry.genotype
    assert prnas.zoo.get(name) == entry.genotype


def test_every_cell_is_the_published_one() -> None:
    published = json.loads((Path(__file__).parent / "published-cells.json").read_text())["cells"]
    assert list(published) == zoo.names()
    for name, cells in published.items():
        for role in ROLES:
            ours = zoo.get(name).cell(role).to_json()
            assert ours["nodes"] == cells[role]["nodes"], name
            assert ours["concat"] == cells[role]["concat"], name


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
    }


def test_cells_of_other_shapes() -> None:
    assert zoo.get("amoebanet-a").cell("reduction").concat == (3, 4, 6)
    assert Conv1x7x1() in zoo.get("amoebanet-a").cell("reduction").operations
    assert zoo.get("nasnet-a").normal.num_nodes == 5


def test_an_unknown_name() -> None:
    with pytest.raises(FormatError, match="Did you mean 'nasnet-a'"):
        zoo.get("nasnet")
