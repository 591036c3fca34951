from typing import Any

import pytest

from prnas.io.errors import UserError
from prnas.studies.config import StudyConfig
from prnas.studies.machine import (
    Node,
    Share,
    num_cpus,
    share_out,
    share_out_nodes,
    total_memory,
)

GPUS = ["0", "1", "2", "3"]


def shared(gpus: list[str], single: bool = False, **changes: Any) -> Share:
    """On a machine of eight CPUs and 40 GB."""
    study = StudyConfig.from_data({"rows": [{"name": "a", "cell": "darts-v2"}], **changes})
    return share_out(study, cpus=8, gpus=gpus, memory=40.0, single=single)


@pytest.mark.parametrize(
    ("resources", "slots", "number", "memory"),
    [
        ({}, None, 8, 4.5),
        ({"threads": 3}, None, 2, 18.0),
        ({"threads": 16}, None, 1, 36.0),
        ({"memory": 10.0}, None, 3, 10.0),
        ({"memory": 100.0}, None, 1, 100.0),
        ({"memory": 10.0}, 5, 5, 10.0),
        ({}, 3, 3, 12.0),
    ],
)
def test_cpus_and_memory_are_shared_out(
    resources: dict[str, Any], slots: int | None, number: int, memory: float
) -> None:
    share = shared([], resources=resources, slots=slots)
    assert (len(share.slots), share.memory, share.gpus) == (number, memory, 0)
    threads = str(resources.get("threads", 1))
    assert all(slot.environment == {"OMP_NUM_THREADS": threads} for slot in share.slots)


@pytest.mark.parametrize(
    ("of_job", "slots", "visible"),
    [
        (None, None, GPUS),
        (1, 3, ["0", "1", "2"]),
        (1, 9, GPUS),
        (2, None, ["0,1", "2,3"]),
        (3, None, ["0,1,2"]),
        (0.5, None, [*GPUS, *GPUS]),
        (0.3, None, [*GPUS, *GPUS, *GPUS]),
    ],
)
def test_gpus_are_shared_out(of_job: float | None, slots: int | None, visible: list[str]) -> None:
    share = shared(GPUS, resources={"gpus": of_job}, slots=slots)
    assert [slot.environment["CUDA_VISIBLE_DEVICES"] for slot in share.slots] == visible
    assert share.memory is None, "the GPU's own memory is the limit"


def test_jobs_without_gpus_leave_them_alone() -> None:
    share = shared(GPUS, resources={"gpus": 0}, slots=2)
    assert share.gpus == 0
    assert all("CUDA_VISIBLE_DEVICES" not in slot.environment for slot in share.slots)


def test_too_few_gpus_are_refused() -> None:
    with pytest.raises(UserError, match="needs 2 GPUs"):
        shared(["0"], resources={"gpus": 2})


def test_a_single_job_has_the_machine_for_itself() -> None:
    share = shared([], single=True)
    assert (len(share.slots), share.memory) == (1, 36.0)
    assert len(shared(GPUS, single=True).slots) == 1


def test_the_visible_gpus_are_those_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    study = StudyConfig.from_data({"rows": [{"name": "a", "cell": "darts-v2"}]})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, 5")
    names = [slot.environment["CUDA_VISIBLE_DEVICES"] for slot in share_out(study).slots]
    assert names == ["2", "5"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert share_out(study).gpus == 0


SMALL, LARGE = Node(2.0, 0.0, 10.0), Node(9.0, 3.0, 90.0)


@pytest.mark.parametrize(
    ("nodes", "resources", "slots", "number", "memory", "gpus"),
    [
        ([SMALL], {}, None, 2, 4.5, 0),
        ([SMALL, SMALL], {"threads": 2}, None, 2, 9.0, 0),
        ([SMALL, LARGE], {"gpus": 0}, None, 11, 4.5, 0),  # The least share of any machine.
        ([SMALL, LARGE], {"gpus": 0, "threads": 4}, None, 2, 40.5, 0),
        ([SMALL, LARGE], {"gpus": 0, "memory": 8.0}, None, 10, 8.0, 0),
        ([SMALL, LARGE], {}, None, 3, None, 1),
        ([SMALL, LARGE], {"gpus": 2}, None, 1, None, 2),
        ([SMALL, LARGE], {"gpus": 0.5}, None, 6, None, 0.5),
        ([SMALL], {}, 7, 7, 4.5, 0),
        ([], {"gpus": 1}, 4, 4, None, 1),
    ],
)
def test_a_cluster_is_shared_out(
    nodes: list[Node],
    resources: dict[str, Any],
    slots: int | None,
    number: int,
    memory: float | None,
    gpus: float,
) -> None:
    data = {"rows": [{"name": "a", "cell": "darts-v2"}], "resources": resources, "slots": slots}
    share = share_out_nodes(StudyConfig.from_data(data), nodes)
    assert (len(share.slots), share.memory, share.gpus) == (number, memory, gpus)
    threads = str(resources.get("threads", 1))
    assert all(slot.environment == {"OMP_NUM_THREADS": threads} for slot in share.slots)


def test_a_cluster_without_room_is_refused() -> None:
    rows = [{"name": "a", "cell": "darts-v2"}]
    study = StudyConfig.from_data({"rows": rows, "resources": {"threads": 4, "memory": 2.0}})
    with pytest.raises(UserError, match=r"none of the cluster's 1 machines .* 4 CPUs and 2 GB"):
        share_out_nodes(study, [SMALL])


def test_this_machine_has_something() -> None:
    assert num_cpus() >= 1
    assert total_memory() > 0.1
