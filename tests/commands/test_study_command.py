"""`prnas study` and `prnas search --seeds`, with tiny searches as real processes."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from prnas.io.yaml_files import dump_yaml
from prnas.searching.api import search
from prnas.studies.locks import is_locked, lock_file
from tests.support.in_process import Cli
from tests.support.make_runs import SEARCH, TRAINING
from tests.support.pages import data_of
from tests.support.real_processes import TIMEOUT, finish, prnas, progress_of

ROWS: list[dict[str, Any]] = [
    {"name": "s", "search": "search.yaml"},
    {"name": "c", "cell": "darts-v2"},
]


def write_study(folder: Path, **changes: Any) -> None:
    (folder / "search.yaml").write_text(dump_yaml(SEARCH))
    training = {**TRAINING, "training": {"epochs": 1}}
    (folder / "training.yaml").write_text(dump_yaml(training))
    study = {"rows": ROWS, "seeds": 1, "retrain": "training.yaml", "slots": 2, **changes}
    (folder / "tiny.yaml").write_text(dump_yaml(study))


def attempts(study: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (study / "attempts.jsonl").read_text().splitlines()]


def wait_until(condition: Any) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_study_that_is_killed_and_stopped_goes_on_to_the_same_end(tmp_path: Path) -> None:
    write_study(tmp_path)
    study, run = tmp_path / "runs" / "tiny", tmp_path / "runs" / "tiny" / "s" / "seed-0"
    process = prnas("study", "tiny.yaml", "--job", "1", cwd=tmp_path)
    wait_until(lambda: progress_of(run) >= 1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    # Its job notices, saves its state and ends: nothing is left over.
    wait_until(lambda: not is_locked(lock_file(study, "s/seed-0")))
    assert '"done": true' not in next(iter(run.glob("checkpoints/*/state.json"))).read_text()

    process = prnas("study", "tiny.yaml", cwd=tmp_path)
    wait_until(lambda: (run / "genotype.json").is_file() or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    assert (code, err) == (130, "")
    assert "stopped; everything is saved" in out
    assert "prnas study runs/tiny" in out

    code, out, err = finish(prnas("study", "runs/tiny", cwd=tmp_path))
    assert (code, err) == (0, "")
    assert "3 jobs" in out
    alone = search(str(tmp_path / "search.yaml"), overrides=["compute.threads=1"])
    assert (run / "genotype.json").read_text() == alone.genotype.dumps()
    summary = json.loads((study / "summary.json").read_text())
    assert summary["jobs"] == {"done": 3, "of": 3}
    page = data_of((study / "report.html").read_text(encoding="utf-8"))
    assert (page["ended"], page["study"]["jobs"]["done"]) == (True, 3)
    assert "as a page: runs/tiny/report.html" in out
    assert [len(row["units"][0]["trainings"]) for row in summary["rows"]] == [1, 1]

    # All is done: nothing is done again.
    before = attempts(study)
    code, out, err = finish(prnas("study", "tiny.yaml", "--job", "1", cwd=tmp_path))
    assert (code, err) == (0, "")
    assert attempts(study) == before


def test_a_row_that_cannot_begin_does_not_stop_the_others(tmp_path: Path) -> None:
    rows = [{**ROWS[0], "set": {"data.name": "npz:nowhere.npz"}}, ROWS[1]]
    write_study(tmp_path, rows=rows)
    process = prnas("study", "tiny.yaml", "--quiet", cwd=tmp_path)
    code, out, err = finish(process)
    assert code == 1
    assert "Traceback" not in out + err
    assert "job 1 (s/seed-0) was given up: " in err
    assert "nowhere.npz" in err
    assert "go on" in out
    listed = finish(prnas("study", "tiny.yaml", "--list", "--json", cwd=tmp_path))[1]
    assert [job["state"] for job in json.loads(listed)] == [*("ready", "waiting", "done")]


def test_data_that_no_row_finds_are_told_once(tmp_path: Path) -> None:
    write_study(tmp_path, data={"name": "npz:nowhere.npz"})
    code, out, err = finish(prnas("study", "tiny.yaml", "--quiet", cwd=tmp_path))
    assert code == 2
    assert "Traceback" not in out + err
    assert err.count("nowhere.npz") == 1
    assert "jobs 1 (s/seed-0), " in err
    assert all(line.startswith("prnas: job") for line in err.splitlines())


def test_a_search_with_several_seeds_is_a_study(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(dump_yaml(SEARCH))
    options = ("--seeds", 2, "--seed", 5, "--name", "two", "--set", "data.images=96")
    code, out, err = finish(prnas("search", "own.yaml", *options, cwd=tmp_path))
    assert (code, err) == (0, "")
    assert "validation error of the supernet over n seeds" in out
    found = sorted(path.parent.name for path in tmp_path.glob("runs/two/own/*/genotype.json"))
    assert found == ["seed-5", "seed-6"]
    code, _, err = finish(prnas("search", "--resume", "runs/two", cwd=tmp_path))
    assert (code, err) == (0, "")
    code, _, err = finish(prnas("search", "own.yaml", *options, cwd=tmp_path))
    assert code == 2
    assert "go on with `prnas search --resume runs/two`" in err


# ---------------------------------------------------------------- without any job


def test_listing_writes_nothing(here: Cli, tmp_path: Path) -> None:
    write_study(tmp_path)
    cli = here.command("study")
    lines = cli.good("tiny.yaml", "--list").splitlines()
    assert lines[1].split() == ["1", "s", "search", "0", "ready"]
    assert lines[2].split() == ["2", "s", "training", "0", "0", "waiting"]
    assert lines[-1] == "0 of 3 jobs done"
    assert cli.good("tiny.yaml", "--csv").startswith("row,kind,seed,")
    assert cli.good("tiny.yaml", "--latex").startswith(r"\begin{tabular}")
    assert json.loads(cli.good("tiny.yaml", "--json"))["jobs"] == {"done": 0, "of": 3}
    assert "wrote out.csv" in cli.good("tiny.yaml", "--csv", "-o", "out.csv")
    assert not (tmp_path / "runs").exists()


def test_a_dry_run_measures_steps_and_tells_the_power(here: Cli, tmp_path: Path) -> None:
    write_study(tmp_path, seeds=3)
    out = here.command("study").good("tiny.yaml", "--dry-run")
    assert "9, 2 at the same time" in out
    assert "time    about" in out
    assert "no difference can be significant" in out
    assert "At least 4 seeds" in out
    assert not (tmp_path / "runs").exists()
    out = here.command("study").good("tiny.yaml", "--dry-run", "--set", "seeds=10")
    assert "With 10 seeds a row and a standard deviation of 0.23 points" in out
    assert "a difference of 0.30 points" in " ".join(out.split())


def test_a_dry_run_says_what_it_cannot_measure(here: Cli, tmp_path: Path) -> None:
    write_study(tmp_path, data={"name": "npz:nowhere.npz"})
    out = here.command("study").good("tiny.yaml", "--dry-run")
    assert "time    not known" in out
    assert "note: no estimate for rows 's' and 'c': " in out
    assert out.count("nowhere.npz") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tiny"], "no study and no file is called 'tiny'"),
        (["tiny.yaml", "--list", "--csv"], "choose one of --list and --csv"),
        (["tiny.yaml", "--out", "x"], "--out is for --csv, --latex and --json"),
        (["tiny.yaml", "--job", "4"], "--job must be from 1 to 3, got 4"),
        (["tiny.yaml", "--job", "0"], "--job must be from 1 to 3, got 0"),
        (["tiny.yaml", "--engine", "x"], "no engine is called 'x'"),
        (["tiny.yaml", "--address", "auto"], "for the engine ray, and this one is local"),
        (["tiny.yaml", "--engine", "ray", "--address", "here"], "auto (the cluster"),
        (["tiny.yaml", "--engine", "ray", "--job", "1"], "choose one of --job and --engine ray"),
        (["tiny.yaml", "--slots", "0"], "slots"),
        (["tiny.yaml", "--set", "sedes=1"], "no 'sedes'"),
        (["tiny.yaml", "--name", "../x"], "--name is a folder's name"),
        (["."], "is not the folder of a study"),
        (["tiny.yaml", "--set", "rows.0.search=qick"], "row 's': no recipe"),
    ],
)
def test_mistakes_are_named(arguments: list[str], message: str, here: Cli, tmp_path: Path) -> None:
    write_study(tmp_path)
    assert message in here.command("study").bad(*arguments)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["quick", "--seeds", "0"], "--seeds must be from 1"),
        (["quick", "--seeds", "2", "--picture", "x.svg"], "--picture is for a single search"),
        (["qick", "--seeds", "2"], "no recipe and no file is called 'qick'"),
        (["quick", "--seeds", "2", "--set", "seeds"], "path=value"),
    ],
)
def test_mistakes_with_several_seeds(
    arguments: list[str], message: str, here: Cli, tmp_path: Path
) -> None:
    assert message in here.command("search").bad(*arguments)
    assert not (tmp_path / "runs").exists()


def test_a_training_whose_search_is_not_done_comes_later(tmp_path: Path) -> None:
    write_study(tmp_path)
    code, _, err = finish(prnas("study", "tiny.yaml", "--job", "2", cwd=tmp_path))
    assert code == 75
    assert "job 2 trains what job 1 finds, which is not done yet" in err
