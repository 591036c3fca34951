"""Two processes of a run as two threads of this one: quick, and with the exchanges of real ones."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from prnas.config.search import SearchConfig
from prnas.config.sections import ComputeConfig
from prnas.data.dataset import load
from prnas.runs.batch_size import CpuProbe
from prnas.runs.context import RunContext
from prnas.runs.processes import Processes
from prnas.searching.search import Search


class Exchange:
    """Values of several threads, each waiting for the others, as processes do."""

    def __init__(self, size: int, timeout: float = 60) -> None:
        self.barrier = threading.Barrier(size, timeout=timeout)
        self.values: dict[int, Any] = {}

    def __call__(self, rank: int, kind: str, value: Any) -> list[Any]:
        self.values[rank] = (kind, value)
        self.barrier.wait()
        given = dict(self.values)
        self.barrier.wait()
        assert {kind for kind, _ in given.values()} == {kind}, "different exchanges met"
        return [given[rank][1] for rank in sorted(given)]


class Rank(Processes):
    """One of the two."""

    def __init__(self, rank: int, meeting: Exchange) -> None:
        super().__init__(ComputeConfig(accelerator="cpu"))
        self.rank, self.size, self.meet = rank, 2, meeting

    def _reduced(self, values: Sequence[float], how: str) -> list[float]:
        columns = zip(*self.meet(self.rank, how, list(values)), strict=True)
        return [max(column) if how == "max" else sum(column) for column in columns]

    @torch.no_grad()
    def average(self, tensors: Sequence[Tensor], agree: Callable[[], None] = lambda: None) -> None:
        floating = [tensor for tensor in tensors if tensor.is_floating_point()]
        if not floating:
            return
        agree()
        given = self.meet(self.rank, "mean", [tensor.clone() for tensor in floating])
        for tensor, *others in zip(floating, *given, strict=True):
            tensor.copy_(torch.stack(others).mean(0))

    def broadcast(self, value: Any) -> Any:
        return self.meet(self.rank, "broadcast", value)[0]


def searched_by_two(config: SearchConfig) -> list[Search]:
    """The searches of both ranks, finished."""
    meeting, searches = Exchange(2), dict[int, Search]()
    failures: list[BaseException] = []

    def work(rank: int) -> None:
        try:
            processes = Rank(rank, meeting)
            data = load(config.images, processes.device, lambda _: None, 1e9)
            indices = Search.prepare(config, data, 2)
            context = RunContext(config, data, indices, processes, CpuProbe(None), None)
            searches[rank] = Search(context)
            searches[rank].go()
        except BaseException as error:
            failures.append(error)
            meeting.barrier.abort()

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return [searches[0], searches[1]]
