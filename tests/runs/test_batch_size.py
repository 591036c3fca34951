"""The batch-size rule by examples and properties; probes on this very machine."""

from pathlib import Path

import psutil
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from prnas.config.sections import BatchConfig
from prnas.io.memory import cgroup_limits, free_memory, is_out_of_memory
from prnas.runs.batch_size import (
    BatchSize,
    CpuProbe,
    MemoryProbe,
    allowed,
    lower_batch,
    next_batch,
    probe_for,
)

PAPER = BatchConfig()  # 24, 8, 128 at 95 %


@pytest.mark.parametrize(
    ("batch", "used", "expected"),
    [
        (24, 0.10, 48),  # room for 228, but at most doubled
        (48, 0.20, 96),
        (96, 0.40, 128),  # the maximum
        (128, 0.95, 128),  # just fits
        (128, 0.96, 120),  # 126.7 would fit; sizes are 24 + 8n
        (64, 0.80, 72),  # 76 would fit
        (64, 0.95, 64),
        (24, 0.99, 24),  # never below the minimum
        (128, 4.00, 24),
        (24, 0.00, 48),
    ],
)
def test_the_rule_by_examples(batch: int, used: float, expected: int) -> None:
    assert next_batch(batch, used, PAPER, ceiling=128) == expected


@st.composite
def rules(draw: st.DrawFn) -> BatchConfig:
    low = draw(st.integers(1, 60))
    return BatchConfig(
        min=low,
        multiple=draw(st.integers(1, 20)),
        max=draw(st.integers(low, 300)),
        memory_share=draw(st.floats(0.1, 1)),
    )


@given(rules(), st.integers(1, 300), st.floats(0, 3), st.integers(1, 300))
def test_the_rule_is_the_textbooks(
    rule: BatchConfig, batch: int, used: float, ceiling: int
) -> None:
    best = rule.min
    size = rule.min
    while size <= min(rule.max, ceiling):
        if size <= 2 * batch and used * size <= rule.memory_share * batch:
            best = size
        size += rule.multiple
    assert next_batch(batch, used, rule, ceiling) == best


@given(rules(), st.integers(1, 300))
def test_lowering_at_least_halves_or_reaches_the_minimum(rule: BatchConfig, batch: int) -> None:
    lower = lower_batch(batch, rule)
    if batch <= rule.min:
        assert lower is None
    else:
        assert lower is not None
        assert lower in allowed(rule, rule.max)
        assert 2 * lower <= batch or lower == rule.min


class FakeProbe:
    """Memory in proportion to the batch."""

    def __init__(self, bytes_per_image: float) -> None:
        self.total = 1000.0
        self.bytes_per_image = bytes_per_image
        self.batch: BatchSize | None = None

    def peak(self) -> float:
        assert self.batch is not None
        return self.bytes_per_image * self.batch.batch

    def reset(self) -> None:
        pass


def make(
    bytes_per_image: float, replay: dict[str, list[int]] | None = None
) -> tuple[BatchSize, list]:
    log: list[tuple[str, int]] = []
    probe = FakeProbe(bytes_per_image)
    batch = BatchSize(PAPER, probe, lambda *one: log.append(one), lambda share: share, 500, replay)
    probe.batch = batch
    return batch, log


def test_the_batch_grows_to_what_fits_and_goes_back_after_a_replacement() -> None:
    batch, log = make(bytes_per_image=10)  # 95 fit
    sizes = [batch.batch]
    for step in range(5):
        batch.check(str(step))
        sizes.append(batch.batch)
    assert sizes == [24, 48, 88, 88, 88, 88]
    assert [size for _, size in log] == sizes[1:]
    batch.restart()
    assert batch.batch == 24


def test_what_ran_out_of_memory_is_not_tried_again_in_the_cycle() -> None:
    batch, _ = make(bytes_per_image=0.1)
    for step in range(5):
        batch.check(str(step))
    assert batch.batch == 128
    assert batch.lower("a")
    assert batch.batch == 64
    for step in range(5):
        batch.check(f"later {step}")
    assert batch.batch == 120
    while batch.lower("b"):
        assert batch.batch < 120
    assert batch.batch == 24


def test_decisions_of_an_earlier_run_are_taken_again_whatever_memory_says() -> None:
    first, log = make(bytes_per_image=10)
    for step in range(3):
        first.check(str(step))
    again, _ = make(bytes_per_image=1000, replay={key: [size] for key, size in log})
    for step, size in log:
        again.check(step)
        assert again.batch == size


def test_running_out_of_memory_twice_at_one_place_is_repeated_and_gone_on_from() -> None:
    batch, _ = make(0.1, replay={"p": [64, 40]})
    batch.load_state({"batch": 128, "ceiling": 128})
    fallen: list[int] = []
    while batch.replayed_fall("p") is not None:
        assert batch.lower("p")
        fallen.append(batch.batch)
    assert fallen == [64, 40]
    assert batch.lower("p")  # it fails again: there is still less to try
    assert batch.batch == 24
    assert not batch.lower("p")


def test_no_batch_is_larger_than_the_images() -> None:
    probe = FakeProbe(0.1)
    batch = BatchSize(PAPER, probe, lambda *_: None, lambda share: share, images=50)
    probe.batch = batch
    for step in range(4):
        batch.check(str(step))
    assert batch.batch == 48


def test_the_state_goes_there_and_back() -> None:
    batch, _ = make(10)
    batch.check("0")
    batch.lower("1")
    other, _ = make(10)
    other.load_state(batch.state())
    assert (other.batch, other.ceiling) == (batch.batch, batch.ceiling)


def test_a_batch_of_fewer_processes_is_cut_to_the_images_of_each() -> None:
    """One process had 48 images for itself; two have 24 each, or an epoch would have no step."""
    probe = FakeProbe(0.1)
    replay = {"p": [48]}
    batch = BatchSize(PAPER, probe, lambda *_: None, lambda share: share, 24, replay)
    probe.batch = batch
    batch.load_state({"batch": 48, "ceiling": 128})
    assert (batch.batch, batch.ceiling) == (24, 24)
    batch.check("p")
    assert batch.batch == 24


def test_what_running_out_of_memory_looks_like() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert is_out_of_memory(caught.value)
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory."))
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(RuntimeError("could not create a primitive"))  # oneDNN
    assert is_out_of_memory(RuntimeError("std::bad_alloc"))
    assert not is_out_of_memory(RuntimeError("shapes do not fit"))
    assert not is_out_of_memory(ValueError("out of memory"))


def test_the_cpu_probe_sees_a_peak_that_is_gone_again() -> None:
    probe: MemoryProbe = probe_for(torch.device("cpu"), None, 1)
    assert isinstance(probe, CpuProbe)
    probe.reset()
    before = probe.peak()
    large = torch.ones(50_000_000)
    del large
    assert probe.peak() - before > 150e6
    assert 0 < probe.peak() < probe.total


def test_a_limit_and_several_processes_share_the_machine() -> None:
    whole = CpuProbe(None).total
    assert CpuProbe(None, 2).total == pytest.approx(whole / 2)
    assert CpuProbe(1e9).total == 1e9


def test_control_groups_of_both_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jobs" / "one").mkdir(parents=True)
    (tmp_path / "jobs" / "one" / "memory.max").write_text("max\n")
    (tmp_path / "jobs" / "memory.max").write_text("4000000000\n")
    (tmp_path / "memory" / "jobs").mkdir(parents=True)
    (tmp_path / "memory" / "jobs" / "memory.limit_in_bytes").write_text("3000000000\n")
    lines = "5:cpu,memory:/jobs\n0::/jobs/one\n"
    real = Path.read_text

    def fake(self: Path, *arguments: object, **options: object) -> str:
        return lines if str(self) == "/proc/self/cgroup" else real(self)

    monkeypatch.setattr(Path, "read_text", fake)
    assert sorted(cgroup_limits(tmp_path)) == [3e9, 4e9]


def test_free_memory_is_shared_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = free_memory()
    assert 0 < whole <= psutil.virtual_memory().total
    assert free_memory(4) < whole / 3
    used = psutil.Process().memory_info().rss
    assert free_memory(1, used + 1e6) <= 2e6
    assert free_memory(1, 1.0) == 0
    monkeypatch.setattr("prnas.io.memory.cgroup_limits", lambda: [used + 3e6])
    assert free_memory() <= 4e6
