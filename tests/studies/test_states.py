"""What a job's folder says, by finished runs of an older release."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from prnas.io.yaml_files import dump_yaml
from prnas.space.genotype import Genotype
from prnas.studies.config import StudyConfig
from prnas.studies.folder import open_study, read_plan
from prnas.studies.locks import JobLock, lock_file
from prnas.studies.plan import Plan, make_plan
from prnas.studies.states import JobState, read_states
from tests.support.make_runs import SEARCH, TRAINING

OLD = Path(__file__).parents[1] / "runs" / "format-2"
FOUND = str(OLD / "search-finished" / "genotype.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study whose search and whose training of a known cell are done."""
    for name, config in (("search", SEARCH), ("training", TRAINING)):
        (tmp_path / f"{name}.yaml").write_text(dump_yaml(config))
    study = {
        "rows": [{"name": "s", "search": "search.yaml"}, {"name": "c", "cell": FOUND}],
        "seeds": 1,
        "retrain": "training.yaml",
    }
    folder = tmp_path / "study"
    open_study(folder, make_plan(StudyConfig.from_data(study), tmp_path))
    shutil.copytree(OLD / "search-finished", folder / "s" / "seed-0")
    shutil.copytree(OLD / "training-finished", folder / "c" / "seed-0-training-0")
    return folder


def states(folder: Path) -> list[JobState]:
    """Of the search, of the training of its cells, and of that of the known cell."""
    return list(read_states(folder, read_plan(folder)).values())


def names(folder: Path) -> list[str]:
    return [state.state for state in states(folder)]


def test_finished_runs_are_done_and_have_their_results(folder: Path) -> None:
    search, waiting, training = states(folder)
    assert (search.state, waiting.state, training.state) == ("done", "ready", "done")
    known = Genotype.loads((folder / "s/seed-0/genotype.json").read_text())
    assert search.genotype == known == waiting.genotype
    assert search.validation_error is not None
    assert 0 < search.validation_error < 1
    assert training.test_error == pytest.approx(0.6970, abs=1e-4)
    assert training.parameters is not None
    assert training.seconds == pytest.approx(3.2839, abs=1e-3)


def damage_genotype(folder: Path) -> None:
    path = folder / "s/seed-0/genotype.json"
    path.write_text(path.read_text().replace('"kernel": 3', '"kernel": 5'))


def lose_genotype(folder: Path) -> None:
    (folder / "s/seed-0/genotype.json").unlink()


def damage_records(folder: Path) -> None:
    path = folder / "s/seed-0/records.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"lr":', b'"rl":'))


def lose_checkpoints(folder: Path) -> None:
    shutil.rmtree(folder / "s/seed-0/checkpoints")


def damage_state(folder: Path) -> None:
    (path,) = folder.glob("s/seed-0/checkpoints/*/state.json")
    path.write_bytes(path.read_bytes().replace(b'"done": true', b'"done": false'))


@pytest.mark.parametrize(
    "harm", [damage_genotype, lose_genotype, damage_records, lose_checkpoints, damage_state]
)
def test_a_search_that_is_not_whole_is_not_done(harm: Any, folder: Path) -> None:
    harm(folder)
    assert names(folder) == ["stopped", "waiting", "done"]


@pytest.mark.parametrize("file", ["model/model.safetensors", "model/model.json", "records.jsonl"])
def test_a_training_that_is_not_whole_is_not_done(file: str, folder: Path) -> None:
    (folder / "c/seed-0-training-0" / file).unlink()
    assert names(folder) == ["done", "ready", "stopped"]


def test_an_unfinished_run_is_stopped(folder: Path) -> None:
    shutil.rmtree(folder / "s/seed-0")
    shutil.copytree(OLD / "search-unfinished", folder / "s/seed-0")
    search, *_ = states(folder)
    assert search.state == "stopped"
    assert search.checkpoint > 0


def test_a_run_of_another_config_is_wrong(folder: Path) -> None:
    plan = read_plan(folder)
    row = plan.rows[0]
    assert row.config is not None
    changed = row.config.override(["network.cells=4"])
    rows = (type(row)(row.name, row.kind, changed), plan.rows[1])
    search, waiting, training = read_states(folder, Plan(plan.study, rows, plan.retrain)).values()
    assert (search.state, waiting.state, training.state) == ("wrong", "waiting", "done")
    assert "another config than the study" in search.message


def test_another_seeds_run_is_wrong(folder: Path) -> None:
    shutil.copytree(folder / "s/seed-0", folder / "s/seed-1")
    plan = read_plan(folder)
    study = plan.study.model_copy(update={"seeds": 2})
    assert read_states(folder, Plan(study, plan.rows, plan.retrain))[2].state == "wrong"


def test_how_it_was_computed_does_not_matter(folder: Path) -> None:
    plan = read_plan(folder)
    assert plan.retrain is not None
    other = plan.retrain.override(["compute.threads=2", "data.workers=1", "description=x"])
    assert read_states(folder, Plan(plan.study, plan.rows, other))[3].state == "done"


def test_a_job_whose_lock_is_held_is_running(folder: Path) -> None:
    lock = JobLock(lock_file(folder, "s/seed-0"))
    assert names(folder) == ["running", "waiting", "done"]
    lock.release()
    assert names(folder)[0] == "done"
