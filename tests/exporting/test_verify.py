"""What counts as the same logits."""

import pytest
import torch
from torch import Tensor

from prnas.exporting.verify import BATCHES, Question, compare, questions
from prnas.io.errors import UserError
from tests.support.small_models import card, trained


def question(logits: list[float], rounding: float) -> Question:
    images = torch.zeros(1, 1, 8, 8)
    return Question(images, images, torch.tensor([logits]), rounding)


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
    asked = question(logits, rounding)

    def answer(_: Question) -> Tensor:
        return asked.logits + torch.tensor([[difference, 0.0]])

    if passes:
        found = compare([asked], answer, "it")
        assert found.difference == pytest.approx(difference, rel=0.02)
        assert (found.logit, found.rounding) == (-min(logits), rounding)
    else:
        with pytest.raises(UserError, match="the check failed, nothing was written"):
            compare([asked], answer, "it")


def test_the_worst_batch_counts() -> None:
    asked = [question([1.0], 0.0), question([0.5], 1e-7)]
    offsets = iter([0.0, 1e-6])
    found = compare(asked, lambda one: one.logits + next(offsets), "it")
    assert found.difference == pytest.approx(1e-6, rel=0.1)
    assert (found.logit, found.rounding) == (1.0, 1e-7)


def test_shapes_must_agree() -> None:
    with pytest.raises(UserError, match=r"shape \(1, 1\), not \(1, 2\)"):
        compare([question([1.0, 1.0], 0.0)], lambda one: one.logits[:, :1], "it")


def test_questions_are_those_of_the_model() -> None:
    model = trained(card())
    asked = questions(model)
    assert tuple(len(one.pixels) for one in asked) == BATCHES
    for one in asked:
        assert 0 <= one.pixels.min() < one.pixels.max() <= 1
        with torch.no_grad():
            assert torch.equal(model.network(one.inputs(False)), one.logits)
            assert torch.equal(model(one.inputs(True)), one.logits)
        assert 0 < one.rounding < 1e-5
    assert next(model.parameters()).dtype == torch.float32
