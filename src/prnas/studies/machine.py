"""The CPUs, GPUs and memory of this machine, shared out among the jobs of a study."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from prnas.io.errors import UserError
from prnas.io.memory import cgroup_limits
from prnas.studies.attempt import Slot
from prnas.studies.config import StudyConfig

_MEMORY_SHARE = 0.9  # Share of the machine's memory for all jobs together.


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of a cluster, by what its engine may give to jobs."""

    cpus: float
    gpus: float = 0.0
    memory: float = math.inf  # GB


@dataclass(frozen=True, slots=True)
class Share:
    """The share of each job, and the slots of jobs that run at the same time."""

    threads: int
    memory: float | None  # GB
    gpus: float
    slots: tuple[Slot, ...]


def num_cpus() -> int:
    """The CPUs that this process may use, which may be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def visible_gpus() -> list[str]:
    """The indices or names of the GPUs that this process may use."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [name.strip() for name in given.split(",") if name.strip() not in ("", "-1")]
    if not any(Path("/dev").glob("nvidia[0-9]*")):
        return []  # So that PyTorch need not be loaded to find none.
    import torch

    return [str(index) for index in range(torch.cuda.device_count())]


def total_memory() -> float:
    """GB of main memory that this process may use."""
    return min([psutil.virtual_memory().total, *cgroup_limits()]) / 1e9


def share_out(
    study: StudyConfig,
    cpus: int | None = None,
    gpus: list[str] | None = None,
    memory: float | None = None,
    single: bool = False,
) -> Share:
    """The slots for jobs on this machine. `single`: one alone, with all that it has."""
    wanted = study.resources
    cpus = num_cpus() if cpus is None else cpus
    gpus = visible_gpus() if gpus is None and wanted.gpus != 0 else gpus or []
    memory = total_memory() if memory is None else memory
    of_job = wanted.gpus if wanted.gpus is not None else (1.0 if gpus else 0.0)
    by_gpu = _gpu_sets(gpus, of_job)
    if of_job and not by_gpu:
        raise UserError(
            f"each job needs {of_job:g} GPUs (resources.gpus), and this machine has {len(gpus)}"
        )
    number = (
        1 if single else study.slots or (len(by_gpu) if of_job else max(1, cpus // wanted.threads))
    )
    if of_job:
        number = min(number, len(by_gpu))
    elif wanted.memory is not None and not study.slots:
        number = max(1, min(number, math.floor(_MEMORY_SHARE * memory / wanted.memory)))
    limit = wanted.memory
    if limit is None and not of_job:
        limit = round(_MEMORY_SHARE * memory / number, 3)
    threads = {"OMP_NUM_THREADS": str(wanted.threads)}
    if of_job:
        slots = [
            Slot(f"GPU {visible}", {**threads, "CUDA_VISIBLE_DEVICES": visible})
            for visible in by_gpu[:number]
        ]
    else:
        slots = [Slot(f"slot {index + 1}", threads) for index in range(number)]
    return Share(wanted.threads, limit, of_job, tuple(slots))


def share_out_nodes(study: StudyConfig, nodes: Sequence[Node]) -> Share:
    """The jobs that a cluster has room for at the same time, all with the same share.

    The engine chooses the machine and the GPUs of each. With `slots` in the study there are as
    many, and those without room wait for it: for other users, or machines that are to come.
    """
    wanted = study.resources
    of_job = wanted.gpus
    if of_job is None:
        of_job = 1.0 if any(node.gpus >= 1 for node in nodes) else 0.0
    room = [_room(node, wanted.threads, of_job, wanted.memory) for node in nodes]
    number = study.slots or sum(room)
    if not number:
        needs = [f"{wanted.threads} CPUs", f"{of_job:g} GPUs" if of_job else ""]
        needs.append("" if wanted.memory is None else f"{wanted.memory:g} GB")
        raise UserError(
            f"none of the cluster's {len(nodes)} machines has room for a job, which needs "
            f"{' and '.join(filter(None, needs))} (resources); with slots: N, jobs wait for room"
        )
    limit = wanted.memory
    if limit is None and not of_job:
        shares = [node.memory / jobs for node, jobs in zip(nodes, room, strict=True) if jobs]
        limit = round(_MEMORY_SHARE * min(shares, default=math.inf), 3)
        limit = limit if math.isfinite(limit) else None
    slot = Slot("Ray", {"OMP_NUM_THREADS": str(wanted.threads)})
    return Share(wanted.threads, limit, of_job, (slot,) * number)


def _room(node: Node, threads: int, gpus: float, memory: float | None) -> int:
    jobs = math.floor(node.cpus / threads)
    if gpus >= 1:
        jobs = min(jobs, math.floor(node.gpus / gpus))
    elif gpus:
        jobs = min(jobs, math.floor(node.gpus) * math.floor(1 / gpus + 1e-9))
    if memory is not None:
        jobs = min(jobs, math.floor(min(node.memory / memory, 1e6)))
    return jobs


def _gpu_sets(gpus: list[str], of_job: float) -> list[str]:
    """The GPUs of each job at once, as CUDA names them: "0", or "0,1"."""
    if not of_job:
        return []
    if of_job < 1:
        jobs = math.floor(1 / of_job + 1e-9)
        return [gpu for _ in range(jobs) for gpu in gpus]
    size = int(of_job)
    return [",".join(gpus[i : i + size]) for i in range(0, len(gpus) - size + 1, size)]
