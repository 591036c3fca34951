"""Attempts: what is rolled back when memory runs out, and processes that never wait in vain."""

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from prnas.io.errors import UserError
from prnas.runs.attempt import Outcome, attempt, average
from prnas.runs.state import Position
from tests.support.two_ranks import Exchange

OUTCOME = Outcome(torch.tensor(0.5), torch.tensor(1.0))


class FakeProcesses:
    device = torch.device("cpu")

    def __init__(self, rank: int, exchange: Exchange | None = None, size: int = 1) -> None:
        self.rank, self.size, self._exchange = rank, size, exchange

    def maximum(self, values: Sequence[float]) -> list[float]:
        if self._exchange is None:
            return list(values)
        return [
            max(column) for column in zip(*self._exchange(self.rank, "max", values), strict=True)
        ]

    def average(self, tensors: Sequence[Tensor], agree: Callable[[], None]) -> None:
        if self._exchange is None:
            return
        agree()
        for tensor in tensors:
            given = self._exchange(self.rank, "mean", tensor.clone())
            tensor.copy_(torch.stack(given).mean(0))


class FakeStream:
    position = 0

    def state(self) -> int:
        return self.position

    def load_state(self, state: int) -> None:
        self.position = state


class FakeBatch:
    def __init__(self, replay: Sequence[int] = ()) -> None:
        self.batch, self.rule, self.replay = 8, SimpleNamespace(min=1), list(replay)

    def replayed_fall(self, key: str) -> int | None:
        return next((size for size in self.replay if size < self.batch), None)

    def lower(self, key: str) -> bool:
        if self.batch == 1:
            return False
        self.batch //= 2
        return True


class FakeRun:
    """As much of a run as an attempt needs."""

    memory_advice = not_finite_advice = ""

    def __init__(self, processes: FakeProcesses | None = None, replay: Sequence[int] = ()) -> None:
        self.processes = processes or FakeProcesses(0)
        self.streams = {"weights": FakeStream(), "architecture": FakeStream()}
        generator = torch.Generator().manual_seed(0)
        self.state = SimpleNamespace(
            position=Position(),
            generators={"dropout": generator},
            module=nn.Linear(1, 1),
            where="step 1",
        )
        self.batch = FakeBatch(replay)
        self.last_images = {}
        self.save_soon = False
        self.reasons: list[str] = []

    def reading(self, parts: Sequence[str]) -> Any:
        return nullcontext()

    def record_batch(self, reason: str) -> None:
        self.reasons.append(reason)


def test_streams_generators_and_gradients_go_back_when_memory_runs_out() -> None:
    run: Any = FakeRun()
    seen: list[tuple[int, int, float, bool]] = []

    def gradients() -> Outcome:
        drawn = float(torch.rand((), generator=run.state.generators["dropout"]))
        clean = run.state.module.weight.grad is None
        seen.append((run.batch.batch, run.streams["architecture"].position, drawn, clean))
        for stream in run.streams.values():
            stream.position += run.batch.batch
        run.state.module.weight.grad = torch.ones(1, 1)
        if run.batch.batch > 2:
            raise MemoryError
        return OUTCOME

    assert attempt(run, ["architecture", "weights"], gradients) is OUTCOME
    assert [batch for batch, *_ in seen] == [8, 4, 2]
    assert {rest for _, *rest in map(tuple, seen) for rest in [tuple(rest)]} == {seen[0][1:]}
    assert {stream.position for stream in run.streams.values()} == {2}
    assert run.reasons == ["out-of-memory"] * 2
    assert run.save_soon


def test_what_is_known_to_fail_is_not_tried_again() -> None:
    run: Any = FakeRun(replay=[4, 2])
    tried: list[int] = []

    def gradients() -> Outcome:
        tried.append(run.batch.batch)
        return OUTCOME

    attempt(run, ["weights"], gradients)
    assert tried == [2]
    assert not run.save_soon


def test_other_errors() -> None:
    run: Any = FakeRun()

    def broken() -> Outcome:
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        attempt(run, ["weights"], broken)

    def hungry() -> Outcome:
        raise MemoryError

    with pytest.raises(UserError, match="out of memory with a batch of 1"):
        attempt(run, ["weights"], hungry)


@pytest.mark.parametrize("before_average", [True, False])
def test_a_process_that_averages_midway_never_waits_for_one_that_failed(
    before_average: bool,
) -> None:
    """Rank 1 runs out of memory before or after the exchange; both start anew and agree."""
    exchange = Exchange(2, timeout=10)
    means: dict[int, list[float]] = {0: [], 1: []}
    batches: dict[int, int] = {}

    def work(rank: int) -> None:
        run: Any = FakeRun(FakeProcesses(rank, exchange, 2))

        def gradients() -> Outcome:
            fails = rank == 1 and run.batch.batch == 8
            if fails and before_average:
                raise MemoryError
            tensor = torch.tensor([float(rank)])
            average(run, [tensor])
            means[rank].append(float(tensor))
            if fails:
                raise MemoryError
            return OUTCOME

        attempt(run, ["weights"], gradients)
        batches[rank] = run.batch.batch

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert batches == {0: 4, 1: 4}
    expected = [0.5] if before_average else [0.5, 0.5]
    assert means == {0: expected, 1: expected}
