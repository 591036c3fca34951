import csv
import json
from typing import Any

import pytest

from prnas.io.errors import FormatError
from prnas.space import zoo
from prnas.space.nasbench201.cells import genotype_of, index_of_string
from prnas.space.nasbench201.truth import truth_of
from prnas.studies.config import StudyConfig
from prnas.studies.estimate import START_UP, estimate, mean_seconds, seconds_left
from prnas.studies.plan import Plan, make_plan
from prnas.studies.results import StudyResults, conclusions, pooled_deviation, results_of
from prnas.studies.states import JobState
from prnas.studies.statistics import detectable
from prnas.studies.tables import to_csv, to_latex

ROWS = [
    {"name": "s_1", "search": "quick"},
    {"name": "r", "random": "quick"},
    {"name": "c", "cell": "darts-v2"},
]
CELLS = zoo.get("darts-v1")


def plan_of(**changes: Any) -> Plan:
    return make_plan(StudyConfig.from_data({"rows": ROWS, "seeds": 5, **changes}))


PLAN = plan_of()


def states_of(plan: Plan, errors: dict[str, list[float]]) -> dict[int, JobState]:
    """All searches are done; of each row, trainings with these errors, in the order of jobs."""
    left = {name: iter(values) for name, values in errors.items()}
    states: dict[int, JobState] = {}
    for job in plan.jobs:
        state = JobState("done", 1, 60.0, CELLS, validation_error=0.5)
        if job.task == "retrain":
            error = next(left[job.row.name], None)
            state = JobState("ready")
            if error is not None:
                state = JobState("done", 1, 10.0, CELLS, error, None, 1000, 2000)
        states[job.number] = state
    return states


GOOD = [0.010, 0.011, 0.012, 0.013, 0.014]
BAD = [0.030, 0.031, 0.032, 0.033, 0.034]
FAIR = [0.0105, 0.0115, 0.0125, 0.0135, 0.0145]


def results(**errors: list[float]) -> StudyResults:
    given = {"s_1": GOOD, "r": BAD, "c": FAIR, **errors}
    return results_of(PLAN, states_of(PLAN, given))


def test_rows_pairs_and_ranks() -> None:
    known = results()
    assert known.complete
    assert [row.summary.mean for row in known.rows if row.summary] == pytest.approx(
        [0.012, 0.032, 0.0125]
    )
    assert [row.ranks for row in known.rows] == [(1, 2), (3, 3), (1, 2)]
    # The least p-value of five against five, times three and times two.
    assert [pair.p for pair in known.pairs][:2] == pytest.approx([2 / 252, known.pairs[1].p])
    corrected = {(pair.first, pair.second): pair.corrected for pair in known.pairs}
    assert corrected["s_1", "r"] == pytest.approx(6 / 252)
    assert [pair.significant for pair in known.pairs] == [True, False, True]
    assert known.pairs[0].difference == pytest.approx(0.02)


def test_what_may_be_concluded() -> None:
    text = " ".join(conclusions(results()))
    assert "s_1 is better than r, by 2.00 points" in text
    assert "c is better than r, by 1.95 points" in text
    assert "No difference is shown between s_1 and c; there may be one." in text
    assert "With 5 results a row, a difference of" in text


def test_rows_are_tested_against_one_of_them_alone() -> None:
    plan = plan_of(rows=[*ROWS[:2], {**ROWS[2], "seeds": 7}], against="c")
    errors = {"s_1": GOOD, "r": BAD, "c": [*FAIR, 0.0155, 0.0165]}
    known = results_of(plan, states_of(plan, errors))
    assert [(pair.first, pair.second) for pair in known.pairs] == [("s_1", "c"), ("r", "c")]
    # Corrected for two pairs, not for three: the least p-value of five against seven, twice.
    assert known.pairs[1].corrected == pytest.approx(2 / 792)
    assert [row.ranks for row in known.rows] == [None] * 3
    assert plan.study.num_pairs == 2
    assert (plan.fewest_units, plan.units_against) == (5, 7)
    spread = pooled_deviation([row.errors for row in known.rows])
    assert known.detectable == pytest.approx(detectable(5, spread, 0.05 / 2, other=7))
    assert "between s_1 and c" in " ".join(conclusions(known))
    assert "s_1 and r" not in " ".join(conclusions(known))


def test_the_row_to_test_against_must_exist() -> None:
    with pytest.raises(FormatError, match=r"no row is called 's_2'. Did you mean 's_1'"):
        plan_of(against="s_2")


def test_too_few_results_conclude_nothing() -> None:
    few = results(s_1=GOOD[:2], r=BAD[:2], c=FAIR[:1])
    assert [len(row.errors) for row in few.rows] == [2, 2, 1]
    assert few.rows[2].ranks is None
    text = " ".join(conclusions(few))
    assert "is better" not in text
    assert "no test of 1 pairs can be significant" in text
    assert "not all jobs are done" in text
    nothing = results(s_1=[], r=[], c=[])
    assert "Nothing can be concluded" in " ".join(conclusions(nothing))


def test_the_unit_is_the_search_and_only_whole_ones_count() -> None:
    plan = plan_of(rows=ROWS[:1], seeds=2, trainings=2)
    # The trainings come search by search: the second one's last is missing.
    (row,) = results_of(plan, states_of(plan, {"s_1": [0.1, 0.2, 0.5]})).rows
    assert row.errors == pytest.approx([0.15])
    (row,) = results_of(plan, states_of(plan, {"s_1": [0.1, 0.3, 0.5, 0.7]})).rows
    assert row.errors == pytest.approx([0.2, 0.6])
    assert row.summary is not None
    assert row.summary.n == 2, "four trainings of two searches are two results"
    assert row.components is not None
    assert row.components.within == pytest.approx(0.02)
    assert row.components.between == pytest.approx(0.08 - 0.01)


def test_searches_alone_have_the_error_of_their_supernets() -> None:
    plan = plan_of(rows=ROWS[:1], trainings=0)
    known = results_of(plan, states_of(plan, {}))
    assert known.metric == "validation_error"
    assert known.rows[0].errors == [0.5] * 5
    assert known.rows[0].ranks is None
    assert (known.pairs, conclusions(known)) == ((), [])


def test_published_cells_are_compared_with_their_papers() -> None:
    names = ["pr-darts-dl2", "darts-v2", "darts-v1"]
    assert [zoo.entry(name).cifar10_error for name in names] == sorted(
        zoo.entry(name).cifar10_error or (0, None) for name in names
    )
    plan = plan_of(rows=[{"name": name, "cell": name} for name in names], seeds=1)
    known = results_of(
        plan, states_of(plan, {"pr-darts-dl2": [1], "darts-v2": [3], "darts-v1": [2]})
    )
    assert known.agreement is not None
    assert known.agreement.tau == pytest.approx(1 / 3)
    assert results().agreement is None


def test_the_summary_is_json_that_a_page_can_draw() -> None:
    data = json.loads(json.dumps(results().to_json(PLAN)))
    assert (data["format"], data["version"]) == ("prnas-study-summary", 1)
    assert data["jobs"] == {"done": 20, "of": 20}
    first = data["rows"][0]
    assert first["summary"]["n"] == 5
    assert first["units"][3]["folder"] == "s_1/seed-3"
    assert first["units"][3]["trainings"][0]["folder"] == "s_1/seed-3-training-0"
    assert first["units"][3]["genotype"]["format"] == "prnas-genotype"
    assert data["pairs"][0]["significant"] is True


def test_csv_has_a_line_for_each_training() -> None:
    lines = list(csv.DictReader(to_csv(results(c=FAIR[:2])).splitlines()))
    assert len(lines) == 12
    assert lines[1] == {
        "row": "s_1",
        "kind": "search",
        "seed": "1",
        "training": "0",
        "training_seed": "1000",
        "test_error": "0.011",
        "parameters": "1000",
        "macs": "2000",
        "training_seconds": "10.0",
        "search_seconds": "60.0",
        "validation_error": "0.5",
        "true_error": "",
        "folder": "s_1/seed-1-training-0",
    }
    plan = plan_of(rows=ROWS[:1], trainings=0)
    searches = list(csv.DictReader(to_csv(results_of(plan, states_of(plan, {}))).splitlines()))
    assert [line["folder"] for line in searches] == [f"s_1/seed-{seed}" for seed in range(5)]
    assert searches[0]["test_error"] == ""


def test_latex_escapes_names_and_shows_ties() -> None:
    text = to_latex(results())
    assert r"s\_1 & 5 & $1.20 \pm 0.16$ & [" in text
    assert "& 1--2 &" in text
    assert text.count(r"\\") == 4
    assert "-- & --" in to_latex(results(r=[]))


# ---------------------------------------------------------------- how long it takes


def test_the_time_that_is_left_follows_from_jobs_that_are_done() -> None:
    plan = plan_of(rows=ROWS[:1], seeds=4)
    states = states_of(plan, {"s_1": [0.1]})
    of_job = mean_seconds(plan, states)
    search, training = 60 + START_UP, 10 + START_UP
    assert of_job == {("s_1", "search"): search, ("s_1", "retrain"): training}
    assert seconds_left(plan, states, 1, of_job) == pytest.approx(3 * training)
    assert seconds_left(plan, states, 2, of_job) == pytest.approx(2 * training)
    fresh = {job.number: JobState("waiting" if job.needs else "ready") for job in plan.jobs}
    assert seconds_left(plan, fresh, 1, of_job) == pytest.approx(4 * (search + training))
    # However many places there are, a training follows its search.
    assert seconds_left(plan, fresh, 100, of_job) == pytest.approx(search + training)
    assert seconds_left(plan, fresh, 1, {}) is None


def test_only_what_was_never_run_is_measured() -> None:
    states = states_of(PLAN, {"s_1": GOOD, "r": [], "c": FAIR})
    asked: list[Any] = []

    def measure(config: Any) -> float:
        asked.append(config.genotype)
        return 7.0

    known = estimate(PLAN, states, 1, measure)
    assert asked == [PLAN.rows[1].genotype(0)]
    assert known.left == pytest.approx(5 * 7)


def test_cells_are_judged_by_the_table() -> None:
    rows = [
        {"name": "s", "search": "nasbench201-small"},
        {"name": "r", "random": "nasbench201-small", "seeds": 6},
    ]
    plan = plan_of(rows=rows, judge="truth")
    best = genotype_of(
        index_of_string(
            "|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|skip_connect~0|nor_conv_3x3~1|nor_conv_3x3~2|"
        )
    )
    states = {
        job.number: JobState("done", 1, 60.0, best, validation_error=0.5) for job in plan.jobs
    }
    known = results_of(plan, states)
    assert known.metric == "true_error"
    assert known.complete
    assert known.rows[0].errors == pytest.approx([1 - 0.94363] * 5, abs=2e-5)
    drawn = [plan.rows[1].genotype(seed) for seed in range(6)]
    truths = [truth_of(cell) for cell in drawn if cell is not None]
    expected = [1 - truth.data_sets["cifar10"].test / 100 for truth in truths if truth is not None]
    assert known.rows[1].errors == pytest.approx(expected)
    assert len(known.pairs) == 1
    assert known.rows[0].ranks is not None
    lines = list(csv.DictReader(to_csv(known).splitlines()))
    assert [line["row"] for line in lines] == ["s"] * 5 + ["r"] * 6
    assert float(lines[-1]["true_error"]) == pytest.approx(expected[-1])
    assert lines[-1]["folder"] == "r/seed-5.json"
    assert "True test error" in to_latex(known)
    # A search that is not done, and one that left the space, say nothing.
    states[1] = JobState("ready")
    states[2] = JobState("done", 1, 60.0, CELLS, validation_error=0.5)
    assert len(results_of(plan, states).rows[0].errors) == 3
