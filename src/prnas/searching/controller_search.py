"""A searcher that learns to write cells: ENAS's controller, by REINFORCE or by NASNet's PPO."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

import torch
from torch import Tensor

from prnas.config.searcher import ControllerConfig
from prnas.nets.controller import Controller, Written
from prnas.searchers.base import Evaluated, Proposal, Searcher
from prnas.searchers.cells import CellSpace

_ADAM = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True, slots=True)
class Experience:
    """The choices that wrote a cell, how likely they were then, and how good it was."""

    actions: tuple[int, ...]
    log_probability: float
    advantage: float


class ControllerSearch(Searcher):
    """Asks for what its controller writes, and trains it after every `batch` of scores.

    The reward is the score and a little of the choices' entropy; no gradient goes through the
    latter. The baseline is a moving average of rewards, as it was before this one.
    """

    name: ClassVar[str] = "controller"

    def __init__(self, space: CellSpace, generator: Random, settings: ControllerConfig) -> None:
        super().__init__(space, generator)
        self.settings = settings
        seed = torch.Generator().manual_seed(generator.getrandbits(63))
        self.controller = Controller(space, settings.hidden, seed)
        self.optimizer = torch.optim.Adam(
            self.controller.parameters(), settings.lr, (0.0, 0.999), eps=1e-3
        )
        self.baseline = 0.0
        self.entropy = 0.0
        self.learns = True  # or it only writes
        self._written: tuple[tuple[int, ...], float] | None = None  # what was asked for
        self._batch: list[Experience] = []

    def write(self, generator: Random | None = None) -> Written:
        """A cell, drawn from what the controller has learnt; by a `generator` of one's own."""
        source = generator or self.generator

        def drawn(logs: Tensor) -> int:
            (index,) = source.choices(range(len(logs)), logs.exp().tolist())
            return index

        return self.controller.written(drawn)

    @property
    def num_settled(self) -> int:
        return self.settings.batch - len(self._batch)

    @torch.no_grad()
    def _propose(self) -> Proposal:
        written = self.write()
        self.entropy = float(written.entropy)
        self._written = (written.actions, float(written.log_probability))
        return Proposal(written.genotype)

    def _learn(self, evaluated: Evaluated, proposal: Proposal) -> None:
        assert self._written is not None
        if not self.learns:
            self._written = None
            return
        settings = self.settings
        reward = evaluated.score + settings.entropy * (self.entropy or 0.0)
        self._batch.append(Experience(*self._written, reward - self.baseline))
        self.baseline += (1 - settings.baseline) * (reward - self.baseline)
        self._written = None
        if len(self._batch) < settings.batch:
            return
        for _ in range(settings.passes if settings.update == "ppo" else 1):
            self.optimizer.zero_grad()
            with torch.enable_grad():
                self.loss(self._batch).backward()
            self.optimizer.step()
        self._batch = []

    def loss(self, batch: list[Experience]) -> Tensor:
        """Its gradient is that of the policy, averaged over a batch."""
        losses: list[Tensor] = []
        for experience in batch:
            now = self.controller.again(experience.actions).log_probability
            if self.settings.update == "reinforce":
                losses.append(-experience.advantage * now)
                continue
            ratio = torch.exp(now - experience.log_probability)
            clip = self.settings.clip
            bounded = ratio.clamp(1 - clip, 1 + clip)
            losses.append(
                -torch.minimum(ratio * experience.advantage, bounded * experience.advantage)
            )
        return torch.stack(losses).mean()

    def _own_state(self) -> dict[str, Any]:
        moments = [
            {key: self.optimizer.state[weight][key].tolist() for key in _ADAM}
            if weight in self.optimizer.state
            else None
            for weight in self.controller.parameters()
        ]
        return {
            "controller": [weight.tolist() for weight in self.controller.parameters()],
            "adam": moments,
            "baseline": self.baseline,
            "entropy": self.entropy,
            "written": self._written and [list(self._written[0]), self._written[1]],
            "batch": [
                [list(experience.actions), experience.log_probability, experience.advantage]
                for experience in self._batch
            ],
        }

    def _load_own(self, state: Mapping[str, Any]) -> None:
        weights = list(self.controller.parameters())
        with torch.no_grad():
            for weight, values in zip(weights, state["controller"], strict=True):
                weight.copy_(_like(weight, values))
        self.optimizer.state.clear()
        for weight, moments in zip(weights, state["adam"], strict=True):
            if moments is not None:
                step = torch.tensor(float(moments["step"]))
                rest = {key: _like(weight, moments[key]) for key in _ADAM[1:]}
                self.optimizer.state[weight] = {"step": step, **rest}
        self.baseline, self.entropy = float(state["baseline"]), float(state["entropy"])
        written = state["written"]
        self._written = None if written is None else (tuple(written[0]), float(written[1]))
        self._batch = [Experience(tuple(saved[0]), *saved[1:]) for saved in state["batch"]]


def _like(weight: Tensor, values: Any) -> Tensor:
    tensor = torch.tensor(values, dtype=weight.dtype)
    if tensor.shape != weight.shape:
        raise ValueError("the controller is of another size than this space's")
    return tensor
