"""Runs on another device than the CPU, as far as PyTorch's `meta` device shows it.

It computes shapes and no numbers; a tensor that was left behind on the CPU is an error there.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from prnas.config.methods import METHODS, Method
from prnas.config.sections import ComputeConfig
from prnas.data.dataset import load, normalization
from prnas.nets import devices
from prnas.retraining.retraining import Retraining
from prnas.runs import run
from prnas.runs.batch_size import CpuProbe
from prnas.runs.context import RunContext
from prnas.runs.events import Callback
from prnas.runs.processes import Processes
from prnas.runs.signals import stop_signals
from prnas.searching.search import Search
from tests.support.settings import small_config, small_training
from tests.support.watching import Watch

META = torch.device("meta")
CYCLE = {"epochs": 1, "grace_epochs": 0, "morphisms": 2, "candidates": 4, "skip_dropout": 0.2}


class HostWaits(TorchDispatchMode):
    """Counts how often the host waits for the device: to read numbers, or to send some at once.

    What it reads is made up.
    """

    number = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        if func is torch.ops.aten._local_scalar_dense.default and tensors[0].is_meta:
            self.number += 1
            return 0.5
        if func is torch.ops.aten._to_copy.default and tensors[0].is_meta:
            if kwargs.get("device") == torch.device("cpu"):
                self.number += 1
                return torch.full(tensors[0].shape, 0.5).to(kwargs.get("dtype") or tensors[0].dtype)
        elif func is torch.ops.aten._to_copy.default and kwargs.get("device") == META:
            self.number += not kwargs.get("non_blocking")
        elif func is torch.ops.aten.copy_.default and tensors[0].is_meta != tensors[1].is_meta:
            self.number += not (kwargs.get("non_blocking") or args[2:] == (True,))
            return tensors[0]
        elif len(tensors) > 1 and not tensors[0].is_meta and tensors[0].ndim:
            others = [x for x in tensors[1:] if x.is_meta]
            assert not others, f"{func} mixes devices"
        return func(*args, **kwargs)


@pytest.fixture(autouse=True)
def copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies to the device do not wait, as on CUDA."""
    monkeypatch.setattr(devices, "ASYNCHRONOUS", ("meta",))


@pytest.fixture
def kernels() -> Iterator[None]:
    """The kernel that CUDA has and `meta` lacks."""
    library = torch.library.Library("aten", "IMPL", "Meta")

    def update_stats(x: Any, mean: Any, variance: Any, momentum: float) -> Any:
        return x.new_empty(x.shape[1]), x.new_empty(x.shape[1])

    library.impl("batch_norm_update_stats", update_stats)
    yield
    library._destroy()


@pytest.fixture(autouse=True)
def numbers(monkeypatch: pytest.MonkeyPatch, images: Path) -> None:
    """What a run computes from the images before its first step needs their numbers."""
    data = load(small_config(images).images, torch.device("cpu"), print, 1e9)
    normal = normalization(data.train, torch.arange(len(data.train)))
    monkeypatch.setattr(run, "normalization", lambda *_: normal)
    monkeypatch.setattr(run, "digest_of", lambda *_: "digest")


def context_of(kind: Any, config: Any, *callbacks: Callback) -> RunContext[Any]:
    processes = Processes(ComputeConfig(accelerator="cpu"))
    processes.device = META
    data = load(config.images, META, print, 1e9)
    indices = kind.prepare(config, data, 1)
    with stop_signals() as signals:
        watched = (None, callbacks, signals)
        return RunContext(config, data, indices, processes, CpuProbe(None), *watched)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("execution", ["fused", "plain"])
@pytest.mark.parametrize("recompute", [False, True], ids=["keep", "recompute"])
def test_a_search_step_leaves_nothing_behind_and_waits_once(
    images: Path, execution: Literal["fused", "plain"], recompute: bool
) -> None:
    config = small_config(
        images,
        schedule={
            "cycles": [
                {
                    "epochs": 2,
                    "grace_epochs": 0,
                    "morphisms": 2,
                    "candidates": 4,
                    "skip_dropout": 0.2,
                },
                {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1},
            ]
        },
        compute={"supernet": execution, "recompute": recompute},
    )
    search = Search(context_of(Search, config))
    state = search.state
    state.supernet.train()
    for _ in range(2):  # before and after the candidates are replaced
        assert {weight.device for weight in state.supernet.parameters()} == {META}
        with HostWaits() as waits:
            search.take_step()
        assert waits.number == 1
        assert state.supernet.execution == execution
        with HostWaits():
            if state.position.cycle == 0:
                search._end_cycle()
    with HostWaits():
        assert search.validate()["validation"].images == 48


def test_auto_is_plain_where_the_device_lacks_a_kernel_and_says_so(images: Path) -> None:
    watch = Watch()
    search = Search(context_of(Search, small_config(images), watch))
    assert [text for text in watch.messages if "meta lacks kernels of the fused supernet" in text]
    with HostWaits() as waits:
        search.take_step()
    assert waits.number == 1
    assert search.state.supernet.execution == "plain"


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_no_method_leaves_anything_behind(images: Path, method: Method) -> None:
    """In an epoch of any method. How often the host waits is its own affair."""
    cycle = {"epochs": 2, "grace_epochs": 0, "morphisms": 0, "candidates": 4}
    last = {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1}
    config = small_config(
        images,
        schedule={"cycles": [cycle, last]},
        architecture={"lr": 0.01},
        searcher={"controller": {"updates": 2, "batch": 2, "hidden": 4}},
    )
    config = config.override(method.overrides())
    if config.architecture.samples > 2:
        config = config.override(["architecture.samples=2"])  # Two show what more would.
    search = Search(context_of(Search, config))
    search.state.supernet.train()
    for _ in range(2):
        with HostWaits() as waits:
            search.take_step()
        assert 1 <= waits.number < 20 * search.config.architecture.samples
        with HostWaits():
            search.conclude_epoch()
    assert {tensor.device for tensor in search.state.supernet.state_dict().values()} == {META}
    with HostWaits():
        assert search.validate()["validation"].images == 48


def test_a_retraining_step_leaves_nothing_behind_and_waits_once(images: Path) -> None:
    config = small_training(images, training={"epochs": 2, "average_decay": 0.99})
    training = Retraining(context_of(Retraining, config))
    training.state.network.train()
    assert {weight.device for weight in training.state.network.parameters()} == {META}
    with HostWaits() as waits:
        training.take_step()
    assert waits.number == 1
    with HostWaits():
        training.validate()
