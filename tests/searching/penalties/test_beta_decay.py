"""The regularisation of β-DARTS."""

from pathlib import Path

import torch

from prnas.config.architecture import Anneal
from prnas.nets.relaxations import CycleProgress
from prnas.searching.api import start
from prnas.searching.penalties.beta_decay import beta_loss
from tests.support.settings import small_config
from tests.support.watching import folder_of, last_state

CYCLE = {"epochs": 2, "grace_epochs": 1, "morphisms": 0, "candidates": 1}


def test_its_gradient_is_the_probability_over_the_number_of_edges() -> None:
    edges = [torch.randn(size, dtype=torch.float64).requires_grad_() for size in (3, 5, 2, 4)]
    beta_loss({"normal": edges[:3], "reduction": edges[3:]}).backward()
    for edge in edges:
        assert edge.grad is not None
        assert torch.allclose(edge.grad, edge.detach().softmax(0) / 4, rtol=1e-12)


def test_the_published_course() -> None:
    """λ = 50 e / 100 in the 50 epochs of DARTS' space."""
    anneal = Anneal(start=0, end=24.5)
    for epoch in range(50):
        strength = CycleProgress(epoch, epochs=50).annealed(anneal)
        assert abs(strength - 50 * epoch / 100) < 1e-12


def test_strength_zero_is_darts_to_the_bit_and_more_is_not(images: Path, tmp_path: Path) -> None:
    def folder(name: str, end: float | None) -> Path:
        decay = None if end is None else {"start": 0, "end": end}
        config = small_config(
            images,
            schedule={"cycles": [CYCLE]},
            architecture={"beta_decay": decay},
            evidence={"measure": "none"},
        )
        return folder_of(start(config, runs=tmp_path, name=name))

    def found(name: str, end: float | None) -> dict[str, torch.Tensor]:
        return last_state(folder(name, end))[1]

    darts, zero, strong = found("darts", None), found("zero", 0.0), found("strong", 1000.0)
    assert all(torch.equal(tensor, zero[name]) for name, tensor in darts.items())
    name = "supernet/architecture.normal.0"
    assert not torch.equal(strong[name], darts[name])
