"""Sizes counted from a plan; tests/nets compares them with networks that are built."""

from random import Random

import pytest

from prnas.space.analysis.sampling import random_genotype
from prnas.space.layer_size import NetworkSize
from prnas.space.network_plan import CellPlan, check_network, plan_cells
from prnas.space.network_size import network_size
from prnas.space.operations import PlainConv, Skip, Zero
from prnas.space.shape import DARTS, NASBENCH201, CellShape


def test_the_published_network_of_nasbench201_without_its_cells() -> None:
    """Counted by hand, from the published form, for 16 channels and 10 classes.

    Stem: 3·16·9 + 2·16 = 464. Residual blocks: 16·32·9 + 2·32 + 32·32·9 + 2·32 + 16·32 = 14,464 and
    32·64·9 + 2·64 + 64·64·9 + 2·64 + 32·64 = 57,600. At the end: BN 2·64 = 128, linear 650. Skips
    have none, so this is the all-skip cell's network: published as 0.073306 million.
    """
    genotype = random_genotype([Skip()], Random(0), 3, NASBENCH201, "last")
    size = network_size(genotype, 16, 15, 10)
    assert size.parameters == 464 + 14_464 + 57_600 + 128 + 650 == 73_306
    # Of 32 x 32 images: the stem at 1024 pixels, the blocks at 256 and 64.
    first, second = 4_608 + 9_216 + 512, 18_432 + 36_864 + 2_048
    assert size.macs == 432 * 1024 + first * 256 + second * 64 + 640
    nothing = random_genotype([Zero()], Random(0), 3, NASBENCH201, "last")
    assert network_size(nothing, 16, 15, 10) == NetworkSize(73_306, size.macs)


def test_the_published_size_of_the_cell_of_3x3_convolutions() -> None:
    """Counted by hand: what stands around the cells, and in 5 cells a stage 6 convolutions each.

    A convolution has 9·C² weights, its BN 2·C: 2,336, 9,280 and 36,992 for 16, 32 and 64 channels.
    """
    genotype = random_genotype([PlainConv(3)], Random(0), 3, NASBENCH201, "last")
    size = network_size(genotype, 16, 15, 10)
    assert size.parameters == 73_306 + 30 * (2_336 + 9_280 + 36_992) == 1_531_546


def test_residual_blocks_stand_between_three_stages() -> None:
    plans, c_out = plan_cells(15, 16, 16, {"normal": 1}, shape=NASBENCH201)
    assert [plan.after_block for plan in plans] == [index in (5, 10) for index in range(15)]
    assert [plan.channels for plan in plans] == [16] * 5 + [32] * 5 + [64] * 5
    assert c_out == 64
    assert not any(plan.reduces or plan.projects or plan.after_reduction for plan in plans)


def test_cells_of_one_kind_stand_at_reductions_too() -> None:
    shape = CellShape(("normal",))
    plans, _ = plan_cells(6, 4, 12, {"normal": 4}, shape=shape)
    assert {plan.role for plan in plans} == {"normal"}
    assert [plan.reduces for plan in plans] == [index in (2, 4) for index in range(6)]
    both, _ = plan_cells(6, 4, 12, {"normal": 4, "reduction": 4}, shape=DARTS)
    assert both[2] == CellPlan("reduction", 16, 16, 8, after_reduction=False, reduces=True)


@pytest.mark.parametrize(
    ("cells", "width", "stem", "said"),
    [
        (8, 1, "cifar", "cells must be a multiple of 3"),
        (6, 3, "cifar", "output must be mean, sum or last"),
        (6, 1, "imagenet", "stem must be cifar"),
    ],
)
def test_a_residual_network_that_cannot_be(cells: int, width: int, stem: str, said: str) -> None:
    assert check_network(NASBENCH201, 6) == check_network(DARTS, 8, 4, "imagenet") == []
    (problem,) = check_network(NASBENCH201, cells, width, stem)  # pyright: ignore
    assert said in problem
