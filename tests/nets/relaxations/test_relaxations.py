"""What is special about each relaxation."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from prnas.config.architecture import RELAXATIONS, Anneal, ArchitectureConfig
from prnas.nets import relaxations
from prnas.nets.relaxations import CycleProgress, Relaxation, make_relaxation
from prnas.nets.relaxations.base import nonzero
from prnas.nets.supernet import Supernet, build_supernet
from prnas.space.derivation import derive
from prnas.space.operations import Conv, Pool, Skip, Zero
from prnas.space.pools import Pools
from prnas.space.shape import DARTS, NASBENCH201, CellShape, Role

POOL = (Zero(), Pool("max", 3), Skip(), Conv(3))


def relaxation(name: str, **settings: Any) -> Relaxation:
    return make_relaxation(ArchitectureConfig(relaxation=name, **settings))


def supernet_of(
    name: str, nodes: int = 2, shape: CellShape = DARTS, seed: int = 0, **settings: Any
) -> Supernet:
    pools = Pools.initial(nodes, POOL, shape)
    output = "last" if shape is NASBENCH201 else "concat"
    supernet = build_supernet(
        pools, 4, 3, 3, output=output, relaxation=relaxation(name, **settings)
    ).double()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in supernet.architecture_parameters():
            weights.uniform_(0.05, 0.95, generator=generator)
    return supernet.train()


def batch(number: int = 4) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    images = torch.randn(number, 3, 8, 8, dtype=torch.float64, generator=generator)
    return images, torch.arange(number) % 3


def mixed(
    one: Relaxation, weights: Sequence[Tensor], generator: torch.Generator | None = None
) -> list[Tensor]:
    return one.mix("normal", weights, generator)


EDGES = st.lists(st.floats(-4, 4, width=32), min_size=1, max_size=7)


# Progress and schedules


def test_after_grace_goes_from_the_first_such_epoch_to_the_last() -> None:
    ways = [CycleProgress(epoch, 6, 2).after_grace for epoch in range(6)]
    assert ways == [0, 0, 0, 1 / 3, 2 / 3, 1]
    assert CycleProgress(0, 1, 0).after_grace == 1  # the only epoch is the last
    assert [CycleProgress(epoch, 3, 2).after_grace for epoch in range(3)] == [0, 0, 1]
    assert CycleProgress(1, 2, 2).after_grace == 0  # there is none


@given(st.floats(0.01, 100), st.floats(0.01, 100), st.floats(0, 1))
def test_an_annealed_value_stays_between_its_ends(start: float, end: float, way: float) -> None:
    for shape in ("linear", "exponential"):
        anneal = Anneal(start=start, end=end, shape=shape)
        assert (anneal.at(0), anneal.at(1)) == (start, end)
        low, high = sorted((start, end))
        assert low * (1 - 1e-12) <= anneal.at(way) <= high * (1 + 1e-12)
    assert Anneal(start=4, end=1).at(0.5) == 2.5
    assert Anneal(start=4, end=1, shape="exponential").at(0.5) == pytest.approx(2)


def test_asaps_temperature_falls_by_a_twentieth_in_every_epoch() -> None:
    anneal = Anneal(start=0.957979, end=0.129592, shape="exponential")
    for epoch in range(10, 50):
        found = CycleProgress(epoch, 50, 10).annealed(anneal)
        assert found == pytest.approx(1.6 * 0.95**epoch, rel=1e-4)


# SNAS


def concrete(temperature: float) -> Relaxation:
    return relaxation("concrete", temperature={"start": temperature, "end": temperature})


def test_cold_samples_are_one_hot_with_the_softmaxs_frequencies() -> None:
    one, number = concrete(1e-4), 4000
    weights = torch.tensor([0.3, -0.6, 1.1, 0.0])
    expected = weights.double().softmax(0) * number
    generator = torch.Generator().manual_seed(0)
    samples = torch.stack([mixed(one, [weights], generator)[0] for _ in range(number)])
    assert (samples.max(dim=1).values > 1 - 1e-6).float().mean() > 0.99
    counts = samples.argmax(1).bincount(minlength=4)
    statistic = ((counts - expected) ** 2 / expected).sum().item()
    assert statistic < 11.34  # chi squared, 3 degrees of freedom: 1 %


def test_hot_samples_are_even() -> None:
    (found,) = mixed(concrete(1000), [torch.tensor([2.0, -2.0, 0.0])], torch.Generator())
    assert torch.allclose(found, torch.full((3,), 1 / 3), atol=0.01)


def test_a_sample_is_the_concrete_distributions() -> None:
    weights = [torch.tensor([0.5, -1.0]), torch.tensor([0.1, 0.2, 0.3])]
    found = mixed(concrete(0.7), weights, torch.Generator().manual_seed(4))
    uniform = torch.rand(5, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    gumbel = -torch.log(-torch.log(uniform))
    first, second = gumbel.float().split([2, 3])
    assert torch.allclose(found[0], ((weights[0] + first) / 0.7).softmax(0))
    assert torch.allclose(found[1], ((weights[1] + second) / 0.7).softmax(0))


def test_what_is_not_trained_is_not_sampled() -> None:
    one, weights = concrete(0.1), [torch.tensor([0.5, -1.0])]
    expected = weights[0].softmax(0)
    assert torch.equal(mixed(one, weights, None)[0], expected)
    assert torch.equal(mixed(one.eval(), weights, torch.Generator())[0], expected)


def test_a_pass_for_both_parts_has_the_gradients_of_two_passes() -> None:
    supernet = supernet_of("concrete", temperature={"start": 0.5, "end": 0.5})
    images, labels = batch()

    def gradients(*parts: Any) -> dict[str, Tensor]:
        supernet.zero_grad()
        with supernet.training_only(*parts):
            logits = supernet(images, torch.Generator().manual_seed(2))
            F.cross_entropy(logits, labels).backward()
        named = supernet.named_parameters()
        return {name: one.grad.clone() for name, one in named if one.grad is not None}

    both = gradients("weights", "architecture")
    apart = {**gradients("weights"), **gradients("architecture")}
    assert both.keys() == apart.keys() == dict(supernet.named_parameters()).keys()
    for name, gradient in both.items():
        assert torch.allclose(gradient, apart[name], rtol=1e-9, atol=1e-12), name


# sharpDARTS


@given(EDGES)
def test_the_best_weight_of_max_w_is_one_exactly(values: list[float]) -> None:
    weights = torch.tensor(values, requires_grad=True)
    (found,) = mixed(relaxation("max-w"), [weights])
    assert found.max().item() == 1.0
    p = weights.softmax(0)
    assert torch.allclose(found, 1 - p.max() + p)
    order = weights.argsort(stable=True)
    assert (found[order].diff() >= 0).all()


def test_max_w_of_equals_is_one_for_all_and_its_gradient_passes_the_maximum() -> None:
    (found,) = mixed(relaxation("max-w"), [torch.full((5,), 0.7)])
    assert found.tolist() == [1.0] * 5
    weights = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    towards = torch.tensor([1.0, 2.0, -3.0], dtype=torch.float64)
    (found,) = mixed(relaxation("max-w"), [weights])
    (gradient,) = torch.autograd.grad((found * towards).sum(), weights)
    p = weights.detach().softmax(0)
    jacobian = torch.diag(p) - torch.outer(p, p)
    expected = jacobian @ towards - towards.sum() * jacobian[2]
    assert torch.allclose(gradient, expected)


# ASAP


def test_a_threshold_of_zero_at_temperature_one_is_the_softmax_to_the_bit() -> None:
    plain, ours = supernet_of("softmax"), supernet_of("threshold", threshold=0.0)
    images, labels = batch()
    results: list[list[Tensor]] = []
    for supernet in (plain, ours):
        supernet.relaxation.progress = CycleProgress(3, 9, 1)
        supernet.relaxation.end_epoch(supernet.all_architecture_weights())
        logits = supernet(images)
        F.cross_entropy(logits, labels).backward()
        gradients = [weight.grad for weight in supernet.parameters()]
        results.append([logits, *(one for one in gradients if one is not None)])
    assert len(results[0]) == len(results[1]) > 20
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


def test_what_falls_below_the_threshold_is_not_computed_any_more() -> None:
    supernet = supernet_of("threshold", threshold=0.4)
    with torch.no_grad():
        supernet.architecture_weights("normal")[0].copy_(torch.tensor([0.0, 0.0, 3.0, -3.0]))
    one = supernet.relaxation
    weights = supernet.all_architecture_weights()
    one.progress = CycleProgress(0, 4, 1)
    one.end_epoch(weights)
    assert one.active("normal", weights["normal"]) is None  # a grace epoch
    one.progress = CycleProgress(1, 4, 1)
    with torch.no_grad():
        one.end_epoch(weights)
    called: list[int] = []
    for cell in supernet.search_cells:
        if cell.plan.role == "normal":
            cell.operations[0][3].register_forward_hook(lambda *_: called.append(1))  # pyright: ignore
    for execution in ("fused", "plain"):
        supernet.execution = execution
        supernet.zero_grad()
        images, labels = batch()
        F.cross_entropy(supernet(images), labels).backward()
        first = supernet.mixing()["normal"][0]
        assert first.nonzero().flatten().tolist() == [2]  # 0.04 < 0.4 / 4
        assert first[2].item() == 1.0
        gradient = supernet.architecture_weights("normal")[0].grad
        assert gradient is not None
        assert gradient.tolist() == [0.0] * 4
        for cell in supernet.search_cells:
            gone = cell.operations[0][3].parameters()  # pyright: ignore
            assert all((one.grad is None) == (cell.plan.role == "normal") for one in gone)
    assert not called
    active = one.active("normal", supernet.mixing()["normal"])
    assert active is not None
    assert active[0] == (2,)
    judged = one.judged("normal", weights["normal"])[0].tolist()
    scores = RELAXATIONS["threshold"](judged)
    expected = weights["normal"][0].double().softmax(0).tolist()
    assert scores[2] == pytest.approx(expected[2])  # over all candidates, at temperature 1
    assert max(scores[:2] + scores[3:]) < 1e-20
    supernet.reset_architecture()
    assert one.active("normal", weights["normal"]) is None


def test_the_last_candidate_of_an_edge_stays() -> None:
    supernet = supernet_of("threshold", threshold=0.999)
    one, weights = supernet.relaxation, supernet.all_architecture_weights()
    one.progress = CycleProgress(1, 2, 0)
    for _ in range(3):
        with torch.no_grad():
            one.end_epoch(weights)
    for edge, mixing in zip(weights["normal"], mixed(one, weights["normal"]), strict=True):
        assert mixing.argmax() == edge.argmax()
        assert mixing.sum().item() == pytest.approx(1)


def test_a_cold_softmax_is_the_best_candidate() -> None:
    supernet = supernet_of("threshold", temperature={"start": 1e-4, "end": 1e-4})
    for edge, mixing in zip(*(s["normal"] for s in _weights_and_mixing(supernet)), strict=True):
        best = F.one_hot(edge.argmax(), len(edge)).double()
        assert torch.allclose(mixing, best, rtol=0, atol=1e-9)


def _weights_and_mixing(
    supernet: Supernet,
) -> tuple[dict[Role, list[Any]], dict[Role, list[Tensor]]]:
    return dict(supernet.all_architecture_weights()), supernet.mixing()


# NASP


@pytest.mark.parametrize(("shape", "nodes"), [(DARTS, 3), (NASBENCH201, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_a_weight_pass_is_the_derived_genotypes(shape: CellShape, nodes: int, seed: int) -> None:
    supernet = supernet_of("proximal", nodes, shape, seed)
    weights: dict[Role, list[list[float]]] = {
        role: [edge.tolist() for edge in edges]
        for role, edges in supernet.all_architecture_weights().items()
    }
    scores = RELAXATIONS["proximal"]
    genotype, _ = derive(supernet.pools, weights, Random(0), scores=scores)
    images, _ = batch()
    active = {
        role: tuple(
            tuple(
                index
                for index, op in enumerate(pool.candidates)
                if any(
                    (state, edge.input, edge.op) == (*position, op)
                    for state, edge in genotype.cell(role).edges
                )
            )
            for position, pool in zip(cell.positions, cell.edges, strict=True)
        )
        for role in supernet.pools.roles
        for cell in (supernet.pools.cell(role),)
    }
    ones: dict[Role, list[Tensor]] = {
        role: [torch.ones_like(edge) for edge in edges]
        for role, edges in supernet.all_architecture_weights().items()
    }
    expected = supernet(images, None, active, ones)
    with supernet.training_only("weights"):
        found = supernet(images)
        assert {role: nonzero(edges) for role, edges in supernet.mixed.items()} == active
    assert torch.equal(found, expected)


def test_the_architectures_gradient_is_taken_at_the_discrete_point() -> None:
    """Also for candidates, and for whole edges, that are not chosen."""
    supernet = supernet_of("proximal", nodes=3)
    images, labels = batch()
    with supernet.training_only("architecture"):
        F.cross_entropy(supernet(images), labels).backward()
    point = supernet.mixing()

    def loss(role: Role, edge: int, index: int, change: float) -> float:
        moved: dict[Role, list[Tensor]] = {
            one: [weights.clone() for weights in edges] for one, edges in point.items()
        }
        moved[role][edge][index] += change
        with torch.no_grad():
            return F.cross_entropy(supernet(images, mixing=moved), labels).item()

    step, compared, idle = 1e-5, 0, 0
    for role, edges in point.items():
        for edge, weights in enumerate(edges):
            gradient = supernet.architecture_weights(role)[edge].grad
            assert gradient is not None
            for index in (1, 3):
                slope = (loss(role, edge, index, step) - loss(role, edge, index, -step)) / 2 / step
                assert gradient[index].item() == pytest.approx(slope, rel=1e-4, abs=1e-7)
                compared += 1
                idle += not weights.any() and abs(slope) > 1e-4
    assert compared == 36
    assert idle  # edges that their nodes do not keep have gradients as well


def test_proximal_weights_begin_in_the_middle_and_stay_within_bounds() -> None:
    supernet = build_supernet(Pools.initial(1, POOL), 4, 3, 3, relaxation=relaxation("proximal"))
    weights = supernet.architecture_weights("normal")
    assert all(edge.tolist() == [0.5] * 4 for edge in weights)
    with torch.no_grad():
        weights[0].copy_(torch.tensor([-0.5, 0.25, 1.5, 1.0]))
    supernet.project()
    assert weights[0].tolist() == [0.0, 0.25, 1.0, 1.0]


# MDENAS


def test_multinomial_weights_begin_even() -> None:
    one = relaxation("multinomial", step="multinomial")
    assert one.initial(8, torch.zeros(())).tolist() == [0.125] * 8
    weights = [torch.tensor([0.25, 0.75])]
    assert mixed(one, weights)[0] is weights[0]


def test_a_relaxation_judges_as_configs_say() -> None:
    for name, kind in relaxations._CLASSES.items():
        assert kind.scores is RELAXATIONS[name], name
