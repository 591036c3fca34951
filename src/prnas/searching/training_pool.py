"""Short trainings of cells in several processes at once, with the scores that one would give.

A score follows from a cell and the number of its evaluation alone. So what a searcher will ask for
whatever the scores are (`Searcher.upcoming`) can be trained ahead, each in the next free process.
"""

import json
import multiprocessing
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

from prnas.config.search import SearchConfig
from prnas.data.workers import end_with_parent
from prnas.io.errors import FormatError, UserError
from prnas.runs.run import Stopped
from prnas.searchers.base import Proposal
from prnas.searching.cell_scorers import TrainingScorer

_LOOK = 0.2  # seconds between two looks at whether the search is to stop


class TrainingPool(TrainingScorer):
    """Trains cells in `compute.devices` processes, which start when they are first needed."""

    def __init__(self, config: SearchConfig, say: Callable[[str], None]) -> None:
        self._size = config.compute.devices
        self._waiting: list[tuple[Proposal, int]] = []
        self._scores: dict[int, float] = {}  # Scores of finished evaluations, by number.
        self._trainers: list[_Trainer] = []
        super().__init__(_alone(config), say)
        # The config of the run says what its user chose.
        compute = self.config.compute.model_copy(update={"devices": self._size})
        self.config = self.config.model_copy(update={"compute": compute})

    @property
    def num_at_once(self) -> int:
        return self._size

    def expect(self, evaluations: Sequence[tuple[Proposal, int]]) -> None:
        begun = {trainer.number for trainer in self._trainers} | self._scores.keys()
        self._waiting = [(cell, number) for cell, number in evaluations if number not in begun]
        self._hand_out()

    def score(self, proposal: Proposal, number: int) -> float:
        while number not in self._scores:
            if self.signals.number:
                raise Stopped(None, self.signals.number)
            self._hand_out()
            for connection in wait([trainer.connection for trainer in self._trainers], _LOOK):
                trainer = next(own for own in self._trainers if own.connection is connection)
                ended, score = trainer.take()
                self._scores[ended] = score
        return self._scores.pop(number)

    def _hand_out(self) -> None:
        """Give what waits to processes that are free."""
        while self._waiting:
            free = next((trainer for trainer in self._trainers if trainer.number is None), None)
            if free is None and len(self._trainers) < self._size:
                free = _Trainer(_alone(self.config), len(self._trainers), self.device_type)
                self._trainers.append(free)
            if free is None:
                return
            free.begin(*self._waiting.pop(0))

    @property
    def device_type(self) -> str:
        return self.processes.device.type

    def close(self) -> None:
        for trainer in self._trainers:
            trainer.close()
        super().close()


def _alone(config: SearchConfig) -> SearchConfig:
    """The config of a process that trains one cell after the other."""
    compute = config.compute.model_copy(update={"devices": 1})
    return config.model_copy(update={"compute": compute})


class _Trainer:
    """A process that trains one cell after the other, and what it is at."""

    def __init__(self, config: SearchConfig, index: int, device_type: str) -> None:
        # `spawn`: a copy of a process that runs PyTorch's threads could hang.
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.number: int | None = None  # The number of the evaluation under way.
        gpu = index % torch.cuda.device_count() if device_type == "cuda" else None
        self._process = context.Process(
            target=_train, args=(theirs, config.to_data(), gpu), daemon=True
        )
        self._process.start()
        theirs.close()

    def begin(self, proposal: Proposal, number: int) -> None:
        self.number = number
        message = {"proposal": proposal.to_json(), "number": number}
        with suppress(OSError):  # The process is gone, which `take` will say.
            self.connection.send_bytes(json.dumps(message).encode())

    def take(self) -> tuple[int, float]:
        """The number of the evaluation that is over, and its score."""
        assert self.number is not None
        try:
            answer = json.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            raise UserError(
                "a process that trains a cell has ended unexpectedly, perhaps for lack of memory: "
                "use fewer (--devices)"
            ) from None
        number, self.number = self.number, None
        if "score" not in answer:
            raise UserError(answer["problem"])
        return number, answer["score"]

    def close(self) -> None:
        self.connection.close()
        self._process.kill()
        self._process.join()


def _train(connection: Connection, data: dict[str, Any], gpu: int | None) -> None:
    """The loop of a training process, until its parent ends it or is gone."""
    end_with_parent()
    if gpu is not None:  # before CUDA is used for the first time
        os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)
    scorer: TrainingScorer | None = None
    while True:
        message = json.loads(connection.recv_bytes())
        try:
            scorer = scorer or TrainingScorer(SearchConfig.from_data(data), lambda _: None)
            score = scorer.score(Proposal.from_json(message["proposal"]), message["number"])
            answer = {"score": score}
        except (UserError, FormatError) as problem:
            answer = {"problem": str(problem)}
        connection.send_bytes(json.dumps(answer).encode())
