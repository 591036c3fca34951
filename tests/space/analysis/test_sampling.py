from collections import Counter
from random import Random

import pytest

from prnas.space.analysis.counting import discoverable
from prnas.space.analysis.sampling import random_genotype
from prnas.space.operations import PlainConv, Skip, Zero
from prnas.space.setting import SETTINGS
from prnas.space.shape import NASBENCH201

OPERATIONS = discoverable(SETTINGS["darts-like"])


def test_the_same_seed_draws_the_same_cells() -> None:
    assert random_genotype(OPERATIONS, Random(1)) == random_genotype(OPERATIONS, Random(1))
    assert random_genotype(OPERATIONS, Random(1)) != random_genotype(OPERATIONS, Random(2))


def test_inputs_and_operations_are_drawn_uniformly() -> None:
    generator = Random(0)
    inputs: Counter[tuple[int, int]] = Counter()
    operations: Counter[object] = Counter()
    for _ in range(3000):
        nodes = random_genotype(OPERATIONS, generator).normal.nodes
        inputs[nodes[1][0].input, nodes[1][1].input] += 1
        operations[nodes[0][0].op] += 1
    assert set(inputs) == {(0, 1), (0, 2), (1, 2)}
    assert all(abs(count - 1000) < 130 for count in inputs.values())
    assert set(operations) == set(OPERATIONS)
    assert all(abs(count - 200) < 75 for count in operations.values())


def test_zero_is_never_drawn() -> None:
    genotype = random_genotype([Zero(), Skip()], Random(0), num_nodes=2)
    assert set(genotype.normal.operations) == {Skip()}
    with pytest.raises(ValueError, match="at least one operation"):
        random_genotype([Zero()], Random(0))


def test_cells_with_few_skips_are_drawn_uniformly() -> None:
    """Of six edges with three operations, 64 cells have no skip, and 6 x 32 have one."""
    choices = [PlainConv(1), Skip(), PlainConv(3)]
    generator, drawn = Random(0), Counter[tuple[object, ...]]()
    for _ in range(25_600):
        cell = random_genotype(choices, generator, 3, NASBENCH201, "last", {"normal": 1}).normal
        drawn[tuple(cell.operations)] += 1
    assert len(drawn) == 256
    assert all(operations.count(Skip()) <= 1 for operations in drawn)
    assert all(abs(count - 100) < 45 for count in drawn.values())


def test_a_bound_that_nothing_can_keep_is_none() -> None:
    drawn = random_genotype([Skip()], Random(0), 2, max_skips={"normal": 0, "reduction": 3})
    assert set(drawn.normal.operations) == {Skip()}
    convs = [PlainConv(1), PlainConv(3)]
    drawn = random_genotype(convs, Random(0), 2, max_skips={"normal": 0})
    assert set(drawn.normal.operations) <= set(convs)
