"""The studies in the folder `studies/`: every file plans, is listed, has records that fit it."""

import csv
import json
from pathlib import Path

import pytest

from prnas.commands.study import power_lines
from prnas.studies import statistics
from prnas.studies.config import read_study, ready_studies
from prnas.studies.plan import Plan, make_plan
from prnas.studies.results import results_of
from prnas.studies.states import read_states
from prnas.studies.tables import COLUMNS

STUDIES = Path(__file__).parents[2] / "studies"
FILES = sorted(STUDIES.glob("*.yaml"))
RESULTS = STUDIES.parent / "results"
TABLES = [
    file
    for file in sorted(RESULTS.iterdir())
    if file.suffix in (".csv", ".json")
    and ((STUDIES / f"{file.stem}.yaml").is_file() or file.stem in ready_studies())
]


def plan_of(name: str) -> Plan:
    """Of a study here, or of one that comes with prnas."""
    file = STUDIES / f"{name}.yaml"
    return make_plan(read_study(str(file) if file.is_file() else name), STUDIES)


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_every_file_plans_and_can_show_something(file: Path, tmp_path: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# "), "the first line is its question"
    plan = plan_of(file.stem)
    assert plan.study.description
    assert file.stem not in ready_studies()
    results = results_of(plan, read_states(tmp_path, plan))
    if len(plan.rows) > 1 and results.compares:
        level, other = statistics.LEVEL / plan.study.num_pairs, plan.units_against
        fewest = statistics.detectable(plan.fewest_units, 1.0, level, other=other)
        assert fewest is not None, "too few seeds"
        lines = power_lines(plan, results)
        assert "is shown in 80 of 100 studies" in lines[0]


def test_every_file_is_listed() -> None:
    listed = (STUDIES / "README.md").read_text(encoding="utf-8")
    names = [file.name for file in FILES] + [f"`{name}`" for name in ready_studies()]
    assert len(names) > 1
    assert [name for name in names if name not in listed] == []


@pytest.mark.parametrize("file", TABLES, ids=lambda path: path.name)
def test_tables_are_of_their_study(file: Path) -> None:
    plan = plan_of(file.stem)
    rows = [row.name for row in plan.rows]
    if file.suffix == ".json":
        found = json.loads(file.read_text(encoding="utf-8"))
        assert [row["name"] for row in found["rows"]] == rows
        return
    with file.open(encoding="utf-8", newline="") as text:
        lines = list(csv.DictReader(text))
    assert tuple(lines[0]) == COLUMNS
    assert [row for row in rows if row not in {line["row"] for line in lines}] == []
    for row in plan.rows:
        seeds = {int(line["seed"]) for line in lines if line["row"] == row.name}
        assert seeds == set(plan.units(row))
    if plan.study.judge == "truth":
        assert all(0 <= float(line["true_error"]) <= 1 for line in lines)
    if plan.study.trainings:
        assert all(0 <= float(line["test_error"]) <= 1 for line in lines)
