"""The optimizer of runs, where steps leave some weights without a gradient."""

import copy

import pytest
import torch
from torch import nn

from prnas.runs.state import sgd

# The weights that have a gradient, step by step; none has one in all of them.
STEPS = [(0, 1), (1, 2), (2,), (0, 3), (1, 2, 3), (4,)]


def weights_of(seed: int) -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(seed)
    return [nn.Parameter(torch.randn(3, 4, generator=generator).double()) for _ in range(5)]


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_weights_without_a_gradient_stay_and_the_others_follow_as_usual(momentum: float) -> None:
    ours, theirs = weights_of(0), weights_of(0)
    optimizer = sgd(ours, 0.1, momentum, 0.01)
    usual = torch.optim.SGD(theirs, 0.1, momentum, weight_decay=0.01, fused=False, foreach=False)
    for number, active in enumerate(STEPS):
        before = copy.deepcopy(ours)
        momenta = {weight: dict(state) for weight, state in optimizer.state.items()}
        momenta = copy.deepcopy([momenta.get(weight, {}) for weight in ours])
        gradients = weights_of(number + 1)
        for index in active:
            ours[index].grad = gradients[index].detach().clone()
            theirs[index].grad = gradients[index].detach().clone()
        for one in (optimizer, usual):
            one.step()
            one.zero_grad()
        for index, (weight, other) in enumerate(zip(ours, theirs, strict=True)):
            torch.testing.assert_close(weight, other, rtol=1e-14, atol=1e-15)
            assert torch.equal(weight, before[index]) == (index not in active)
            if index not in active:
                now = optimizer.state.get(weight, {})
                assert now.keys() == momenta[index].keys()
                assert all(torch.equal(now[key], momenta[index][key]) for key in now)
