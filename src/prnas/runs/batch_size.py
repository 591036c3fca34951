"""The batch size as memory allows: a pure rule, and the probes that feed it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import psutil
import torch

from prnas.config.sections import BatchConfig
from prnas.io.memory import cgroup_limits, give_back_memory


def next_batch(batch: int, used: float, rule: BatchConfig, ceiling: int) -> int:
    """The batch size after `batch`, which used the share `used` of the memory at its peak.

    Memory is taken as linear in the batch; the result is the largest allowed size (`min` + n x
    `multiple`, at most `max` and `ceiling`) that stays within the share of memory and at most
    doubles the batch, but never less than `min`.
    """
    fitting = [
        size
        for size in allowed(rule, ceiling)
        if size <= 2 * batch and used * size <= rule.memory_share * batch
    ]
    return fitting[-1] if fitting else rule.min


def lower_batch(batch: int, rule: BatchConfig) -> int | None:
    """The size to try after `batch` ran out of memory: at most half; `None` below the minimum."""
    if batch <= rule.min:
        return None
    return max((size for size in allowed(rule, rule.max) if 2 * size <= batch), default=rule.min)


def allowed(rule: BatchConfig, ceiling: int) -> Sequence[int]:
    return range(rule.min, max(min(rule.max, ceiling), rule.min) + 1, rule.multiple)


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


def _kernel_peak() -> float:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    peaks = [1024.0 * int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    return max(peaks, default=0.0)


def probe_for(device: torch.device, limit: float | None, num_processes: int) -> MemoryProbe:
    """The probe of a device. Elsewhere than on CUDA the process's memory is what counts."""
    if device.type == "cuda":
        return CudaProbe(device, limit)
    return CpuProbe(limit, num_processes)


class BatchSize:
    """The batch size under way: reset, checked every few steps, lowered when memory runs out.

    `images` is the most that make sense. `replay` are decisions of an earlier session, by position:
    a resumed run repeats them, whatever memory it finds. `maximum` makes all processes agree; `log`
    gets every decision.
    """

    def __init__(
        self,
        rule: BatchConfig,
        probe: MemoryProbe,
        log: Callable[[str, int], None],
        maximum: Callable[[float], float],
        images: int,
        replay: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        self.rule, self.probe, self.log, self.maximum = rule, probe, log, maximum
        self.largest = min(rule.max, images)
        self.replay: dict[str, list[int]] = {}
        for key, sizes in (replay or {}).items():
            if possible := [size for size in sizes if size <= rule.max]:
                self.replay[key] = possible
        self.batch, self.ceiling = rule.min, self.largest

    def restart(self) -> None:
        """Back to the minimum: the candidates were replaced."""
        self.batch, self.ceiling = self.rule.min, self.largest
        self.probe.reset()

    def check(self, key: str) -> bool:
        """Adapt the batch to the memory that was used; true when it changed."""
        if self.rule.min == self.rule.max:
            return False  # fixed
        before = self.batch
        if key in self.replay:
            self.batch = self._sensible(self.replay[key][-1])
        else:
            used = self.maximum(self.probe.peak() / self.probe.total)
            self.batch = next_batch(before, used, self.rule, self.ceiling)
        self.log(key, self.batch)
        if self.batch != before:
            self.probe.reset()
        return self.batch != before

    def replayed_fall(self, key: str) -> int | None:
        """The size that an earlier run fell to next, if it ran out of memory here."""
        return next((size for size in self.replay.get(key, ()) if size < self.batch), None)

    def lower(self, key: str) -> bool:
        """Try less after running out of memory; false when there is no less."""
        lower = self.replayed_fall(key) or lower_batch(self.batch, self.rule)
        if lower is None:
            return False
        self.ceiling = max(self.batch - 1, self.rule.min)
        self.batch = lower
        self.log(key, lower)
        self.probe.reset()
        return True

    def state(self) -> dict[str, int]:
        return {"batch": self.batch, "ceiling": self.ceiling}

    def load_state(self, state: dict[str, int]) -> None:
        """Take a saved state, or as much of it as makes sense: there may be more processes now."""
        batch, ceiling = state["batch"], state["ceiling"]
        for size in (batch, ceiling):
            if type(size) is not int or not 0 <= size <= self.rule.max:
                raise ValueError(f"a batch must have 0 to {self.rule.max} images, got {size!r:.60}")
        self.batch = self._sensible(max(1, batch))
        self.ceiling = min(ceiling, self.largest)

    def _sensible(self, batch: int) -> int:
        if batch <= self.largest:
            return batch
        return allowed(self.rule, self.largest)[-1]
