"""Zero-cost proxies are what their papers say, on networks small enough to compute by hand."""

import math

import pytest
import torch
from torch import nn

from prnas.nets.plain_network import network_of
from prnas.nets.proxies import nwot, synflow
from prnas.space.nasbench201.cells import genotype_of, index_of_string
from tests.support.settings import SMALL_GENOTYPE


def linear(*weights: list[list[float]]) -> nn.Sequential:
    """Linear layers with a ReLU after each but the last."""
    layers: list[nn.Module] = [nn.Flatten()]
    for weight in weights:
        values = torch.tensor(weight)
        layer = nn.Linear(values.shape[1], values.shape[0], bias=False)
        layer.weight = nn.Parameter(values)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def test_nwot_counts_where_images_agree() -> None:
    network = linear([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[1.0, 1.0, 1.0]])
    images = torch.tensor([[1.0, -2.0], [1.0, 2.0]])  # on, off, off; and all on
    expected = torch.tensor([[3.0, 1.0], [1.0, 3.0]])
    assert nwot(network, images) == pytest.approx(math.log(float(torch.linalg.det(expected))))
    same = torch.tensor([[1.0, 2.0], [2.0, 4.0]])
    assert nwot(network, same) == -math.inf, "it cannot tell them apart"


def test_synflow_is_the_sum_over_all_paths() -> None:
    network = linear([[-2.0, 3.0]], [[5.0]])
    # Every path of positive weights counts once for each of its two weights.
    assert synflow(network, (1, 1, 2)) == pytest.approx(math.log(2 * (2 * 5 + 3 * 5)))
    assert synflow(linear([[0.0, 0.0]], [[1.0]]), (1, 1, 2)) == -math.inf


@pytest.mark.parametrize("bn", [0.5, 2.0])
def test_images_are_normalised_by_their_own_statistics(bn: float) -> None:
    torch.manual_seed(0)
    network = network_of(SMALL_GENOTYPE, 4, 3, 5)
    images = torch.randn(8, 3, 8, 8)
    expected = nwot(network, images)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.fill_(bn)  # pyright: ignore
    assert nwot(network, images) == expected
    assert math.isfinite(expected)


def test_a_cell_that_nothing_passes_has_no_flow() -> None:
    none = "|none~0|+|none~0|none~1|+|none~0|none~1|none~2|"
    network = network_of(genotype_of(index_of_string(none)), 4, 3, 5, output="last")
    assert synflow(network, (3, 8, 8)) < synflow(
        network_of(genotype_of(5**6 // 2), 4, 3, 5, output="last"), (3, 8, 8)
    )


def test_the_flow_does_not_depend_on_what_was_computed_before() -> None:
    def made() -> nn.Module:
        torch.manual_seed(2)
        return network_of(SMALL_GENOTYPE, 4, 3, 5)

    used = made()
    nwot(used, 3 + torch.randn(6, 3, 8, 8))
    assert synflow(used, (3, 8, 8)) == synflow(made(), (3, 8, 8))


def test_they_repeat() -> None:
    def both() -> tuple[float, float]:
        torch.manual_seed(1)
        network = network_of(SMALL_GENOTYPE, 4, 3, 5)
        images = torch.randn(6, 3, 8, 8)
        return nwot(network, images), synflow(network, (3, 8, 8))

    assert both() == both()
