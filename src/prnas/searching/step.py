"""One step of a search: of the architecture weights, or of the network's."""

from typing import Any

from torch.nn import functional as F

from prnas.config.search import SearchConfig
from prnas.runs.loop import Loop
from prnas.runs.loop_steps import LoopSteps
from prnas.searching.state import SearchState


class Steps(LoopSteps[SearchConfig, SearchState]):
    """Takes the steps of a search."""

    weights_part = "weights"
    dropout = "dropout"

    def __init__(self, loop: Loop[SearchConfig, SearchState, Any]) -> None:
        super().__init__(loop)
        self.prepare()

    def prepare(self) -> None:
        """To be called whenever the supernet is another one."""
        if self.config.compute.compile:
            # Not the cells: they are steps by hand, which a compiler would only take apart.
            self.state.supernet.stem.compile(dynamic=True)

    def forward_backward(self, part: str) -> tuple[float, float]:
        assert part in ("architecture", "weights")
        state = self.state
        images, labels = self.next_images(part)
        with state.timed(part), state.supernet.training_only(part):
            with self.processes.autocast():
                logits = state.supernet(images, state.generators["dropout"])
                loss = F.cross_entropy(logits, labels)
            loss.backward()
            return self.loss_and_correct(loss, logits, labels)

    def update(self, part: str, loss: float, correct: float) -> None:
        state, config = self.state, self.config
        with state.timed(part):
            if part == "architecture":
                self.optimize(
                    part,
                    state.architecture_parameters,
                    state.architecture_optimizer,
                    config.architecture.gradient_norm,
                )
            else:
                self.optimize(
                    part,
                    state.weight_parameters,
                    state.weights_optimizer,
                    config.weights.gradient_norm,
                )
            self.count(part, loss, correct)

    def step_name(self, part: str) -> str:
        return "network" if part == "weights" else part

    def advice(self, what: str) -> str:
        if what == "out-of-memory":
            return (
                "go on from it with --recompute, or set batch.min, channels or cells lower in a "
                "new search."
            )
        return (
            "In a new search, try a smaller weights.lr, architecture.lr or gradient_norm; and look "
            "at the data."
        )
