"""One step of a final network's training."""

from typing import Any

from torch.nn import functional as F

from prnas.config.retrain import RetrainConfig
from prnas.retraining.state import RetrainState
from prnas.runs.loop import Loop
from prnas.runs.loop_steps import LoopSteps


class RetrainSteps(LoopSteps[RetrainConfig, RetrainState]):
    """Takes the steps of a training."""

    weights_part = "training"
    dropout = "drop path"

    def __init__(self, loop: Loop[RetrainConfig, RetrainState, Any]) -> None:
        super().__init__(loop)
        if self.config.compute.compile:
            for cell in self.state.network.cells:  # the whole network takes minutes to compile
                cell.compile(dynamic=True)

    def forward_backward(self, part: str) -> tuple[float, float]:
        """The loss that is told is the main classifier's; the auxiliary head's only trains."""
        state, config = self.state, self.config
        images, labels = self.next_images(part)
        smoothing = config.training.label_smoothing
        with state.timed(part):
            with self.processes.autocast():
                out = state.network(images, state.generators["drop path"])
                logits, auxiliary = out if isinstance(out, tuple) else (out, None)
                loss = F.cross_entropy(logits, labels, label_smoothing=smoothing)
                total = loss
                if auxiliary is not None:
                    second = F.cross_entropy(auxiliary, labels, label_smoothing=smoothing)
                    total = loss + config.network.auxiliary_weight * second
            total.backward()
            return self.loss_and_correct(loss, logits, labels)

    def update(self, part: str, loss: float, correct: float) -> None:
        state = self.state
        with state.timed(part):
            norm = self.config.training.gradient_norm
            self.optimize(part, state.parameters, state.optimizer, norm)
            self.count(part, loss, correct)

    def advice(self, what: str) -> str:
        if what == "out-of-memory":
            return "in a new run, set batch.min, channels or cells lower."
        return "In a new run, try a smaller training.lr or gradient_norm; and look at the data."
