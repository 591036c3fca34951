"""What counts as the same logits."""

import pytest
import torch
from torch import Tensor

from prnas.exporting.verify import BATCHES, ReferenceBatch, compare, reference_batches
from prnas.io.errors import UserError
from tests.support.small_models import card, trained


def batch(logits: list[float], rounding: float) -> ReferenceBatch:
    images = torch.zeros(1, 1, 8, 8)
    return ReferenceBatch(images, images, torch.tensor([logits]), rounding)


@pytest.mark.parametrize(
    ("logits", "rounding", "difference", "passes"),
    [
        ([0.5, -0.5], 0.0, 0.9e-5, True),
        ([0.5, -0.5], 0.0, 1.1e-5, False),
        ([0.5, -0.5], 1e-5, 3.9e-5, True),  # rounding allows four times itself
        ([0.5, -0.5], 1e-5, 4.1e-5, False),
        ([0.5, -20.0], 1e-9, 1.9e-4, True),  # 1e-5 of the largest logit
        ([0.5, -20.0], 1e-9, 2.1e-4, False),
        ([0.5, -0.5], 0.0, float("nan"), False),
    ],
)
def test_how_much_may_differ(
    logits: list[float], rounding: float, difference: float, passes: bool
) -> None:
    batches = batch(logits, rounding)

    def answer(_: ReferenceBatch) -> Tensor:
        return batches.logits + torch.tensor([[difference, 0.0]])

    if passes:
        found = compare([batches], answer, "it")
        assert found.difference == pytest.approx(difference, rel=0.02)
        assert (found.logit, found.rounding) == (-min(logits), rounding)
    else:
        with pytest.raises(UserError, match="the check failed, nothing was written"):
            compare([batches], answer, "it")


def test_the_worst_batch_counts() -> None:
    batches = [batch([1.0], 0.0), batch([0.5], 1e-7)]
    offsets = iter([0.0, 1e-6])
    found = compare(batches, lambda one: one.logits + next(offsets), "it")
    assert found.difference == pytest.approx(1e-6, rel=0.1)
    assert (found.logit, found.rounding) == (1.0, 1e-7)


def test_shapes_must_agree() -> None:
    with pytest.raises(UserError, match=r"shape \(1, 1\), not \(1, 2\)"):
        compare([batch([1.0, 1.0], 0.0)], lambda one: one.logits[:, :1], "it")


def test_batches_are_those_of_the_model() -> None:
    model = trained(card())
    batches = reference_batches(model)
    assert tuple(len(one.pixels) for one in batches) == BATCHES
    for one in batches:
        assert 0 <= one.pixels.min() < one.pixels.max() <= 1
        with torch.no_grad():
            assert torch.equal(model.network(one.inputs(False)), one.logits)
            assert torch.equal(model(one.inputs(True)), one.logits)
        assert 0 < one.rounding < 1e-5
    assert next(model.parameters()).dtype == torch.float32
