"""A try at computing gradients, repeated with fewer images at a time if memory runs out.

All processes of a run must go through the same exchanges in the same order. A process that runs out
of memory leaves the computation and says so in its next exchange. A process that wants to average
something in the midst of the computation (`average`) learns of it there, before anything is
averaged, and starts anew as well.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prnas.io.memory import is_out_of_memory, recover_memory
from prnas.runs import faults

if TYPE_CHECKING:
    from prnas.runs.run import AnyRun


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a forward pass: the mean loss, and the number of correct predictions.

    They stay on their device, so that the host need not wait for them; see `Run.optimize`.
    """

    loss: Tensor
    correct: Tensor

    @classmethod
    def of(cls, loss: Tensor, logits: Tensor, labels: Tensor) -> "Outcome":
        with torch.no_grad():
            correct = (logits.argmax(1) == labels).sum()
        return cls(loss.detach(), correct.to(loss.dtype))

    @classmethod
    def mean(cls, outcomes: Sequence["Outcome"]) -> "Outcome":
        """The mean outcome of several passes on the same images."""
        if len(outcomes) == 1:
            return outcomes[0]
        loss = torch.stack([outcome.loss for outcome in outcomes]).mean()
        return cls(loss, torch.stack([outcome.correct for outcome in outcomes]).mean())


class _OtherProcessFailed(Exception):  # noqa: N818 - not an error of this process
    """Another process ran out of memory in the attempt under way."""


def attempt(run: "AnyRun", parts: Sequence[str], gradients: Callable[[], Outcome]) -> Outcome:
    """Compute gradients from the next images of one or more parts of a step.

    `gradients` reads the images with `run.next_images`, and leaves all else but gradients and
    running statistics as it was, also when it raises. If memory runs out, here or in another
    process, the streams of these parts and all generators go back to where they were, and it is
    called again for a smaller batch. Running statistics do not go back; therefore the run is saved
    soon, so that a resumed one need not repeat this.
    """
    key = run.state.position.key("+".join(parts))
    while run.batch.replayed_fall(key) is not None:
        _lower_batch(run, key)
    while True:
        streams = {part: run.streams[part].state() for part in parts}
        generators = {name: source.get_state() for name, source in run.state.generators.items()}
        outcome, all_know = None, False
        try:
            with run.reading(parts):
                outcome = gradients()
        except _OtherProcessFailed:
            all_know = True  # no exchange is needed to agree
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            # The error itself is let go here: it holds what filled the memory.
        if not all_know:
            (failed,) = run.processes.maximum([float(outcome is None)])
            if outcome is not None and not failed:
                return outcome
        run.save_soon = True
        _clear_memory(run)
        for part, state in streams.items():
            run.streams[part].load_state(state)
        for name, state in generators.items():
            run.state.generators[name].set_state(state)
        if not _lower_batch(run, key):
            raise faults.out_of_memory(run)


def average(run: "AnyRun", tensors: Sequence[Tensor]) -> None:
    """Replace tensors by their means over all processes, within an attempt."""

    def agree() -> None:
        (failed,) = run.processes.maximum([0.0])
        if failed:
            raise _OtherProcessFailed

    run.processes.average(tensors, agree)


def _lower_batch(run: "AnyRun", key: str) -> bool:
    lowered = run.batch.lower(key)
    if lowered:
        run.record_batch("out-of-memory")
    return lowered


def _clear_memory(run: "AnyRun") -> None:
    run.last_images = {}
    for parameter in run.state.module.parameters():
        parameter.grad = None
    if run.processes.device.type == "cuda":
        torch.cuda.empty_cache()
    recover_memory()
