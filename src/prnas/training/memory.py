"""The batch size as memory allows: a pure rule, and the probes that feed it."""

import ctypes
import gc
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import psutil
import torch

from prnas.config import BatchConfig
from prnas.training.checked import whole

OUT_OF_MEMORY_TEXTS = (
    *("can't allocate memory", "not enough memory", "out of memory"),
    *("cudnn_status_alloc_failed", "cublas_status_alloc_failed"),
    # What a CPU's libraries say: the C library, C++, and oneDNN, which does not tell why.
    *("cannot allocate memory", "bad_alloc", "could not create a primitive"),
    *("could not execute a primitive", "could not create a memory object"),
)


def next_batch(batch: int, used: float, total: float, rule: BatchConfig, ceiling: int) -> int:
    """The batch size after `batch`, which used `used` of `total` bytes at its peak.

    Memory is taken as linear in the batch; the result is the largest allowed size (`min` + n x
    `multiple`, at most `max` and `ceiling`) that stays within the share of memory and at most
    doubles the batch, but never less than `min`.
    """
    fitting = [
        size
        for size in allowed(rule, ceiling)
        if size <= 2 * batch and used * size <= rule.memory_share * total * batch
    ]
    return fitting[-1] if fitting else rule.min


def lower_batch(batch: int, rule: BatchConfig) -> int | None:
    """The size to try after `batch` ran out of memory: at most half; `None` below the minimum."""
    if batch <= rule.min:
        return None
    return max((size for size in allowed(rule, rule.max) if 2 * size <= batch), default=rule.min)


def allowed(rule: BatchConfig, ceiling: int) -> Sequence[int]:
    return range(rule.min, max(min(rule.max, ceiling), rule.min) + 1, rule.multiple)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out, on a GPU or on the CPU."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(one in text for one in OUT_OF_MEMORY_TEXTS)


def free_memory(num_processes: int = 1, limit: float | None = None) -> float:
    """Bytes of main memory that one of so many processes may still take.

    `limit` is for each of them; a control group's is for all.
    """
    used = psutil.Process().memory_info().rss
    groups = [one - num_processes * used for one in cgroup_limits()]
    free = min([psutil.virtual_memory().available, *groups]) / num_processes
    return max(0.0, free if limit is None else min(free, limit - used))


class MemoryProbe(Protocol):
    """Measures one process's use of its device's memory, in bytes."""

    total: float

    def peak(self) -> float:
        """The most that was used since the last reset."""
        ...

    def reset(self) -> None: ...


class CudaProbe:
    """The allocator's peak against the GPU's memory."""

    def __init__(self, device: torch.device, limit: float | None) -> None:
        self.device = device
        self.total = torch.cuda.get_device_properties(device).total_memory
        if limit is not None:
            self.total = min(self.total, limit)

    def peak(self) -> float:
        return torch.cuda.max_memory_reserved(self.device)

    def reset(self) -> None:
        torch.cuda.empty_cache()  # else what a larger batch left behind would count for a smaller
        torch.cuda.reset_peak_memory_stats(self.device)


class CpuProbe:
    """The process's resident set against a limit, the control group's, or the machine's memory.

    On Linux the peak between two readings is the kernel's own. Elsewhere it is the greatest value
    that `peak` has seen, which is called once a step.
    """

    def __init__(self, limit: float | None, num_processes: int = 1) -> None:
        machine = min([psutil.virtual_memory().total, *cgroup_limits()])
        self.total = min(machine / num_processes, limit if limit is not None else machine)
        self._process = psutil.Process()
        self._seen = 0.0

    def peak(self) -> float:
        self._seen = max(self._seen, float(self._process.memory_info().rss), _kernel_peak())
        return self._seen

    def reset(self) -> None:
        self._seen = 0.0
        give_back_memory()  # else what a larger batch left behind would count for a smaller
        # Sets the kernel's peak to the present; where it cannot, that of the whole process counts.
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")


def give_back_memory() -> None:
    """Let the C library return freed memory to the system, where it can be asked to."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def recover_memory() -> None:
    """After running out: let go of what is free, though something may still refer to it."""
    gc.collect()
    give_back_memory()


def check_room(num_bytes: int) -> None:
    """Raise a `MemoryError` if so much cannot be had, before something asks that would abort."""
    try:
        bytearray(num_bytes)
    except MemoryError:
        recover_memory()
        bytearray(num_bytes)


def _kernel_peak() -> float:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((1024.0 * int(one.split()[1]) for one in lines if one.startswith("VmHWM")), 0.0)


def cgroup_limits(root: Path = Path("/sys/fs/cgroup")) -> list[float]:
    """The memory limits of the control groups that hold this process, versions 2 and 1."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found: list[float] = []
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            base, name = root, "memory.max"
        elif "memory" in controllers.split(","):
            base, name = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        inner = base / group.lstrip("/")
        # A limit of any group around the innermost one counts as well.
        for folder in [inner, *inner.parents]:
            if not folder.is_relative_to(base):
                break
            try:
                found.append(float((folder / name).read_text()))
            except (OSError, ValueError):  # absent, or "max"
                continue
    return [limit for limit in found if 0 < limit < 2**60]


def probe_for(device: torch.device, limit: float | None, num_processes: int) -> MemoryProbe:
    """The probe of a device. Elsewhere than on CUDA the process's memory is what counts."""
    if device.type == "cuda":
        return CudaProbe(device, limit)
    return CpuProbe(limit, num_processes)


class BatchSize:
    """The batch size under way: reset, checked every few steps, lowered when memory runs out.

    `images` is the most that make sense. `replay` are decisions of an earlier run that is being
    repeated, by the place where they were taken: a resumed search takes them again, whatever memory
    it finds. `most` makes all processes agree; `log` gets every decision.
    """

    def __init__(
        self,
        rule: BatchConfig,
        probe: MemoryProbe,
        log: Callable[[str, int], None],
        most: Callable[[float], float],
        images: int,
        replay: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        self.rule, self.probe, self.log, self.most = rule, probe, log, most
        self.largest = min(rule.max, images)
        # Notes of an earlier session: none can be of more than the rule allows.
        self.replay = {
            place: kept
            for place, sizes in (replay or {}).items()
            if (kept := [size for size in sizes if size <= rule.max])
        }
        self.batch, self.ceiling = rule.min, self.largest

    def restart(self) -> None:
        """Back to the minimum: the candidates were replaced."""
        self.batch, self.ceiling = self.rule.min, self.largest
        self.probe.reset()

    def check(self, place: str) -> bool:
        """Adapt the batch to the memory that was used; true when it changed."""
        if self.rule.min == self.rule.max:
            return False  # fixed
        before = self.batch
        if place in self.replay:
            self.batch = self._sensible(self.replay[place][-1])
        else:
            used = self.most(self.probe.peak() / self.probe.total)
            self.batch = next_batch(before, used, 1.0, self.rule, self.ceiling)
        self.log(place, self.batch)
        if self.batch != before:
            self.probe.reset()
        return self.batch != before

    def known_to_fail(self, place: str) -> int | None:
        """The size that an earlier run fell to next, if it ran out of memory here."""
        return next((size for size in self.replay.get(place, ()) if size < self.batch), None)

    def lower(self, place: str) -> bool:
        """Try less after running out of memory; false when there is no less."""
        lower = self.known_to_fail(place) or lower_batch(self.batch, self.rule)
        if lower is None:
            return False
        self.ceiling = max(self.batch - 1, self.rule.min)
        self.batch = lower
        self.log(place, lower)
        self.probe.reset()
        return True

    def state(self) -> dict[str, int]:
        return {"batch": self.batch, "ceiling": self.ceiling}

    def load_state(self, state: dict[str, int]) -> None:
        """As it was saved, or as much of it as makes sense: there may be more processes now."""
        most = max(self.rule.max, self.rule.min)
        self.batch = self._sensible(max(1, whole("batch", state["batch"], most)))
        self.ceiling = min(whole("ceiling", state["ceiling"], most), self.largest)

    def _sensible(self, batch: int) -> int:
        if batch <= self.largest:
            return batch
        return allowed(self.rule, self.largest)[-1]
