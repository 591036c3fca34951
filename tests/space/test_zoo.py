import pytest

import prnas
from prnas.space import zoo
from prnas.space.genotype import Genotype
from prnas.space.operations import Conv, Conv1x7x1
from prnas.space.reading import FormatError


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


def test_published_results() -> None:
    dl2 = zoo.entry("pr-darts-dl2")
    assert (dl2.cifar10_error, dl2.cifar100_error) == ((2.51, 0.09), (15.53, 0.29))
    assert (dl2.published_parameters, dl2.gpu_days) == (4.0, 0.82)
    assert zoo.get("pr-darts-dl2").normal.nodes[1][1].op == Conv(7, 1, (1,))


def test_cells_of_other_shapes() -> None:
    assert zoo.get("amoebanet-a").reduction.concat == (3, 4, 6)
    assert Conv1x7x1() in zoo.get("amoebanet-a").reduction.operations
    assert zoo.get("nasnet-a").normal.num_nodes == 5


def test_an_unknown_name() -> None:
    with pytest.raises(FormatError, match="Did you mean 'nasnet-a'"):
        zoo.get("nasnet")
