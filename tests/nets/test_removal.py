"""Scores of a supernet without some of its candidates."""

import copy
from random import Random
from typing import Literal

import pytest
import torch
from torch.nn import functional as F

from prnas.config.choices import Execution
from prnas.nets.removal import CandidateIndex, ImageScores, scores_without
from prnas.nets.search_cell import ActiveCell
from prnas.space.genotype import ROLES, Role
from prnas.space.pools import Pools
from tests.support.supernets import (
    LABELS,
    OnlyActive,
    plain_logits,
    plain_of,
    relative,
    supernet_of,
)


class Renormalised(OnlyActive):
    """Active mixing weights that sum up to one; nothing where there are none."""

    def mix(self, role, weights, generator):  # pyright: ignore
        mixing = super().mix(role, weights, generator)
        return [edge / edge.sum() if edge.sum() > 0 else edge for edge in mixing]


def all_candidates(pools: Pools) -> list[CandidateIndex]:
    return [
        CandidateIndex(role, edge, index)
        for role in ROLES
        for edge, pool in enumerate(pools.cell(role).edges)
        for index in range(len(pool.candidates))
    ]


WAYS: tuple[Execution, ...] = ("fused", "plain")


@pytest.mark.parametrize("statistics", ["batch", "running"])
@pytest.mark.parametrize("renormalise", [False, True])
def test_scores_are_those_of_the_textbook_with_zero_weights_there(
    statistics: Literal["batch", "running"], renormalise: bool
) -> None:
    supernet = supernet_of(1)
    supernet.set_skip_dropout(0.4)  # must not matter
    images = torch.randn(6, 3, 8, 8, dtype=torch.float64)
    candidates = all_candidates(supernet.pools)
    generator = Random(2)
    removals = [frozenset(generator.sample(candidates, number)) for number in (0, 1, 1, 1, 2, 8)]
    # All candidates of an edge, and those of a reduction cell only.
    removals.append(frozenset(one for one in candidates if one.role == "normal" and one.edge == 2))
    removals.append(
        frozenset(one for one in candidates if one.role == "reduction" and one.index == 0)
    )
    state = copy.deepcopy(supernet.state_dict())
    found: list[ImageScores] = []
    for execution in WAYS:
        supernet.execution = execution
        found.append(
            scores_without(
                supernet, images, LABELS, removals, renormalise=renormalise, statistics=statistics
            )
        )
        after = supernet.state_dict()
        assert all(torch.equal(state[name], after[name]) for name in state)
        assert supernet.training
        assert supernet.search_cells[0].skip_dropout == 0.4
    twin = plain_of(supernet).train(statistics == "batch")
    for row, removed in enumerate(removals):
        active: dict[Role, ActiveCell] = {
            role: tuple(
                tuple(
                    index
                    for index in range(len(pool.candidates))
                    if CandidateIndex(role, edge, index) not in removed
                )
                for edge, pool in enumerate(supernet.pools.cell(role).edges)
            )
            for role in ROLES
        }
        relaxation = (Renormalised if renormalise else OnlyActive)(active)
        with torch.no_grad():
            logits = plain_logits(twin, relaxation, images)
        expected = F.cross_entropy(logits, LABELS, reduction="none")
        for scores in found:
            assert relative(scores.loss[row], expected) < 1e-10
            assert torch.equal(scores.correct[row], logits.argmax(1) == LABELS)


def test_what_removals_share_is_computed_once() -> None:
    supernet = supernet_of(3, "fused")
    calls: list[str] = []
    supernet.stem.register_forward_hook(lambda *_: calls.append("stem"))
    for index, cell in enumerate(supernet.search_cells):
        add = cell.add_nodes

        def count(states, *rest, index=index, add=add):
            calls.append(f"{index} from state {len(states)}")
            add(states, *rest)

        cell.add_nodes = count  # pyright: ignore
    roles = [cell.plan.role for cell in supernet.search_cells]
    first = roles.index("reduction")
    images = torch.randn(6, 3, 8, 8, dtype=torch.float64)
    last_edge = len(supernet.pools.cell("reduction").edges) - 1
    removal = {CandidateIndex("reduction", last_edge, 0)}
    scores_without(supernet, images, LABELS, [set(), removal, removal])
    again = [f"{first} from state 3", *(f"{index} from state 2" for index in range(first + 1, 4))]
    assert calls == ["stem", *(f"{index} from state 2" for index in range(4)), *again, *again]
