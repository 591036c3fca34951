"""The step of MDENAS: how accuracies move probabilities, and that paths are drawn by these."""

from collections import Counter
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import prnas
from prnas.nets.supernet import Supernet
from prnas.searching.steps.multinomial import _checked, _drawn, transferred
from prnas.space.operations import Conv, Skip
from prnas.space.pools import Pools
from tests.support.settings import small_config

METHOD = {"relaxation": "multinomial", "step": "multinomial"}


def double_loop(p: list[float], n: list[float], accuracy: list[float], rate: float) -> list[float]:
    """The authors' rule, word by word."""
    p = list(p)
    for i in range(len(p)):
        for j in range(i + 1, len(p)):
            if n[i] >= n[j] and accuracy[i] < accuracy[j]:
                if p[i] > rate:
                    p[i] -= rate
                    p[j] += rate
                else:
                    p[j] += p[i]
                    p[i] = 0.0
            if n[i] <= n[j] and accuracy[i] > accuracy[j]:
                if p[j] > rate:
                    p[j] -= rate
                    p[i] += rate
                else:
                    p[i] += p[j]
                    p[j] = 0.0
    return p


@st.composite
def edges(draw: st.DrawFn) -> tuple[list[float], list[float], list[float]]:
    size = draw(st.integers(1, 7))
    shares = draw(st.lists(st.floats(0.0, 1.0), min_size=size, max_size=size))
    total = sum(shares)
    p = [one / total for one in shares] if total else [1 / size] * size
    counts = draw(st.lists(st.integers(0, 3).map(float), min_size=size, max_size=size))
    accuracies = draw(st.lists(st.sampled_from([0.0, 0.25, 0.5]), min_size=size, max_size=size))
    return p, counts, accuracies


@given(edges(), st.sampled_from([0.01, 0.2]))
def test_probabilities_move_as_in_a_double_loop(
    edge: tuple[list[float], list[float], list[float]], rate: float
) -> None:
    found = transferred(*edge, rate)
    assert found == double_loop(*edge, rate)
    assert sum(found) == pytest.approx(1)
    assert min(found) >= 0


def test_the_better_and_less_trained_of_two_gains() -> None:
    assert transferred([0.5, 0.5], [1, 2], [0.6, 0.4], 0.01) == pytest.approx([0.51, 0.49])
    assert transferred([0.5, 0.5], [2, 1], [0.6, 0.4], 0.01) == [0.5, 0.5]  # trained more often
    assert transferred([0.5, 0.5], [2, 2], [0.4, 0.6], 0.01) == pytest.approx([0.49, 0.51])
    assert transferred([0.5, 0.5], [1, 2], [0.5, 0.5], 0.01) == [0.5, 0.5]
    assert transferred([0.996, 0.004], [1, 1], [0.6, 0.4], 0.01) == [1.0, 0.0]


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(any), st.floats(0, 1, exclude_max=True)
)
def test_only_what_has_a_probability_is_drawn(p: list[float], point: float) -> None:
    assert p[_drawn(p, point)] > 0


def test_paths_are_drawn_by_their_probabilities() -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(4000, dtype=torch.float64, generator=generator).tolist()
    counts = Counter(_drawn([0.2, 0.0, 0.5, 0.3], point) for point in points)
    expected = {0: 800, 2: 2000, 3: 1200}
    assert counts.keys() == expected.keys()
    assert sum((counts[i] - n) ** 2 / n for i, n in expected.items()) < 9.21  # 2 degrees: 1 %


def test_a_search_trains_one_path_a_step_and_moves_probabilities(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[object] = []
    real = Supernet.forward

    def watched(self: Supernet, images: torch.Tensor, *rest: object) -> torch.Tensor:
        computed.append(rest[1] if len(rest) > 1 else None)
        return real(self, images, *rest)  # pyright: ignore

    monkeypatch.setattr(Supernet, "forward", watched)
    cycle = {"epochs": 3, "grace_epochs": 1, "morphisms": 0, "candidates": 3}
    last = {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1}
    config = small_config(
        images,
        schedule={"cycles": [cycle, last]},
        architecture=METHOD,
        evidence={"measure": "none"},
    )
    found = prnas.search(config)
    assert all(active is not None for active in computed)
    for cells in computed:
        assert isinstance(cells, dict)
        assert all(len(edge) == 1 for cell in cells.values() for edge in cell)
    grace, *others = found.epochs
    assert "architecture" not in grace.scores
    assert all(0 <= one.scores["architecture"].accuracy <= 1 for one in others)
    even, later = [cycle.architecture_weights for cycle in found.cycles]
    for record in (even, later):
        edges = [edge for cell in record.values() for edge in cell]
        assert all(sum(edge) == pytest.approx(1, abs=1e-5) for edge in edges)
        assert any(len(set(edge)) > 1 for edge in edges)


def test_numbers_that_do_not_fit_are_refused() -> None:
    pools = Pools.initial(1, (Skip(), Conv(3)))
    good = {role: [[1.0, 2.0]] * 2 for role in pools.roles}
    assert _checked(good, pools) == good
    for bad in ({**good, "normal": [[1.0]] * 2}, {**good, "reduction": [[1.0, 2.0]]}):
        with pytest.raises(ValueError, match="one for each candidate"):
            _checked(bad, pools)
