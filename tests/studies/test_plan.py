import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.config.search import SearchConfig
from prnas.io.errors import FormatError, UserError
from prnas.runs.integrity import config_digest
from prnas.space import zoo
from prnas.space.analysis.counting import discoverable
from prnas.space.operations import Skip
from prnas.space.setting import SETTINGS
from prnas.space.shape import NASBENCH201
from prnas.studies import folder as study_folder
from prnas.studies.config import StudyConfig
from prnas.studies.folder import open_study, read_plan
from prnas.studies.plan import Job, Plan, Row, make_plan

ROWS = [
    {"name": "s", "search": "quick"},
    {"name": "r", "random": "quick"},
    {"name": "c", "cell": "darts-v2"},
]


def plan_of(**changes: Any) -> Plan:
    return make_plan(StudyConfig.from_data({"rows": ROWS, "seeds": 2, **changes}))


PLAN = plan_of()


def test_the_jobs_of_a_study() -> None:
    plan = plan_of(first_seed=3)
    assert [job.path for job in plan.jobs] == [
        *("s/seed-3", "s/seed-4"),
        *("s/seed-3-training-0", "r/seed-3-training-0", "c/seed-3-training-0"),
        *("s/seed-4-training-0", "r/seed-4-training-0", "c/seed-4-training-0"),
    ]
    assert [job.needs for job in plan.jobs] == [None, None, 1, None, None, 2, None, None]
    assert [job.number for job in plan.jobs] == list(range(1, 9))


@given(st.integers(1, 6), st.integers(0, 5), st.integers(0, 10**6))
def test_no_two_jobs_are_the_same(seeds: int, trainings: int, first: int) -> None:
    changes = {"seeds": seeds, "trainings": trainings, "first_seed": first}
    jobs = replace(PLAN, study=PLAN.study.model_copy(update=changes)).jobs
    assert len(jobs) == seeds + len(ROWS) * seeds * trainings
    assert len({job.path for job in jobs}) == len(jobs)
    of_row = [job.seed for job in jobs if job.row.name == "s" and job.task == "retrain"]
    assert len(set(of_row)) == len(of_row), "no two trainings share their randomness"
    for job in jobs:
        assert job.needs is None or jobs[job.needs - 1].path == f"s/seed-{job.unit}"
        assert job.needs is None or job.needs < job.number


def test_more_seeds_and_trainings_keep_the_runs_that_are_there() -> None:
    def seeds(plan: Plan) -> dict[str, int]:
        return {job.path: job.seed for job in plan.jobs}

    small, large = seeds(plan_of(trainings=2)), seeds(plan_of(seeds=5, trainings=3))
    assert small.items() <= large.items()


def test_random_cells_are_those_the_search_could_have_found() -> None:
    (row,) = plan_of(rows=ROWS[1:2]).rows
    operations = set(discoverable(SETTINGS["darts-like"], 5))
    cells = [row.genotype(seed) for seed in range(20)]
    drawn = {
        edge.op
        for genotype in cells
        if genotype is not None
        for cell in (genotype.normal, genotype.cell("reduction"))
        for node in cell.nodes
        for edge in node
    }
    assert drawn <= operations
    assert len(drawn) > 10
    assert len(set(cells)) == 20
    assert cells == [row.genotype(seed) for seed in range(20)]


def test_random_cells_have_the_shape_of_the_search() -> None:
    config = SearchConfig.from_data({"network": {"shape": "nasbench201", "cells": 3}})
    drawn = Row("random", "random", config).genotype(1)
    assert drawn is not None
    assert drawn.shape == NASBENCH201
    assert drawn.normal.concat == (3,)


def test_random_cells_keep_the_bound_on_skips() -> None:
    given = {"network": {"shape": "nasbench201", "cells": 3}, "derivation": {"max_skips_normal": 0}}
    row = Row("random", "random", SearchConfig.from_data(given))
    cells = [row.genotype(seed) for seed in range(40)]
    assert all(cell is not None and Skip() not in cell.normal.operations for cell in cells)


def test_a_job_has_the_config_that_its_command_makes() -> None:
    plan = plan_of()
    search, training = plan.jobs[0], plan.jobs[4]
    own = plan.rows[0].config
    assert own is not None
    assert plan.config_digest(search, None) == config_digest(own.to_data())
    assert plan.retrain is not None
    cells = zoo.get("darts-v2")
    config = plan.retrain.model_copy(update={"genotype": cells, "seed": training.seed})
    assert plan.config_digest(training, cells) == config_digest(config.to_data())


# ---------------------------------------------------------------- the folder


def compute(folder: Path, job: Job) -> None:
    """As if a job had got as far as its first checkpoint."""
    (folder / job.path / "checkpoints" / "000001").mkdir(parents=True)


def test_a_study_is_read_back_from_its_folder_alone(tmp_path: Path) -> None:
    plan = plan_of()
    open_study(tmp_path / "runs" / "study", plan)
    known = read_plan(tmp_path / "runs" / "study")
    assert known == plan
    assert known.jobs == plan.jobs
    assert {path.name for path in (tmp_path / "runs" / "study").iterdir()} == {
        *("study.json", "retrain.yaml", "s", "r", "c")
    }
    assert (tmp_path / "runs/study/r/seed-1.json").is_file()


def test_a_damaged_study_is_refused(tmp_path: Path) -> None:
    open_study(tmp_path / "study", plan_of())
    path = tmp_path / "study" / "study.json"
    path.write_text(path.read_text().replace('"seeds": 2', '"seeds": 3'))
    with pytest.raises(UserError, match="changed or damaged"):
        read_plan(tmp_path / "study")


@pytest.mark.parametrize("written", range(5))
def test_a_study_that_could_not_be_written_whole_is_opened_again(
    written: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed, or out of space, after any of its files."""
    study, plan, left = tmp_path / "study", plan_of(), written
    real = study_folder.write_atomically

    def write(target: Path, data: bytes) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            target.with_name(f".{target.name}.01234567.tmp").write_bytes(data[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(target, data)

    monkeypatch.setattr(study_folder, "write_atomically", write)
    with pytest.raises(UserError, match="No space left"):
        open_study(study, plan)
    monkeypatch.undo()
    open_study(study, plan)
    assert read_plan(study) == plan
    whole = tmp_path / "whole"
    open_study(whole, plan)
    for path in whole.rglob("*.*"):
        assert (study / path.relative_to(whole)).read_bytes() == path.read_bytes()


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UserError, match="is no study"):
        open_study(tmp_path, plan_of())
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_study_may_grow(tmp_path: Path) -> None:
    plan = plan_of()
    open_study(tmp_path / "study", plan)
    for job in plan.jobs:
        compute(tmp_path / "study", job)
    rows = [*ROWS, {"name": "more", "cell": "pr-darts-dl1"}]
    larger = plan_of(rows=rows, seeds=3, trainings=2, resources={"threads": 2}, slots=1)
    open_study(tmp_path / "study", larger)
    assert read_plan(tmp_path / "study") == larger


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"first_seed": 5}, "first_seed 0"),
        ({"rows": [{**ROWS[0], "set": {"network.cells": 4}}]}, r"row 's' .* other network\.cells"),
        ({"rows": [{"name": "s", "cell": "darts-v2"}]}, "row 's' .* other kind"),
        ({"rows": [{**ROWS[2], "cell": "darts-v1"}]}, r"row 'c' .* other cell"),
        ({"retrain": {"set": {"training.epochs": 1}}}, r"trainings .* other training\.epochs"),
        ({"data": {"images": 100}}, r"row 's' .* other data\.images"),
    ],
)
def test_what_was_begun_cannot_change(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    plan = plan_of()
    folder = tmp_path / "study"
    open_study(folder, plan)
    open_study(folder, plan_of(**changes))  # Nothing was computed yet.
    open_study(folder, plan)
    for job in plan.jobs:
        compute(folder, job)
    before = (folder / "study.json").read_bytes()
    with pytest.raises(UserError, match=message):
        open_study(folder, plan_of(**changes))
    assert (folder / "study.json").read_bytes() == before


def test_how_it_is_computed_may_change(tmp_path: Path) -> None:
    plan = plan_of()
    open_study(tmp_path / "study", plan)
    compute(tmp_path / "study", plan.jobs[0])
    rows = [{**ROWS[0], "set": {"compute.precision": "bf16-mixed", "data.root": "/data"}}]
    open_study(tmp_path / "study", plan_of(rows=rows))


def test_a_row_may_have_its_own_number_of_seeds() -> None:
    plan = plan_of(rows=[{**ROWS[0], "seeds": 1}, ROWS[1]], first_seed=3)
    assert [job.path for job in plan.jobs] == [
        *("s/seed-3", "s/seed-3-training-0", "r/seed-3-training-0", "r/seed-4-training-0"),
    ]
    assert [list(plan.units(row)) for row in plan.rows] == [[3], [3, 4]]
    assert plan.fewest_units == 1


LOOKED_UP = [
    {"name": "s", "search": "nasbench201-small"},
    {"name": "r", "random": "nasbench201-small", "seeds": 3},
]


def test_cells_that_are_looked_up_are_not_trained(tmp_path: Path) -> None:
    plan = plan_of(rows=LOOKED_UP, judge="truth")
    assert [job.path for job in plan.jobs] == ["s/seed-0", "s/seed-1"]
    open_study(tmp_path / "study", plan)
    assert read_plan(tmp_path / "study") == plan
    assert len(list((tmp_path / "study" / "r").glob("seed-*.json"))) == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": ROWS[:1]}, "row 's': judge: truth looks cells up"),
        ({"rows": ROWS[2:]}, "row 'c': judge: truth looks cells up"),
        ({"rows": LOOKED_UP, "trainings": 1}, "trainings must be 0"),
        ({"rows": LOOKED_UP, "judge": "true"}, "judge"),
    ],
)
def test_what_cannot_be_looked_up_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        plan_of(**{"judge": "truth", **changes})
