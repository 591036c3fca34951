"""What a terminal says of evaluations: the best so far, and the population."""

from collections.abc import Sequence

import pytest

from prnas.config.search import SearchConfig
from prnas.report.evaluations import Evaluations as Columns
from prnas.runs.named import config_of
from prnas.runs.records import EvaluationRecord
from prnas.terminal.lines import budget_used
from prnas.terminal.searcher_lines import Evaluations, supernet_budget


def records(
    scores: Sequence[float],
    bests: Sequence[float],
    shares: Sequence[float | None] = (),
    first: int = 1,
) -> list[EvaluationRecord]:
    given = shares or [None] * len(scores)
    return [
        EvaluationRecord(
            number=number, genotype={}, score=score, best=best, share=share, images=1, seconds=0.0
        )
        for number, (score, best, share) in enumerate(zip(scores, bests, given, strict=True), first)
    ]


def shown(method: str, *overrides: str) -> Evaluations:
    return Evaluations(config_of("random", [f"searcher.method={method}", *overrides], SearchConfig))


def test_more_of_a_training_is_better_than_any_of_less() -> None:
    """As in successive halving, where a cell may look best after a little."""
    asked = records([0.9, 0.95, 0.4, 0.3], [0.9, 0.95, 0.4, 0.4], [0.5, 0.5, None, None])
    terminal, columns = shown("random"), Columns({}, 10, "last")
    assert [terminal.add(record) for record in asked] == [True, True, True, False]
    assert terminal.in_a_line() == "best 40.00 % (evaluation 3)  last 30.00 %"
    for record in asked:
        columns.add(record)
    assert (columns.best, columns.best_number) == (0.4, 3)


@pytest.mark.parametrize("stage", ["search", "repeat"])
def test_a_resumed_search_knows_the_best_of_before(stage: str) -> None:
    (record,) = records([0.5], [0.7], first=12)
    terminal = shown("evolution")
    assert not terminal.add(record.model_copy(update={"stage": stage}))
    assert terminal.in_a_line() == "best 70.00 %  last 50.00 %", "whom it has is not known yet"


def test_the_population_is_shown() -> None:
    scores = [0.5, 0.9, 0.6, 0.7]
    terminal = shown("evolution", "searcher.evolution.population=2")
    lines: list[str] = []
    for record in records(scores, [0.5, 0.9, 0.9, 0.9]):
        terminal.add(record)
        lines.append(terminal.in_a_line())
    assert (
        lines[0] == "best 50.00 % (evaluation 1)  last 50.00 %  population of 1: 50.00 to 50.00 %"
    )
    assert lines[3].endswith("population of 2: 60.00 to 70.00 %"), "the oldest, the best, is dead"


def test_a_budget_with_a_supernet_is_said_and_its_use_shown() -> None:
    config = config_of("random-shared-small", ["searcher.budget.steps=5000"], SearchConfig)
    assert supernet_budget(config) == (
        "200 evaluations, at most 5,000 steps with the supernet's training, which may take 90 % of "
        "it"
    )
    assert supernet_budget(config_of("random-shared-small", [], SearchConfig)) is None
    assert supernet_budget(config_of("random", ["searcher.budget.steps=5"], SearchConfig)) is None
    assert budget_used(None) == ""
    assert budget_used(0.634) == "  63 % of the budget"
    evaluations = Evaluations(config)
    evaluations.add(records([0.5], [0.5])[0].model_copy(update={"used": 0.5}))
    assert evaluations.position == "evaluation 1", "how many there will be depends on the training"
