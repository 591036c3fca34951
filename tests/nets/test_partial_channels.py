"""Partial channels and edge weights (PC-DARTS)."""

from random import Random

import pytest
import torch
from torch.nn import functional as F

from prnas.config.architecture import ArchitectureConfig
from prnas.config.choices import Execution
from prnas.nets.paths import path_logits
from prnas.nets.relaxations import Softmax
from prnas.nets.removal import CandidateIndex, scores_without, undisturbed
from prnas.nets.saliency import saliencies
from prnas.nets.search_cell import shuffled
from prnas.nets.supernet import Supernet, build_supernet
from prnas.space.change import Change
from prnas.space.operations import Conv, Pool, Skip, Zero
from prnas.space.pools import Pools
from prnas.space.setting import SETTINGS
from prnas.space.shape import NASBENCH201
from tests.support.supernets import (
    check_equal,
    plain_of,
    random_images,
    random_pools,
    randomized,
    relative,
)

EDGES = ArchitectureConfig(edge_weights=True)


def built(
    pools: Pools,
    parts: int,
    execution: Execution = "fused",
    settings: ArchitectureConfig = EDGES,
    recompute: bool = False,
) -> Supernet:
    output = "concat" if pools.shape.network == "darts" else "last"
    supernet = build_supernet(
        pools,
        8,
        3,
        5,
        output=output,
        relaxation=Softmax(settings),
        execution=execution,
        recompute=recompute,
        partial_channels=parts,
    )
    return randomized(supernet.double(), 3)


@pytest.mark.parametrize("execution", ["fused", "plain"])
@pytest.mark.parametrize(
    ("parts", "size", "recompute"), [(4, 8, True), (2, 9, False), (8, 8, False)]
)
def test_equal_to_the_textbook(
    execution: Execution, parts: int, size: int, recompute: bool
) -> None:
    pools = random_pools(SETTINGS["depth-restricted"], 2, Random(parts))
    supernet = built(pools, parts, execution, recompute=recompute)
    check_equal(supernet, plain_of(supernet), random_images(size=size))


@pytest.mark.parametrize("execution", ["fused", "plain"])
def test_equal_to_the_textbook_without_edge_weights(execution: Execution) -> None:
    pools = Pools.initial(2, (Conv(3), Pool("avg", 3), Skip(), Zero()), NASBENCH201)
    supernet = built(pools, 4, execution, ArchitectureConfig())
    check_equal(supernet, plain_of(supernet), random_images())


@pytest.mark.parametrize("execution", ["fused", "plain"])
def test_one_part_and_equal_edges_are_darts_but_for_the_edges_number(
    execution: Execution,
) -> None:
    """With two edges of weight 1/2 a node is half of DARTS's."""
    pools = Pools.initial(1, (Conv(3), Skip()))
    supernet = built(pools, 1, execution)
    with torch.no_grad():
        for weights in supernet.edge_architecture.parameters():
            weights.zero_()
    darts = randomized(build_supernet(pools, 8, 3, 5, execution=execution).double(), 3)
    state = supernet.state_dict()
    darts.load_state_dict({name: state[name] for name in darts.state_dict()})
    mixing = {role: [edge / 2 for edge in edges] for role, edges in darts.mixing().items()}
    assert relative(supernet(random_images()), darts(random_images(), mixing=mixing)) < 1e-12


@pytest.mark.parametrize("execution", ["fused", "plain"])
def test_one_part_without_edge_weights_is_darts_to_the_bit(execution: Execution) -> None:
    pools = random_pools(SETTINGS["darts-like"], 2, Random(2))
    supernet = built(pools, 1, execution, ArchitectureConfig())
    darts = randomized(build_supernet(pools, 8, 3, 5, execution=execution).double(), 3)
    assert darts.state_dict().keys() == supernet.state_dict().keys()
    assert torch.equal(supernet(random_images()), darts(random_images()))


def test_the_shuffle_can_be_undone_and_is_pytorchs() -> None:
    x = torch.arange(2 * 12 * 2 * 3.0).reshape(2, 12, 2, 3)
    x = x.contiguous(memory_format=torch.channels_last)
    mixed = shuffled(x, 4)
    assert torch.equal(mixed, F.channel_shuffle(x, 4))
    assert mixed.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(shuffled(mixed, 3), x)


def test_candidates_are_narrow_and_children_inherit() -> None:
    pools = Pools.initial(2, (Skip(), Conv(3), Pool("max", 3)))
    supernet = built(pools, 4)
    widths = {cell.plan.channels // 4 for cell in supernet.search_cells}
    weights = [w for name, w in supernet.named_parameters() if "operations" in name]
    assert {weight.shape[0] for weight in weights if weight.shape[-1] == 3} == widths
    limits = SETTINGS["unrestricted"].limits
    alphas = [[0.0, 1.0, 0.5]] * 5
    cells = [pools.cell(role).evolve(alphas, 2, 2, limits, Random(1)) for role in pools.roles]
    after = Pools(*(cell for cell, _ in cells))
    change = Change(*(change for _, change in cells))
    assert change.normal.edges[0].added
    supernet.evolve(change, torch.Generator().manual_seed(0), after)
    assert all((w == 0).all() for w in supernet.architecture_parameters())
    check_equal(randomized(supernet, 4), plain_of(supernet), random_images())


def test_edge_weights_are_architecture_parameters() -> None:
    supernet = built(Pools.initial(3, (Skip(), Conv(3))), 2)
    own = list(supernet.edge_architecture.parameters())
    assert [len(weights) for weights in own] == [2, 3, 4] * 2
    with supernet.training_only("architecture") as trained:
        assert {id(w) for w in own} <= {id(w) for w in trained}
        F.cross_entropy(supernet(random_images()), torch.tensor([0, 1, 2])).backward()
    assert all(w.grad is not None and w.grad.abs().max() > 0 for w in own)
    weights = supernet.edge_weights()
    assert weights is not None
    assert torch.stack(weights["normal"][2:5]).sum().item() == pytest.approx(1)


def test_without_an_edge_nothing_of_it_goes_past() -> None:
    """All candidates left out: as if the edge's weight were 0."""
    pools = Pools.initial(1, (Skip(), Conv(3)))
    supernet, labels = built(pools, 2), torch.tensor([0, 1, 2])
    gone = [CandidateIndex("normal", 0, 0), CandidateIndex("normal", 0, 1)]
    (loss,) = scores_without(supernet, random_images(), labels, [gone]).loss
    twin = built(pools, 2)
    (edges,) = twin.edge_architecture["normal"].parameters()
    _, kept = edges.detach().softmax(0).tolist()
    with undisturbed(twin, training=True):
        mixing = twin.mixing()
        mixing["normal"][0] = torch.zeros_like(mixing["normal"][0])
        weights = {role: list(cell) for role, cell in (twin.edge_weights() or {}).items()}
        weights["normal"][0] = torch.zeros((), dtype=torch.float64)
        assert weights["normal"][1].item() == pytest.approx(kept)
        last = before = twin.stem(random_images())[0]
        for cell in twin.search_cells:
            role = cell.plan.role
            before, last = last, cell(before, last, mixing[role], None, None, weights[role])
        expected = F.cross_entropy(twin.classified(last), labels, reduction="none")
    assert relative(loss, expected) < 1e-12


def test_saliency_foretells_removal() -> None:
    """With a mixing weight near 0, first order is exact."""
    supernet, labels = built(Pools.initial(1, (Skip(), Conv(3))), 2), torch.tensor([0, 1, 2])
    with torch.no_grad():
        supernet.architecture_weights("normal")[0][1] = -16.0
        supernet.architecture_weights("normal")[0][0] = 0.0
    rise = saliencies(supernet, random_images(), labels)["normal"][0][1]
    removed: list[list[CandidateIndex]] = [[], [CandidateIndex("normal", 0, 1)]]
    with_it, without = scores_without(supernet, random_images(), labels, removed).loss.mean(1)
    assert rise.item() == pytest.approx((without - with_it).item(), rel=1e-4)


def test_paths_have_edges_of_weight_1() -> None:
    pools = Pools.initial(1, (Skip(), Conv(3)))
    weighed, plain = built(pools, 2), built(pools, 2, settings=ArchitectureConfig())
    state = weighed.state_dict()
    plain.load_state_dict({name: state[name] for name in plain.state_dict()})
    path = dict.fromkeys(pools.roles, (0, 1))
    assert torch.equal(
        path_logits(weighed, random_images(), path),  # pyright: ignore
        path_logits(plain, random_images(), path),  # pyright: ignore
    )


def test_channels_that_cannot_be_parted_are_refused() -> None:
    with pytest.raises(ValueError, match="multiple of 3"):
        build_supernet(Pools.initial(1, (Skip(),)), 8, 3, 5, partial_channels=3)
