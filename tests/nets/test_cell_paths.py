"""A genotype within a supernet computes what its own discrete network does."""

from random import Random

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prnas.nets.cell_paths import active_of_cells, calibrated, cell_logits, cell_scores
from prnas.nets.network import Network, build
from prnas.nets.supernet import Supernet, build_supernet
from prnas.searchers.cells import CellSpace
from prnas.space.genotype import Genotype
from prnas.space.operations import Conv, PlainConv, Skip, Zero
from prnas.space.pools import Pools
from prnas.space.shape import DARTS, NASBENCH201, CellShape, Output, Role
from tests.support.supernets import randomized, relative

SPACES: dict[str, tuple[Pools, Output]] = {
    "darts": (Pools.initial(3, (Skip(), Conv(3), Conv(5, 2), Conv(3, 1, (1,)), Zero())), "concat"),
    "nasbench201": (
        Pools.initial(3, (Zero(), Skip(), PlainConv(1), PlainConv(3)), NASBENCH201),
        "last",
    ),
    "one kind of cell": (
        Pools.initial(2, (Skip(), Conv(3)), CellShape(("normal",), 1, "two")),
        "mean",
    ),
}


def discrete(supernet: Supernet, genotype: Genotype, cells: int, output: Output) -> Network:
    """The network of a genotype, with the supernet's tensors."""
    network = build(genotype, 4, cells, 5, output=output).double()
    ours, theirs = supernet.state_dict(), network.state_dict()
    for name, tensor in theirs.items():
        known = tensor
        if (source := our_name(supernet, genotype, name)) in ours:
            known = ours[source]
        else:  # batch normalisation in a search has neither scale nor shift
            assert name.endswith((".weight", ".bias")), name
            known = torch.ones_like(tensor) if name.endswith("weight") else tensor * 0
        tensor.copy_(known)
    return network.train()


def our_name(supernet: Supernet, genotype: Genotype, name: str) -> str:
    """A tensor of the network as the supernet calls it."""
    parts = name.split(".")
    if parts[0] != "cells" or parts[2] != "operations":
        return name
    cell = supernet.search_cells[int(parts[1])]
    node, slot = int(parts[3]), int(parts[4])
    edge = genotype.cell(cell.plan.role).nodes[node][slot]
    place = cell.pools.positions.index((cell.pools.shape.inputs + node, edge.input))
    candidate = cell.pools.edges[place].candidates.index(edge.op)
    return ".".join([*parts[:3], str(place), str(candidate), *parts[5:]])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("space", SPACES)
def test_it_is_the_discrete_network(space: str, seed: int) -> None:
    """Forward and backward; and the mixture that is one-hot where the genotype says."""
    pools, output = SPACES[space]
    cells = 3 if pools.shape == NASBENCH201 else 4
    supernet = randomized(build_supernet(pools, 4, cells, 5, output=output).double(), seed).train()
    genotype = CellSpace.of_pools(pools, output).draw(Random(seed))
    images = torch.randn(6, 3, 8, 8, generator=torch.Generator().manual_seed(seed)).double()
    weights = {name: weight for name, weight in supernet.named_parameters() if "arch" not in name}

    def gradients(logits: Tensor) -> dict[str, Tensor]:
        found = torch.autograd.grad(logits.square().sum(), [*weights.values()], allow_unused=True)
        pairs = zip(weights, found, strict=True)
        return {name: gradient for name, gradient in pairs if gradient is not None}

    network = discrete(supernet, genotype, cells, output)
    logits, expected, mixed = (
        cell_logits(supernet, images, genotype),
        network(images),
        supernet(images, None, None, one_hot(supernet, genotype)),
    )
    if isinstance(expected, tuple):
        expected = expected[0]
    assert relative(logits, expected) < 1e-10
    assert relative(logits, mixed) < 1e-10
    expected.square().sum().backward()
    theirs = {our_name(supernet, genotype, n): w.grad for n, w in network.named_parameters()}
    ours, of_mixture = gradients(logits), gradients(mixed)
    largest = max(float(gradient.abs().max()) for gradient in ours.values())
    assert largest > 0
    for name, gradient in ours.items():
        torch.testing.assert_close(gradient, theirs[name], rtol=1e-9, atol=1e-10 * largest)
        torch.testing.assert_close(gradient, of_mixture[name], rtol=1e-9, atol=1e-10 * largest)
    assert {name for name, gradient in theirs.items() if gradient is not None} & {*weights} == {
        *ours
    }


def one_hot(supernet: Supernet, genotype: Genotype) -> dict[Role, list[Tensor]]:
    """Mixing weights by which all candidates but those of a genotype count nothing."""
    mixing: dict[Role, list[Tensor]] = {}
    for role, cell in active_of_cells(supernet.pools, genotype).items():
        assert cell is not None
        mixing[role] = [torch.zeros_like(edge) for edge in supernet.architecture_weights(role)]
        for edge, candidates in zip(mixing[role], cell, strict=True):
            edge[list(candidates)] = 1.0
    return mixing


def test_what_is_not_in_the_cell_gets_no_gradient_and_keeps_its_statistics() -> None:
    pools, output = SPACES["darts"]
    supernet = randomized(build_supernet(pools, 4, 3, 5, output=output).double(), 1).train()
    genotype = CellSpace.of_pools(pools, output).draw(Random(1))
    before = {name: value.clone() for name, value in supernet.state_dict().items()}
    images, labels = torch.randn(6, 3, 8, 8).double(), torch.arange(6) % 5
    F.cross_entropy(cell_logits(supernet, images, genotype), labels).backward()
    active = active_of_cells(pools, genotype)
    outside = 0
    for name, weight in supernet.named_parameters():
        if in_the_cell(supernet, active, name) is False:
            assert weight.grad is None, name
            outside += 1
    assert outside > 20
    for name, buffer in supernet.named_buffers():
        inside = in_the_cell(supernet, active, name)
        if inside is False:
            assert torch.equal(buffer, before[name]), name
        elif inside and name.endswith("running_mean"):
            assert not torch.equal(buffer, before[name]), name


@pytest.mark.parametrize("space", SPACES)
@torch.no_grad()
def test_calibrated_it_has_the_mean_statistics_of_its_own_path(space: str) -> None:
    pools, output = SPACES[space]
    cells = 3 if pools.shape == NASBENCH201 else 4
    supernet = randomized(build_supernet(pools, 4, cells, 5, output=output).double(), 4).train()
    genotype = CellSpace.of_pools(pools, output).draw(Random(4))
    generator = torch.Generator().manual_seed(4)
    calibration = [torch.randn(6, 3, 8, 8, generator=generator).double() for _ in range(3)]
    images = torch.randn(4, 3, 8, 8, generator=generator).double()
    before = {name: value.clone() for name, value in supernet.state_dict().items()}
    network = discrete(supernet, genotype, cells, output)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
            module.momentum = None  # of all batches alike
    for batch in calibration:
        network(batch)
    expected = network.eval()(images)
    with calibrated(supernet, genotype, calibration):
        found = cell_logits(supernet, images, genotype)
        alone = cell_logits(supernet, images[:1], genotype)
    assert relative(found, expected) < 1e-10
    assert relative(alone, expected[:1]) < 1e-10, "whatever else is in the batch"
    assert all(torch.equal(before[name], value) for name, value in supernet.state_dict().items())
    assert all(module.training for module in supernet.modules())
    assert {norm.momentum for norm in norms_of(supernet)} == {0.1}


def norms_of(supernet: Supernet) -> list[nn.BatchNorm2d]:
    return [module for module in supernet.modules() if isinstance(module, nn.BatchNorm2d)]


def in_the_cell(supernet: Supernet, active: object, name: str) -> bool | None:
    """Whether a tensor is of an operation that the genotype has; `None`: of no operation."""
    parts = name.split(".")
    if parts[0] != "cells" or parts[2] != "operations":
        return None
    role = supernet.search_cells[int(parts[1])].plan.role
    return int(parts[4]) in active[role][int(parts[3])]  # pyright: ignore


def test_scores_change_no_bit_and_do_not_depend_on_the_others() -> None:
    pools, output = SPACES["nasbench201"]
    supernet = randomized(build_supernet(pools, 4, 3, 5, output=output), 2).train()
    generator, space = Random(0), CellSpace.of_pools(pools, output)
    cells = [space.draw(generator) for _ in range(4)]
    images, labels = torch.randn(6, 3, 8, 8), torch.arange(6) % 5
    before = {name: value.clone() for name, value in supernet.state_dict().items()}
    scores = cell_scores(supernet, images, labels, cells)
    turned = cell_scores(supernet, images, labels, cells[::-1])
    assert torch.equal(scores.loss, turned.loss.flip(0))
    assert torch.equal(scores.correct, turned.correct.flip(0))
    assert len(set(scores.loss.sum(1).tolist())) > 1
    assert all(torch.equal(before[name], value) for name, value in supernet.state_dict().items())
    assert supernet.training


def test_edges_that_a_genotype_leaves_out_are_inactive() -> None:
    pools, output = SPACES["darts"]
    genotype = CellSpace.of_pools(pools, output).draw(Random(3))
    for role in DARTS.roles:
        cell = active_of_cells(pools, genotype)[role]
        assert cell is not None
        assert [len(edge) for edge in cell].count(1) == 6
        assert len(cell) == 9
