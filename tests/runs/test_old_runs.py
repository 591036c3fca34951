"""Runs of older releases stay readable; those of newer ones are refused with a clear message."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prnas.config import recipes
from prnas.config.retrain import RetrainConfig
from prnas.config.search import RunConfig, SearchConfig
from prnas.io.errors import UserError
from prnas.io.yaml_files import dump_yaml, parse_yaml
from prnas.models.model import load
from prnas.report.plots import plots_of
from prnas.report.read_run import read_view
from prnas.report.server import LiveReport
from prnas.retraining import api as retraining
from prnas.retraining import seeds
from prnas.runs.checkpoint import CHECKSUMS, RECORDS, STATE, TENSORS
from prnas.runs.integrity import config_digest, newest_state, read_config_data
from prnas.runs.named import genotype_and_data
from prnas.runs.record_lines import read_records, to_line
from prnas.runs.record_versions import header_line
from prnas.searching import api as searching
from prnas.space.genotype import Genotype
from tests.support.in_process import Cli
from tests.support.newer_release import FIELD, VALUE, VERSION, write_newer_release
from tests.support.old_runs import (
    OLD_RUNS,
    OLD_RUNS_2,
    assert_repeats,
    copied,
    records_of,
    rounds_alike,
)
from tests.support.pages import data_of
from tests.support.watching import Watch

SEARCHES = ("search-unfinished", "search-finished")
TRAININGS = ("seeds-unfinished/seed-0", "training-finished")
FILES = (STATE, TENSORS, RECORDS)
ODD = {"data": {"name": "1e5", "test_share": 1e-05}, "weights": {"lr": 1, "lr_min": 1e-20}}


def first_digest(config: RunConfig) -> str:
    """As the first release made it, whose checkpoints are still read."""
    data = config.to_data()
    for section in ("compute", "checkpoints", "description"):
        del data[section]
    for name in ("root", "storage", "workers"):
        del data["data"][name]
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()


# All but those that leave something open, which is chosen by the images.
DECIDED = [name for name in recipes.names() if not name.endswith("pictures")]


@pytest.mark.parametrize("name", [*DECIDED, "odd"])
def test_a_config_file_has_the_digest_of_its_config(name: str) -> None:
    config = SearchConfig.from_data(ODD) if name == "odd" else recipes.any_recipe(name)
    file = parse_yaml(dump_yaml(config.to_data()))
    assert config_digest(file) == config_digest(config.to_data()) == first_digest(config)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ("compute.threads=7", True),
        ("checkpoints.keep=9", True),
        ("description=other", True),
        ("data.root=elsewhere", True),
        ("data.storage=stream", True),
        ("data.workers=0", True),
        ("data.flip=false", False),
        ("seed=1", False),
        ("space=unrestricted", False),
        ("space=darts-like", True),
        ("schedule.cycles.0.epochs=14", False),
    ],
)
def test_only_how_a_run_is_computed_may_change(change: str, same: bool) -> None:
    config = SearchConfig()
    changed = SearchConfig.from_data(config.to_data(), [change])
    assert (config_digest(changed.to_data()) == config_digest(config.to_data())) is same


@pytest.mark.parametrize(
    "data", [{}, {"data": []}, {"data": None}, {"seed": parse_yaml("2020-01-02")}]
)
def test_every_file_has_a_digest(data: dict[str, Any]) -> None:
    assert config_digest(data) != config_digest(SearchConfig().to_data())


@pytest.mark.parametrize("name", [*SEARCHES, *TRAININGS])
def test_old_runs_are_reported_and_watched(name: str) -> None:
    folder = OLD_RUNS / name
    view = read_view(folder)
    kinds = {"epoch", "training"}
    epochs = [record for record in records_of(folder) if record["type"] in kinds]
    assert view.data()["done"] == len(epochs) > 1
    assert view.ended is name.endswith("-finished")
    page = LiveReport(folder, print).page().decode()
    first, *_ = data_of(page)["curves"][view.kind]["sections"][0]["plots"]
    assert [one["ys"] for one in first["lines"]] == [one.ys for one in plots_of(view)[0].lines]


def test_an_old_search_goes_on_to_the_same_end_and_keeps_the_version_of_its_records(
    tmp_path: Path,
) -> None:
    folder, watch = copied("search-unfinished", tmp_path), Watch()
    config = (folder / "config.yaml").read_bytes()
    result = searching.resume(folder, callbacks=[watch], overrides=["checkpoints.keep=3"])
    assert watch.start.resumed
    assert 0 < len(watch.steps) < sum(epoch.steps for epoch in result.epochs)
    assert_repeats(folder, OLD_RUNS / "search-finished", exactly=rounds_alike())
    assert (folder / "config.yaml").read_bytes() == config
    old = OLD_RUNS / "search-unfinished" / "records.jsonl"
    lines = (folder / "records.jsonl").read_text().splitlines()
    assert lines[: len(old.read_text().splitlines())] == old.read_text().splitlines()
    assert {json.loads(line).get("cycle") for line in lines} == {0, 1, None}
    assert [to_line(one, 1)[:-1] for one in read_records(folder / "records.jsonl")] == lines


def test_runs_with_records_of_version_2_go_on(tmp_path: Path) -> None:
    """The same for those, which this release and later ones write."""
    for name in ("search-finished", "training-finished"):
        view = read_view(OLD_RUNS_2 / name)
        assert view.ended
        assert view.data()["done"] == read_view(OLD_RUNS / name).data()["done"]
    folder = copied("search-unfinished", tmp_path, OLD_RUNS_2)
    before = (folder / "records.jsonl").read_text()
    searching.resume(folder)
    after = (folder / "records.jsonl").read_text()
    assert before.startswith(header_line())
    assert after.count(header_line()) == 1
    cycles = {json.loads(line).get("cycle") for line in after.splitlines()}
    assert cycles == {1, 2, None}
    exactly = rounds_alike(OLD_RUNS_2)
    assert_repeats(folder, OLD_RUNS_2 / "search-finished", exactly=exactly)


def test_records_of_another_version_are_left_alone(tmp_path: Path) -> None:
    run = copied("search-unfinished", tmp_path)
    (newest,) = (run / "checkpoints").iterdir()
    text = header_line().replace("2}", "3}") + (newest / "records.jsonl").read_text()
    for path in (newest, run):
        (path / "records.jsonl").write_text(text)
    state = json.loads((newest / STATE).read_text())
    sha = hashlib.sha256(text.encode()).hexdigest()
    state["records"] = {"size": len(text.encode()), "sha256": sha}
    (newest / STATE).write_text(json.dumps(state))
    sums = {name: hashlib.sha256((newest / name).read_bytes()).hexdigest() for name in FILES}
    (newest / CHECKSUMS).write_text(json.dumps(sums))
    for use in (read_view, searching.resume):
        with pytest.raises(UserError, match=r"records\.jsonl, line 1: version: 3 is not known"):
            use(run)
    assert (run / "records.jsonl").read_text() == text


def test_old_seeds_go_on_to_the_same_end(tmp_path: Path) -> None:
    folder, watches = copied("seeds-unfinished", tmp_path), [Watch(), Watch()]
    found = seeds.resume_seeds(folder, watchers=lambda number, of: [watches[number]])
    assert [watch.start.resumed for watch in watches] == [True, False]
    assert 0 < len(watches[0].steps) < len(watches[1].steps)
    assert_repeats(folder / "seed-0", OLD_RUNS / "training-finished", exactly=rounds_alike())
    assert len(found.results) == 2


def test_old_finished_runs_are_only_read(tmp_path: Path) -> None:
    search, training = copied("search-finished", tmp_path), copied("training-finished", tmp_path)
    whole = {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}
    watch, watch_training = Watch(), Watch()
    searching.resume(search, callbacks=[watch])
    retraining.resume(training, callbacks=[watch_training])
    assert not watch.steps
    assert not watch_training.steps
    changed = {path.name for path, data in whole.items() if path.read_bytes() != data}
    assert changed == {"environment.json"}


def test_old_results_are_used(tmp_path: Path) -> None:
    genotype, images = genotype_and_data(str(OLD_RUNS / "search-finished"))
    assert images is not None
    assert (images["name"], images["images"]) == ("digits", 128)
    training = RetrainConfig.from_data(
        {
            "genotype": genotype.to_json(),
            "network": {"cells": 3, "channels": 2, "auxiliary_weight": 0.0},
            "training": {"epochs": 1},
            "data": {"name": "digits", "images": 32, "cutout": 0},
            "batch": {"min": 16, "max": 16},
            "compute": {"accelerator": "cpu", "threads": 1},
        }
    )
    assert retraining.start(training, runs=tmp_path).parameters > 0
    model = load(OLD_RUNS / "training-finished")
    assert model.card.genotype == genotype
    assert genotype_and_data(str(OLD_RUNS / "training-finished"))[0] == genotype
    with pytest.raises(UserError, match="has not found its cells yet"):
        genotype_and_data(str(OLD_RUNS / "search-unfinished"))


def test_an_old_genotype_that_a_newer_release_writes_otherwise_is_no_damage(
    tmp_path: Path,
) -> None:
    folder = copied("search-finished", tmp_path)
    path = folder / "genotype.json"
    data = json.loads(path.read_text())
    data["normal"]["repeated_inputs"] = False  # a default, written out
    path.write_text(json.dumps(data))
    assert genotype_and_data(str(folder))[0] == Genotype.from_json(data)
    data["normal"]["concat"] = [2]
    path.write_text(json.dumps(data))
    with pytest.raises(UserError, match=r"genotype\.json is damaged"):
        genotype_and_data(str(folder))


# ---------------------------------------------------------------- releases with other fields

NEWER_SESSION = """
import json, sys
from pathlib import Path
from prnas.cli import main
from prnas.report.server import LiveReport
for words in json.loads(sys.argv[1]):
    try:
        main(words)
    except SystemExit as end:
        assert not end.code, words
for name in sys.argv[2:]:
    LiveReport(Path(name), print).page()
"""
SMALL = (
    "--threads",
    "1",
    "--set",
    "training.epochs=1",
    "--set",
    "network.cells=3",
    "--set",
    "network.channels=2",
)
QUICK = ("--quiet", "--runs", ".", "--name")
COMMANDS = (
    ("report", "search-finished", "training-finished", "seeds-unfinished", "search-unfinished"),
    ("search", "--resume", "search-unfinished", "--quiet"),
    ("retrain", "--resume", "seeds-unfinished", "--quiet"),
    ("search", "search-finished/config.yaml", *QUICK, "new-search"),
    ("retrain", "search-finished", *QUICK, "new-training", *SMALL),
    ("report", "search-finished", "new-search", "-o", "searches.html"),
)
NAMES = ("search-finished", "search-unfinished", "training-finished", "seeds-unfinished")


@pytest.fixture(scope="module")
def newer_release_was_here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Old runs that a release with more fields reported, watched, went on with and retrained."""
    folder = tmp_path_factory.mktemp("newer")
    for name in NAMES:
        copied(name, folder)
    sources = write_newer_release(tmp_path_factory.mktemp("sources"))
    done = subprocess.run(
        [sys.executable, "-c", NEWER_SESSION, json.dumps(COMMANDS), *NAMES],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(sources)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_a_release_with_more_fields_goes_on_with_old_runs(newer_release_was_here: Path) -> None:
    folder, exactly = newer_release_was_here, rounds_alike()
    assert_repeats(folder / "search-unfinished", OLD_RUNS / "search-finished", exactly=exactly)
    seed = folder / "seeds-unfinished" / "seed-0"
    assert_repeats(seed, OLD_RUNS / "training-finished", exactly=exactly)
    for name in ("search-unfinished", "seeds-unfinished", "seeds-unfinished/seed-0"):
        file = folder / name / "config.yaml"
        assert file.read_bytes() == (OLD_RUNS / name / "config.yaml").read_bytes()
    for run in (folder / "search-unfinished", seed):
        digest = config_digest(read_config_data(run / "config.yaml"))
        assert newest_state(run)["config"] == digest


def test_what_a_release_with_more_fields_starts_has_them(newer_release_was_here: Path) -> None:
    folder = newer_release_was_here
    for name in ("new-search", "new-training", "seeds-unfinished/seed-1"):
        config = read_config_data(folder / name / "config.yaml")
        assert [config[FIELD], config["network"][FIELD]] == [VALUE, VALUE]
        assert records_of(folder / name)[0][FIELD] == VALUE


def test_an_old_run_and_a_new_one_of_its_config_are_one_experiment(
    newer_release_was_here: Path,
) -> None:
    """What the old config does not say is the default."""
    page = data_of((newer_release_was_here / "searches.html").read_text(encoding="utf-8"))
    assert [group["runs"] for group in page["comparison"]["groups"]] == [[0, 1]]


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (("report", "new-search"), "records.jsonl, line 2: newer_field: unknown key"),
        (("watch", "new-training"), "records.jsonl, line 2: newer_field: unknown key"),
        (("search", "--resume", "new-search"), "new-search/config.yaml: "),
        (("retrain", "--resume", "new-training"), "new-training/config.yaml: "),
        (("retrain", "new-search"), "new-search/config.yaml: "),
    ],
)
def test_fields_of_another_release_are_refused_with_its_name(
    newer_release_was_here: Path, here: Cli, monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...], place: str
) -> None:  # fmt: skip
    monkeypatch.chdir(newer_release_was_here)
    said = here.bad(*words)
    assert place in said
    assert f"The run was written by prnas {VERSION}; this is prnas" in said
    assert "unknown key" in said


def other_version(run: Path) -> None:
    """The newest checkpoint becomes one of a later version, with checksums that fit."""
    newest = max((run / "checkpoints").iterdir())
    state = json.loads((newest / STATE).read_text())
    text = json.dumps({**state, "version": 3})
    (newest / STATE).write_text(text)
    sums = json.loads((newest / CHECKSUMS).read_text())
    sums[STATE] = hashlib.sha256(text.encode()).hexdigest()
    (newest / CHECKSUMS).write_text(json.dumps(sums))


USES: list[Callable[[Path], Any]] = [
    read_view,
    searching.resume,
    lambda run: LiveReport(run, print),
    lambda run: genotype_and_data(str(run)),
]


@pytest.mark.parametrize("use", USES)
def test_a_checkpoint_of_another_version_is_no_damage(
    tmp_path: Path, use: Callable[[Path], Any]
) -> None:
    run = copied("search-finished", tmp_path)
    other_version(run)
    with pytest.raises(UserError, match=r"version:? 3.*this release reads version 2"):
        use(run)
