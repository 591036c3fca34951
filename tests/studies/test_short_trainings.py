"""Short trainings of a search by the engines of studies: the same scores, whatever is lost."""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prnas.config.search import SearchConfig
from prnas.io.errors import UserError
from prnas.runs.events import SearchResult
from prnas.runs.run import Stopped
from prnas.searching import short_training
from prnas.searching.api import resume, start
from prnas.studies import short_trainings
from prnas.studies.attempt import Ended, Slot, Task
from prnas.studies.config import StudyConfig
from prnas.studies.engines import Engine, LocalEngine
from prnas.studies.short_trainings import EngineTrainers
from tests.support.ray_cluster import need_ray, ray_cluster
from tests.support.settings import small_config
from tests.support.watching import assert_same_run

SLOTS = [Slot("one", {"OMP_NUM_THREADS": "1"}), Slot("two", {"OMP_NUM_THREADS": "1"})]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Giving memory back takes longer than these trainings do."""
    monkeypatch.setattr("prnas.runs.batch_size.give_back_memory", lambda: None)


def halving(images: Path, *overrides: str) -> SearchConfig:
    """Two cells for an epoch, then the better for two."""
    return small_config(
        images,
        space="nasbench201",
        schedule={"cycles": [{"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1}]},
        network={"cells": 3, "channels": 4, "nodes": 3, "shape": "nasbench201"},
        data={"name": "digits", "images": 100, "flip": False, "crop_padding": 1},
        searcher={
            "method": "halving",
            "scorer": "training",
            "budget": {"evaluations": 3},
            "halving": {"factor": 2, "rungs": 2},
            "training": {
                "network": {"cells": 3, "channels": 4, "auxiliary_weight": 0.0, "drop_path": 0.0},
                "training": {"epochs": 2},
            },
        },
        batch={"min": 32, "multiple": 1, "max": 64},
    ).override(overrides)


class Here:
    """An engine that makes attempts in this process, the last that was started first."""

    num_slots = 2

    def __init__(self, *fates: int | None) -> None:
        self.fates = list(fates)  # Exit codes of the first attempts, which do nothing.
        self.tasks: list[Task] = []
        self.most = 0
        self.number = self.closed = 0

    def start(self, task: Task) -> None:
        assert task == Task.from_data(json.loads(json.dumps(task.to_data())))
        assert task.module == "prnas.searching.short_training"
        assert task.study.is_dir()
        self.tasks.append(task)
        self.number += 1
        self.most = max(self.most, len(self.tasks))
        assert len(self.tasks) <= self.num_slots

    def wait(self, seconds: float) -> list[Ended]:
        task = self.tasks.pop()
        if self.fates:
            return [Ended(task, self.fates.pop(0), message="it is gone")]
        return [Ended(task, short_training.main(Path(task.start[0])))]

    def stop(self) -> None:
        raise AssertionError("closing stops")

    def close(self) -> None:
        self.closed += 1


def searched(config: SearchConfig, engine: Engine, runs: Path, name: str = "run") -> SearchResult:
    def make(threads: int, device_type: str) -> EngineTrainers:
        assert (threads, device_type) == (1, "cpu")
        return EngineTrainers(engine)

    return start(config, runs=runs, name=name, make_trainers=make)


def test_scores_are_those_of_one_process_whatever_is_lost(images: Path, tmp_path: Path) -> None:
    start(halving(images), runs=tmp_path, name="alone")
    engine = Here(-9, 1, None, None)  # Lost, failed, or still ending elsewhere.
    searched(halving(images), engine, tmp_path)
    assert_same_run(tmp_path / "run", tmp_path / "alone")
    assert engine.most == 2, "a rung is trained at once"
    assert engine.number == 3 + 4
    assert engine.closed == 1
    assert not list((tmp_path / "run").glob(f"{short_trainings.FOLDER}*"))


def test_what_never_succeeds_ends_the_search(images: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"evaluation 2 was lost 3 times; the last: it is gone"):
        searched(halving(images), Here(-9, -9, -9), tmp_path, "lost")
    with pytest.raises(UserError, match=r"^it is gone$"):
        searched(halving(images), Here(2), tmp_path, "refused")
    engine = Here()
    result = resume(tmp_path / "lost", make_trainers=lambda *_: EngineTrainers(engine))
    assert [one.number for one in result.evaluations] == [1, 2, 3]


def test_a_mistake_is_told_as_it_is(
    images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "1.json"
    config = halving(images).to_data() | {"data": {"name": "npz:nowhere.npz"}}
    file.write_text(json.dumps({"config": config, "proposal": {}, "number": 1}))
    assert short_training.main(file) == 2
    assert re.match(r"prnas: .*nowhere\.npz", capsys.readouterr().err)
    assert not file.with_suffix(short_training.SCORE).exists()


def test_only_short_trainings_have_an_engine(images: Path, tmp_path: Path) -> None:
    engine = Here()
    for overrides in (
        ["searcher.method=random", "searcher.scorer=table"],
        ["searcher.method=none"],
    ):
        config = halving(images, *overrides)
        with pytest.raises(UserError, match="an engine makes the short trainings of a search"):
            searched(config, engine, tmp_path)
    assert not list(tmp_path.iterdir())


class Stopping(LocalEngine):
    """Asks the search to stop as soon as two trainings are under way."""

    def start(self, task: Task) -> Slot:
        slot = super().start(task)
        if task.number == 2:
            signal.raise_signal(signal.SIGTERM)
        return slot


def test_real_processes_give_the_same_and_stop_with_the_search(
    images: Path, tmp_path: Path
) -> None:
    start(halving(images), runs=tmp_path, name="alone")
    engine = Stopping(SLOTS)
    with pytest.raises(Stopped):
        searched(halving(images), engine, tmp_path)
    assert engine.wait(0) == [] or not engine._threads, "none is left"
    resume(tmp_path / "run", make_trainers=lambda *_: EngineTrainers(LocalEngine(SLOTS)))
    assert_same_run(tmp_path / "run", tmp_path / "alone")


@pytest.fixture
def address() -> Iterator[str]:
    need_ray()
    with ray_cluster() as (address, key), pytest.MonkeyPatch.context() as patch:
        for name, value in key.items():
            patch.setenv(name, value)
        yield address


def test_a_cluster_gives_the_same(images: Path, tmp_path: Path, address: str) -> None:
    from prnas.studies.ray_engine import start_ray

    data: dict[str, Any] = {"rows": [{"name": "a", "cell": "darts-v2"}]}
    data["engine"] = {"name": "ray", "address": address}
    engine, _ = start_ray(StudyConfig.from_data(data))
    start(halving(images), runs=tmp_path, name="alone")
    searched(halving(images), engine, tmp_path)
    assert_same_run(tmp_path / "run", tmp_path / "alone")
