from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.space import zoo
from prnas.space.costs import Cost, Costs, shown
from prnas.space.final_network import FinalNetwork
from prnas.space.genotype import Cell, Genotype
from prnas.space.latency import LatencyTable, key
from prnas.space.network_plan import Stem
from prnas.space.network_size import network_size
from prnas.space.operations import Conv, Skip, Zero
from prnas.space.shape import Role
from tests.support.strategies import shaped_genotypes


@given(
    shaped_genotypes(3),
    st.integers(1, 3),
    st.sampled_from([(8, 8), (9, 12), (32, 32)]),
    st.sampled_from(["cifar", "imagenet"]),
)
def test_costs_add_up_to_the_size_of_the_network(
    genotype: Genotype, third: int, pixels: tuple[int, int], stem: Stem
) -> None:
    """Also in shapes where normal cells reduce, and in residual networks."""
    shape, nodes = genotype.shape, genotype.normal.num_nodes
    states = tuple(shape.nodes(nodes))
    cells: dict[Role, Cell] = {
        role: replace(genotype.cell(role), concat=states)
        for role in shape.roles
        if genotype.cell(role).num_nodes == nodes
    }
    if len(cells) < len(shape.roles):
        return  # a search's cells have the same number of nodes
    output = "mean" if shape.network == "residual" else "concat"
    stem = "cifar" if shape.network == "residual" else stem
    network = FinalNetwork(
        channels=4,
        cells=3 * third,
        classes=7,
        stem=stem,
        output=output,
        input_channels=1,
        height=pixels[0],
        width=pixels[1],
        nodes=nodes,
        states=nodes,
        shape=shape,
    )
    whole = Genotype.of(cells)
    size = network_size(
        whole, 4, 3 * third, 7, stem=stem, output=output, input_channels=1, image_size=pixels
    )
    assert Costs(network).total(whole) == Cost(size.parameters, size.macs)
    assert network.size(whole) == size


def test_latencies_are_looked_up_where_operations_are() -> None:
    network = FinalNetwork(channels=4, cells=3, height=16, width=16)
    places = {  # cells 1 and 2 reduce, and read two images; cell 0 reads those of the stem
        key(Skip(), 4, (16, 16), 1): 1,
        key(Skip(), 8, (16, 16), 2): 10,
        key(Skip(), 8, (8, 8), 1): 100,
        key(Skip(), 16, (8, 8), 2): 1_000,
        key(Skip(), 16, (4, 4), 1): 10_000,
    }
    costs = Costs(network, LatencyTable(network, 5, places))
    assert costs.around.latency == 5
    assert costs.of("normal", 0, Skip()).latency == 1
    assert costs.of("reduction", 1, Skip()).latency == 1_010
    assert costs.of("reduction", 2, Skip()).latency == 10_100
    assert costs.of("normal", 0, Zero()).latency == 0
    assert costs.kinds == ("params", "macs", "latency")
    with pytest.raises(KeyError, match="conv 3x3 @ 4x16x16 /1"):
        costs.of("normal", 0, Conv(3))


def test_a_network_in_words_and_its_like() -> None:
    network = FinalNetwork(channels=8, cells=5, height=16, width=24, stem="imagenet")
    assert network.in_words == "8 channels, 5 cells, 3x16x24 images, ImageNet's stem"
    assert network.like(replace(network, classes=100))
    assert not network.like(replace(network, cells=6))
    with pytest.raises(ValueError, match="states must be a whole number from 1 to 4, got 5"):
        replace(network, states=5)


def test_amounts_are_shown_with_units() -> None:
    assert shown("params", 3_021_234) == "3.021 M parameters"
    assert shown("macs", 1_512_345_678) == "1.512 G multiply-accumulates"
    assert shown("params", 640) == "640 parameters"
    assert shown("params", 12_345) == "12.35 k parameters"
    assert shown("latency", 20_500_000) == "20.5 ms"


def test_the_paper_s_network_is_the_default() -> None:
    genotype = zoo.get("pr-darts-dl2")
    assert Costs(FinalNetwork()).total(genotype) == Cost(4_017_646, 650_369_664)
