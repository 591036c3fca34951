from collections import Counter
from random import Random

import pytest

from prnas.space.analysis.counting import discoverable
from prnas.space.analysis.sampling import random_genotype
from prnas.space.operations import Skip, Zero
from prnas.space.setting import SETTINGS

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
