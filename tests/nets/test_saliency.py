"""Saliencies: what the gradient of the mixing weights foretells of removals."""

import copy

import pytest
import torch
from torch.nn import functional as F

from prnas.config.choices import Execution
from prnas.nets.relaxations import Relaxation
from prnas.nets.removal import pass_costs, scores_without
from prnas.nets.saliency import saliencies
from prnas.space.genotype import ROLES
from prnas.space.operations import Zero
from tests.support.supernets import LABELS, relative, supernet_of

STEP = 1e-7  # so small that hardly a ReLU changes its mind


def some_images() -> torch.Tensor:
    return torch.randn(6, 3, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


class Scaled(Relaxation):
    """Softmax times factors of one for each candidate, which have gradients."""

    def mix(self, role, weights, generator):  # pyright: ignore
        return [
            edge.softmax(0) * factor
            for edge, factor in zip(weights, self.factors[role], strict=True)  # pyright: ignore
        ]


@pytest.mark.parametrize("execution", ["fused", "plain"])
def test_it_is_the_gradient_by_the_mixing_weight_times_the_weight(execution: Execution) -> None:
    supernet = supernet_of(1, execution)
    supernet.set_skip_dropout(0.4)  # must not matter
    images = some_images()
    state = copy.deepcopy(supernet.state_dict())
    found = saliencies(supernet, images, LABELS)
    after = supernet.state_dict()
    assert all(torch.equal(state[name], after[name]) for name in state)
    assert supernet.training
    assert all(weight.grad is None for weight in supernet.parameters())
    assert all(weight.requires_grad for weight in supernet.parameters())
    # The derivative by a factor of one is the derivative by the weight times the weight.
    twin = copy.deepcopy(supernet).train()
    twin.set_skip_dropout(0)
    twin.relaxation = Scaled(supernet.relaxation.settings)
    twin.relaxation.factors = {  # pyright: ignore
        role: [torch.ones_like(edge).requires_grad_() for edge in edges]
        for role, edges in supernet.mixing().items()
    }
    factors = twin.relaxation.factors  # pyright: ignore
    F.cross_entropy(twin(images), LABELS).backward()
    for role in ROLES:
        for edge, factor in zip(found[role], factors[role], strict=True):
            gradient = torch.zeros_like(edge) if factor.grad is None else factor.grad
            assert relative(edge, -gradient) < 1e-10


@pytest.mark.parametrize("renormalise", [False, True])
def test_a_small_part_of_a_removal_is_as_foretold(renormalise: bool) -> None:
    """The rise of the loss when a candidate's weight falls a little, its others as they must."""
    supernet = supernet_of(4, "plain")
    images = some_images()
    found = saliencies(supernet, images, LABELS, renormalise=renormalise)
    mixing = {role: [edge.detach() for edge in supernet.mixing()[role]] for role in ROLES}

    class Fixed(Relaxation):
        def mix(self, role, weights, generator):  # pyright: ignore
            return changed[role]

    supernet.relaxation = Fixed(supernet.relaxation.settings)
    for role in ROLES:
        edge = max(range(len(mixing[role])), key=lambda i, role=role: len(mixing[role][i]))
        weights = mixing[role][edge]
        for index in range(min(3, len(weights))):
            losses: list[float] = []
            for part in (STEP, -STEP):
                moved = weights.clone()
                moved[index] *= 1 - part
                if renormalise and len(weights) > 1:
                    rest = weights.sum() - weights[index]
                    others = torch.arange(len(weights)) != index
                    moved[others] *= 1 + part * weights[index] / rest
                changed = {one: list(mixing[one]) for one in ROLES}
                changed[role][edge] = moved
                losses.append(float(scores_without(supernet, images, LABELS, [()]).loss.mean()))
            slope = (losses[0] - losses[1]) / (2 * STEP)
            assert float(found[role][edge][index]) == pytest.approx(slope, rel=1e-4, abs=1e-8)


def test_zero_is_worth_nothing() -> None:
    supernet = supernet_of(2, "fused")
    found = saliencies(supernet, some_images(), LABELS)
    for role in ROLES:
        for pool, edge in zip(supernet.pools.cell(role).edges, found[role], strict=True):
            assert len(edge) == len(pool.candidates)
            for op, value in zip(pool.candidates, edge.tolist(), strict=True):
                assert value == 0 or not isinstance(op, Zero)


def test_passes_cost_less_the_later_they_branch_off() -> None:
    supernet = supernet_of(5, "fused")
    costs = pass_costs(supernet, (8, 8))
    roles = [cell.plan.role for cell in supernet.search_cells]
    assert roles == ["normal", "reduction", "reduction", "normal"]
    assert costs.overhead > 0
    for role in ROLES:
        shares = costs.shares[role]
        assert len(shares) == len(supernet.pools.cell(role).edges)
        assert shares == sorted(shares, reverse=True)
    assert costs.shares["normal"][0] == 1.0  # from the first node on, it is a whole pass
    assert costs.shares["reduction"][0] < 1.0
