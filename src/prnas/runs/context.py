"""The context of a run: its config, images, folder, processes, and those who watch it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from torch import Tensor

from prnas.config.sections import RunConfig
from prnas.data.dataset import DataSet
from prnas.runs.batch_size import MemoryProbe
from prnas.runs.events import Callback
from prnas.runs.folder import RunFolder
from prnas.runs.processes import Processes
from prnas.runs.signals import Signals

C = TypeVar("C", bound=RunConfig)


@dataclass(frozen=True)
class RunContext(Generic[C]):
    """The things that a run works with."""

    config: C
    data: DataSet
    indices: Mapping[str, Tensor]  # training images of each part of a step
    processes: Processes
    probe: MemoryProbe
    folder: RunFolder | None
    callbacks: Sequence[Callback] = ()
    signals: Signals = field(default_factory=Signals)
    replay: bool = True  # whether batch decisions of an earlier session are repeated
