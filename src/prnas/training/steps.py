"""One step of a search: of the architecture weights, or of the network's."""

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import nn
from torch.nn import functional as F

from prnas.config import SearchConfig
from prnas.errors import UserError
from prnas.training.augment import Augmentation
from prnas.training.memory import BatchSize, is_out_of_memory
from prnas.training.processes import Processes
from prnas.training.state import SearchState
from prnas.training.streams import Stream

Part = Literal["architecture", "weights"]


class Steps:
    """Takes steps. `lowered` is told when the batch had to become smaller."""

    def __init__(
        self,
        config: SearchConfig,
        processes: Processes,
        state: SearchState,
        streams: dict[str, Stream],
        augmentation: Augmentation,
        batch: BatchSize,
        lowered: Callable[[], None],
    ) -> None:
        self.config, self.processes, self.state = config, processes, state
        self.streams, self.augmentation, self.batch = streams, augmentation, batch
        self.lowered = lowered
        self.prepare()

    def prepare(self) -> None:
        """To be called whenever the supernet is another one."""
        if self.config.compute.compile:
            # Not the cells: they are steps by hand, which a compiler would only take apart.
            self.state.supernet.stem.compile(dynamic=True)

    def do(self, part: Part) -> bool:
        """One step of one part; with a smaller batch of the same images if memory runs out.

        True if it ran out of memory on the way: then a failed pass has touched running statistics,
        and the state should be saved, so that a resumed search does not have to repeat it.
        """
        place = self.state.position.place(part)
        while self.batch.known_to_fail(place) is not None:
            self._lower(place)
        ran_out = False
        while True:
            generators = [self.state.generators[name] for name in (f"augment {part}", "dropout")]
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
                self._update(part, loss, correct)
                return ran_out
            ran_out = True
            self._clear_gradients()
            self.streams[part].load_state(before[0])
            for generator, known in zip(generators, before[1], strict=True):
                generator.set_state(known)
            if not self._lower(place):
                raise self.out_of_memory()

    def _lower(self, place: str) -> bool:
        if not self.batch.lower(place):
            return False
        self.lowered()
        return True

    def forward_backward(self, part: Part) -> tuple[float, float]:
        """Gradients of a part for the next batch: its mean loss, and how many were right."""
        state, number = self.state, self.batch.batch
        with state.timed("data"):
            images, labels = self.streams[part].next(number)
            generator = state.generators[f"augment {part}"]
            total, offset = number * self.processes.size, number * self.processes.rank
            images = self.augmentation(images, generator, total, offset).to(self.processes.dtype)
        with state.timed(part), state.supernet.training_only(part):
            with self.processes.autocast():
                logits = state.supernet(images, state.generators["dropout"])
                loss = F.cross_entropy(logits, labels)
            loss.backward()
            with torch.no_grad():
                correct = (logits.argmax(1) == labels).sum()
                # The one place of a step where the host waits for the device.
                both = torch.stack([loss.detach(), correct.to(loss.dtype)]).tolist()
        return both[0], both[1]

    def _update(self, part: Part, loss: float, correct: float) -> None:
        state = self.state
        with state.timed(part):
            if part == "architecture":
                parameters, optimizer = state.architecture_parameters, state.architecture_optimizer
                norm = self.config.architecture.gradient_norm
            else:
                parameters, optimizer = state.weight_parameters, state.weights_optimizer
                norm = self.config.weights.gradient_norm
            self.processes.average([one.grad for one in parameters if one.grad is not None])
            total = nn.utils.clip_grad_norm_(parameters, norm, foreach=True)
            if not math.isfinite(float(total)):
                raise self.not_finite(part, "gradient")
            optimizer.step()
            optimizer.zero_grad()
            images = self.batch.batch * self.processes.size
            loss_sum, correct = self.processes.sum([loss, correct])
            sums = state.so_far.weights if part == "weights" else state.so_far.architecture
            sums.add(loss_sum / self.processes.size, correct, images)
            if part == "weights":
                state.position.images += images

    def _clear_gradients(self) -> None:
        for parameter in self.state.supernet.parameters():
            parameter.grad = None
        if self.processes.device.type == "cuda":
            torch.cuda.empty_cache()

    def out_of_memory(self) -> UserError:
        return UserError(
            f"out of memory with a batch of {self.batch.batch} (the smallest is "
            f"{self.config.batch.min}), {self.state.position}. The last checkpoint is kept: go on "
            "from it with --recompute, or set batch.min, channels or cells lower in a new search."
        )

    def not_finite(self, part: Part, what: str) -> UserError:
        which = "network" if part == "weights" else "architecture"
        return UserError(
            f"the {what} of the {which} step is not a finite number ({self.state.position}). "
            "The last checkpoint is kept. In a new search, try a smaller weights.lr, "
            "architecture.lr or gradient_norm; and look at the data."
        )
