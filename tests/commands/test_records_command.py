"""`prnas records`: what the files say, in words that mean one thing and counts from 1."""

import csv
import io
import json
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
from pydantic import BaseModel

from prnas.report import tidy
from prnas.report.read_run import read_view
from prnas.runs import record_lines
from prnas.runs import records as records_module
from prnas.runs.record_lines import read_records
from prnas.runs.records import CycleRecord, EpochRecord
from prnas.studies.folder import open_study
from tests.support.command_line import modules_after
from tests.support.in_process import Cli
from tests.support.made_studies import made_plan
from tests.support.old_runs import OLD_RUNS, copied
from tests.support.synthetic_runs import write_search, write_training

SEARCH, TRAINING = OLD_RUNS / "search-finished", OLD_RUNS / "training-finished"
DOCS = Path(__file__).parents[2] / "docs" / "records.md"


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def epochs_of(run: Path) -> list[EpochRecord]:
    return [one for one in read_records(run / "records.jsonl") if isinstance(one, EpochRecord)]


def test_epochs_of_a_search_as_csv(here: Cli) -> None:
    text = here.good("records", str(SEARCH), "--csv")
    assert text == here.good("records", str(SEARCH))  # it is the default
    assert text.startswith(
        "run,task,seed,cycle,epoch,total_epoch,grace,part,measure,value\n"
        "search-finished,search,0,1,1,1,true,weights,accuracy,"
    )
    rows = rows_of(text)
    epochs = epochs_of(SEARCH)
    places = list(dict.fromkeys((r["cycle"], r["epoch"], r["total_epoch"]) for r in rows))
    assert places == [("1", "1", "1"), ("1", "2", "2"), ("2", "1", "3"), ("2", "2", "4")]
    keys = ("total_epoch", "part", "measure")
    values = {tuple(row[key] for key in keys): float(row["value"]) for row in rows}
    assert len(values) == len(rows)  # no measure has two rows
    for number, record in enumerate(epochs, 1):
        for part in ("weights", "architecture", "validation"):
            score = record.scores.get(part)
            found = [values.get((str(number), part, name)) for name in ("accuracy", "loss")]
            assert found == ([score.accuracy, score.loss] if score else [None, None])
        assert values[str(number), "weights", "learning_rate"] == record.lr
        assert values[str(number), "all", "batch_size"] == record.batch
        assert values[str(number), "all", "peak_memory"] == record.memory
        assert values[str(number), "architecture", "seconds"] == record.seconds_for["architecture"]
    grace = {(row["epoch"], row["grace"]) for row in rows}
    assert grace == {("1", "true"), ("2", "false")}


def test_a_training_calls_testing_the_same_in_seconds_and_scores(here: Cli) -> None:
    rows = rows_of(here.good("records", str(TRAINING)))
    assert {(row["task"], row["cycle"], row["grace"]) for row in rows} == {
        ("retrain", "1", "false")
    }
    assert [row["total_epoch"] for row in rows if row["measure"] == "steps"] == list("12345")
    by_part: dict[str, set[str]] = {}
    for row in rows:
        by_part.setdefault(row["part"], set()).add(row["measure"])
    assert by_part == {
        "training": {"accuracy", "loss", "images", "learning_rate", "seconds"},
        "test": {"accuracy", "loss", "images", "seconds"},
        "all": {
            *("drop_path", "steps", "batch_size", "seconds"),
            *("images_per_second", "peak_memory"),
        },
        **{part: {"seconds"} for part in ("data", "saving", "other")},
    }


def test_json_lines_have_the_same_rows(here: Cli) -> None:
    as_csv = rows_of(here.good("records", str(SEARCH), str(TRAINING)))
    said = here.good("records", str(SEARCH), str(TRAINING), "--jsonl")
    assert said == here.good("records", str(SEARCH), str(TRAINING), "--json")
    lines = said.splitlines()
    rows = [json.loads(line) for line in lines]
    assert all(tuple(row) == tidy.COLUMNS for row in rows)

    def text(value: Any) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    assert [{key: text(value) for key, value in row.items()} for row in rows] == as_csv
    assert (rows[0]["cycle"], rows[0]["grace"], rows[0]["seed"]) == (1, True, 0)


def test_candidates_and_their_architecture_weights(here: Cli) -> None:
    rows = rows_of(here.good("records", str(SEARCH), str(TRAINING), "--candidates"))
    cycles = [one for one in read_records(SEARCH / "records.jsonl") if isinstance(one, CycleRecord)]
    expected = [
        (str(cycle.cycle), role, str(edge), label, str(weight))
        for cycle in cycles
        for role in ("normal", "reduction")
        for edge, pool in enumerate(cycle.pools[role], 1)
        for label, weight in zip(pool, cycle.architecture_weights[role][edge - 1], strict=True)
    ]
    keys = ("cycle", "cell", "edge", "candidate", "architecture_weight")
    assert [tuple(row[key] for key in keys) for row in rows] == expected
    assert {row["run"] for row in rows} == {"search-finished"}
    changed = cycles[0].change["normal"]["edges"]
    pruned = [row for row in rows if row["pruned"] == "true" and row["cycle"] == "1"]
    first = [row["candidate"] for row in pruned if (row["cell"], row["edge"]) == ("normal", "1")]
    assert first == ["avg 3x3", "skip"]
    assert len(changed[0]["pruned"]) == 2


def test_runs_are_joined_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: Cli
) -> None:
    monkeypatch.chdir(tmp_path)
    for seed in range(2):
        write_training(tmp_path / "a,b" / f"seed-{seed}", seed, epochs=2, end=False)
    write_search(tmp_path / "search", cycles=1)
    said = here.good("records", "a,b", "search", "./search", "-o", "epochs.csv")
    rows = rows_of((tmp_path / "epochs.csv").read_text(encoding="utf-8"))
    assert said == f"wrote epochs.csv ({len(rows):,} rows of 3 runs)\n"
    runs = list(dict.fromkeys((row["run"], row["seed"]) for row in rows))
    assert runs == [("a,b/seed-0", "0"), ("a,b/seed-1", "1"), ("search", "0")]


def test_runs_of_a_study_are_called_by_row_and_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: Cli
) -> None:
    monkeypatch.chdir(tmp_path)
    open_study(tmp_path / "study", made_plan(seeds=2))
    write_search(tmp_path / "study" / "pr-darts" / "seed-1", cycles=1)
    for row in ("pr-darts", "random"):
        write_training(tmp_path / "study" / row / "seed-0-training-0", epochs=2)
    names = ["pr-darts/seed-1", "pr-darts/seed-0-training-0", "random/seed-0-training-0"]
    rows = rows_of(here.good("records", "study"))
    assert list(dict.fromkeys(row["run"] for row in rows)) == names
    write_search(tmp_path / "other", cycles=1)
    rows = rows_of(here.good("records", "study", "other"))
    runs = list(dict.fromkeys(row["run"] for row in rows))
    assert runs == [*(f"study/{name}" for name in names), "other"]


def test_results_as_a_latex_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: Cli
) -> None:
    monkeypatch.chdir(tmp_path)
    errors: dict[str, list[float]] = {"a_b": [], "c": []}
    for group, epochs in (("a_b", 2), ("c", 3)):
        for seed in range(3):
            write_training(tmp_path / group / f"seed-{seed}", seed, epochs, end=seed < 2)
            view = read_view(tmp_path / group / f"seed-{seed}")
            errors[group] += [view.data()["test_error"]] if view.ended else []
    write_search(tmp_path / "one")
    write_search(tmp_path / "other", "network.cells=6")
    text = here.good("records", "a_b", "c", "one", "other", "--latex")
    searches, trainings = text.split("\n\n")
    assert "Validation" not in searches  # of supernets of different configs
    assert r"one & 1 & $4.02$ & $650$ &" in searches
    for group, name in (("a_b", r"a\_b"), ("c", "c")):
        mean, sd = 100 * fmean(errors[group]), 100 * stdev(errors[group])
        assert rf"{name} & 2 & ${mean:.2f} \pm {sd:.2f}$ & $4.02$ & $650$ &" in trainings
    assert trainings.count(r"\\") == 3
    assert "Validation accuracy" in here.good("records", "one", "--latex")
    listed = json.loads(here.good("report", "a_b", "c", "one", "-o", "x.html", "--json"))["results"]
    assert [(one["kind"], one["config"], one["ended"], len(one["runs"])) for one in listed] == [
        ("search", "one", 1, 1),
        ("training", "a_b", 2, 3),
        ("training", "c", 2, 3),
    ]
    assert listed[1]["test_error"]["mean"] == pytest.approx(fmean(errors["a_b"]), abs=1e-5)
    assert listed[1]["test_error"]["sd"] == pytest.approx(stdev(errors["a_b"]), rel=1e-3)
    listed = json.loads(here.good("report", "one", "other", "-o", "x.html", "--json"))["results"]
    assert [one["validation"] for one in listed] == [None, None]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name a run's folder"),
        (["nowhere"], "there is no run's folder nowhere"),
        (["search-finished", "--csv", "--json"], "choose one of --csv and --jsonl"),
        (["search-finished", "--latex", "--jsonl"], "choose one of --jsonl and --latex"),
        (["search-finished", "--latex", "--candidates"], "--latex is the table of the results"),
        (["study"], "no job of the study study has begun"),
        (["search-finished", "-o", "no/such/file.csv"], "cannot write no/such/file.csv"),
        (["search-finished", "training-finished"], "training-finished/records.jsonl is damaged"),
        (["odd", "--candidates"], "odd/records.jsonl, cycle 1: "),
        (["line"], "line/records.jsonl, line 2: "),
    ],
    ids=lambda one: " ".join(one)[:30],
)
def test_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: Cli, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    copied("search-finished", tmp_path)
    with (copied("training-finished", tmp_path) / "records.jsonl").open("r+") as file:
        file.write("x")
    odd = write_search(tmp_path / "odd", cycles=1) / "records.jsonl"
    lines = [json.loads(line) for line in odd.read_text().splitlines()]
    cycle = next(line for line in lines if line["type"] == "cycle")
    cycle["architecture_weights"]["normal"].pop()
    odd.write_text("".join(json.dumps(line) + "\n" for line in lines))
    wrong = write_search(tmp_path / "line", cycles=1) / "records.jsonl"
    first, *_ = wrong.read_text().splitlines()
    wrong.write_text(f"{first}\nrubbish\n")
    open_study(tmp_path / "study", made_plan(seeds=1))
    assert said in here.bad("records", *words)
    assert not list(tmp_path.glob("*.csv"))


def test_it_needs_no_torch() -> None:
    loaded = modules_after("records", str(SEARCH), "--candidates")
    assert "prnas.report.tidy" in loaded
    assert not loaded & {"torch", "numpy", "matplotlib"}


def test_every_field_is_documented() -> None:
    text = DOCS.read_text(encoding="utf-8")
    classes = [
        one
        for one in [*vars(records_module).values(), *vars(record_lines).values()]
        if isinstance(one, type) and issubclass(one, BaseModel) and one is not EpochRecord
    ]
    fields = {name for one in classes for name in one.model_fields}
    assert len(fields) > 30
    columns = {*tidy.COLUMNS, *tidy.CANDIDATE_COLUMNS}
    measures = {row["measure"] for run in (SEARCH, TRAINING) for row in tidy.epoch_rows(run, "x")}
    words = fields | columns | measures
    assert [word for word in sorted(words) if f"`{word}`" not in text] == []
