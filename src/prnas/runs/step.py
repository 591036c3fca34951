"""One step of any training: with a smaller batch of the same images if memory runs out."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from prnas.data.augment import Augmentation
from prnas.data.streams import Stream
from prnas.io.errors import UserError
from prnas.io.memory import is_out_of_memory, recover_memory
from prnas.runs.batch_size import BatchSize
from prnas.runs.finite import first_not_finite
from prnas.runs.processes import Processes
from prnas.runs.state import RunState

S = TypeVar("S", bound=RunState)


class StepTaker(ABC, Generic[S]):
    """Takes steps. `lowered` is told when the batch had to become smaller."""

    weights_part: str  # the part whose images count for the epoch
    dropout: str  # the name of the generator that a network draws from

    def __init__(
        self,
        processes: Processes,
        state: S,
        streams: Mapping[str, Stream],
        augmentation: Augmentation,
        batch: BatchSize,
        lowered: Callable[[], None],
    ) -> None:
        self.processes, self.state, self.streams = processes, state, streams
        self.augmentation, self.batch = augmentation, batch
        self.lowered = lowered
        self.last_images: Tensor | None = None  # until the step is done

    @abstractmethod
    def forward_backward(self, part: str) -> tuple[float, float]:
        """Gradients of a part for the next batch: its mean loss, and how many were right."""

    @abstractmethod
    def update(self, part: str, loss: float, correct: float) -> None:
        """Let the gradients change the parameters, and count the step: see `optimize`."""

    @abstractmethod
    def advice(self, what: str) -> str:
        """What to try after a fault: 'out-of-memory' or 'not finite'."""

    def do(self, part: str) -> bool:
        """One step of one part.

        True if it ran out of memory on the way: then a failed pass has touched running statistics,
        and the state should be saved, so that a resumed run does not have to repeat it.
        """
        place = self.state.position.place(part)
        while self.batch.known_to_fail(place) is not None:
            self._lower(place)
        ran_out = False
        while True:
            generators = [self.state.generators[name] for name in (f"augment {part}", self.dropout)]
            before = self.streams[part].state(), [one.get_state() for one in generators]
            loss = correct = 0.0
            failed = False
            try:
                loss, correct = self.forward_backward(part)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                failed = True  # the error itself is let go: it holds what filled the memory
            any_failed, any_broken = self.processes.most(
                [float(failed), float(not math.isfinite(loss))]
            )
            if not any_failed:
                if any_broken:
                    raise self.not_finite(part, "loss")
                self.update(part, loss, correct)
                self.last_images = None
                return ran_out
            ran_out = True
            self.last_images = None
            self._clear_gradients()
            self.streams[part].load_state(before[0])
            for generator, known in zip(generators, before[1], strict=True):
                generator.set_state(known)
            if not self._lower(place):
                raise self.out_of_memory()

    def next_images(self, part: str) -> tuple[Tensor, Tensor]:
        """The next batch of a part, varied and normalised, and its labels."""
        number = self.batch.batch
        with self.state.timed("data"):
            images, labels = self.streams[part].next(number)
            generator = self.state.generators[f"augment {part}"]
            total, offset = number * self.processes.size, number * self.processes.rank
            images = self.augmentation(images, generator, total, offset).to(self.processes.dtype)
        self.last_images = images
        return images, labels

    @staticmethod
    def loss_and_correct(loss: Tensor, logits: Tensor, labels: Tensor) -> tuple[float, float]:
        """As numbers: the one place of a step where the host waits for the device."""
        with torch.no_grad():
            correct = (logits.argmax(1) == labels).sum()
            both = torch.stack([loss.detach(), correct.to(loss.dtype)]).tolist()
        return both[0], both[1]

    def optimize(
        self,
        part: str,
        parameters: Sequence[nn.Parameter],
        optimizer: torch.optim.Optimizer,
        gradient_norm: float,
    ) -> None:
        """Average the gradients over all processes, clip them, and take the optimizer's step."""
        self.processes.average([one.grad for one in parameters if one.grad is not None])
        total = nn.utils.clip_grad_norm_(parameters, gradient_norm, foreach=True)
        if not math.isfinite(float(total)):
            raise self.not_finite(part, "gradient")
        optimizer.step()
        optimizer.zero_grad()

    def count(self, part: str, loss: float, correct: float) -> None:
        """Note what a step has seen."""
        state, images = self.state, self.batch.batch * self.processes.size
        loss_sum, correct = self.processes.sum([loss, correct])
        state.so_far.sums[part].add(loss_sum / self.processes.size, correct, images)
        if part == self.weights_part:
            state.position.images += images

    def _lower(self, place: str) -> bool:
        if not self.batch.lower(place):
            return False
        self.lowered()
        return True

    def _clear_gradients(self) -> None:
        for parameter in self.state.module.parameters():
            parameter.grad = None
        if self.processes.device.type == "cuda":
            torch.cuda.empty_cache()
        recover_memory()

    def out_of_memory(self) -> UserError:
        return UserError(
            f"out of memory with a batch of {self.batch.batch} (the smallest is "
            f"{self.batch.rule.min}), {self.state.where}. The last checkpoint is kept: "
            + self.advice("out-of-memory")
        )

    def not_finite(self, part: str, what: str) -> UserError:
        return UserError(
            f"the {what} of the {self.step_name(part)} step is not a finite number "
            f"({self.state.where}){self._located()}. The last checkpoint is kept. "
            + self.advice("not finite")
        )

    def check_finite(self) -> None:
        """Raise if the state holds what is not finite: such a checkpoint would be of no use."""
        if found := first_not_finite(self.state.tensors().items()):
            raise UserError(
                f"numbers that are not finite are in {found}, {self.state.where}. The last "
                "checkpoint is kept. " + self.advice("not finite")
            )

    def _located(self) -> str:
        """Where the first of them is: causes before what they spoil."""
        named = list(self.state.module.named_parameters())
        images = [] if self.last_images is None else [("the images", self.last_images)]
        gradients = [
            (f"the gradient of {name}", one.grad) for name, one in named if one.grad is not None
        ]
        others = self.state.tensors().items()
        found = first_not_finite([*images, *named, *gradients, *others])
        return f": not finite is {found}" if found else ": all weights are finite"

    def step_name(self, part: str) -> str:
        return part
