"""Short trainings of cells, several at once, with the scores that one at a time would give.

A score follows from a cell and the number of its evaluation alone. So what a searcher will ask for
whatever the scores are (`Searcher.upcoming`) can be trained ahead, wherever there is room next.
"""

import json
import multiprocessing
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol

import torch

from prnas.config.search import SearchConfig
from prnas.data.workers import end_with_parent
from prnas.io.errors import FormatError, UserError
from prnas.runs.run import Stopped
from prnas.searchers.base import Proposal
from prnas.searching.cell_scorers import TrainingScorer

_LOOK = 0.2  # seconds between two looks at whether the search is to stop


class Trainers(Protocol):
    """Who makes short trainings. A job is plain data, from which `scorer_of` and `score_of` go."""

    @property
    def num_at_once(self) -> int:
        """The number of trainings that can be under way at the same time; it may change."""
        ...

    def open(self, folder: Path) -> None:
        """The run's folder, if it has one; it comes before the first training."""
        ...

    def begin(self, number: int, job: Mapping[str, Any]) -> None:
        """Begin the training of an evaluation; there is room for it."""
        ...

    def wait(self, seconds: float) -> list[tuple[int, float]]:
        """The scores of trainings that have ended, by number; after so many seconds, none."""
        ...

    def close(self) -> None:
        """Return when nothing of them is left."""
        ...


# From the threads of each training, and the kind of device that it computes on.
MakeTrainers = Callable[[int, str], Trainers]


def job_of(config: SearchConfig, proposal: Proposal, number: int) -> dict[str, Any]:
    """All that a process, perhaps of another machine, must know to make a short training."""
    return {"config": config.to_data(), "proposal": proposal.to_json(), "number": number}


def scorer_of(job: Mapping[str, Any]) -> TrainingScorer:
    """What makes the trainings of a search, one after the other."""
    return TrainingScorer(SearchConfig.from_data(job["config"]), lambda _: None)


def score_of(scorer: TrainingScorer, job: Mapping[str, Any]) -> float:
    return scorer.score(Proposal.from_json(job["proposal"]), job["number"])


class TrainingPool(TrainingScorer):
    """Trains cells by trainers: processes of its own, as many as `compute.devices`, or others."""

    def __init__(
        self,
        config: SearchConfig,
        say: Callable[[str], None],
        make_trainers: MakeTrainers | None = None,
    ) -> None:
        self._waiting: list[tuple[Proposal, int]] = []
        self._under_way: set[int] = set()
        self._scores: dict[int, float] = {}  # Scores of finished evaluations, by number.
        size = config.compute.devices
        super().__init__(_alone(config), say)
        # The config of the run says what its user chose.
        compute = self.config.compute.model_copy(update={"devices": size})
        self.config = self.config.model_copy(update={"compute": compute})
        try:
            device_type = self.processes.device.type
            self.trainers: Trainers = (
                OwnProcesses(size, device_type)
                if make_trainers is None
                else make_trainers(compute.threads or 1, device_type)
            )
        except BaseException:
            super().close()
            raise

    def open(self, folder: Path) -> None:
        self.trainers.open(folder)

    @property
    def num_at_once(self) -> int:
        return self.trainers.num_at_once

    def expect(self, evaluations: Sequence[tuple[Proposal, int]]) -> None:
        begun = self._under_way | self._scores.keys()
        self._waiting = [(cell, number) for cell, number in evaluations if number not in begun]
        self._hand_out()

    def score(self, proposal: Proposal, number: int) -> float:
        known = {later for _, later in self._waiting} | self._under_way | self._scores.keys()
        if number not in known:
            self._waiting.insert(0, (proposal, number))
        while number not in self._scores:
            if self.signals.number:
                raise Stopped(None, self.signals.number)
            self._hand_out()
            for ended, score in self.trainers.wait(_LOOK):
                self._under_way.discard(ended)
                self._scores[ended] = score
        return self._scores.pop(number)

    def _hand_out(self) -> None:
        """Begin what waits, as far as there is room."""
        while self._waiting and len(self._under_way) < self.trainers.num_at_once:
            proposal, number = self._waiting.pop(0)
            self._under_way.add(number)
            self.trainers.begin(number, job_of(_alone(self.config), proposal, number))

    def close(self) -> None:
        self.trainers.close()
        super().close()


def _alone(config: SearchConfig) -> SearchConfig:
    """The config of a process that trains one cell after the other."""
    compute = config.compute.model_copy(update={"devices": 1})
    return config.model_copy(update={"compute": compute})


class OwnProcesses:
    """Trainers that are processes of the search, which start when they are first needed."""

    def __init__(self, size: int, device_type: str) -> None:
        self.num_at_once, self._device_type = size, device_type
        self.trainers: list[_Trainer] = []

    def open(self, folder: Path) -> None:
        """They need no folder."""

    def begin(self, number: int, job: Mapping[str, Any]) -> None:
        free = next((trainer for trainer in self.trainers if trainer.number is None), None)
        if free is None:
            free = _Trainer(len(self.trainers), self._device_type)
            self.trainers.append(free)
        free.begin(number, job)

    def wait(self, seconds: float) -> list[tuple[int, float]]:
        ready = wait([trainer.connection for trainer in self.trainers], seconds)
        return [trainer.take() for trainer in self.trainers if trainer.connection in ready]

    def close(self) -> None:
        for trainer in self.trainers:
            trainer.close()


class _Trainer:
    """A process that trains one cell after the other, and what it is at."""

    def __init__(self, index: int, device_type: str) -> None:
        # `spawn`: a copy of a process that runs PyTorch's threads could hang.
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.number: int | None = None  # The number of the evaluation under way.
        gpu = index % torch.cuda.device_count() if device_type == "cuda" else None
        self._process = context.Process(target=_train, args=(theirs, gpu), daemon=True)
        self._process.start()
        theirs.close()

    def begin(self, number: int, job: Mapping[str, Any]) -> None:
        self.number = number
        with suppress(OSError):  # The process is gone, which `take` will say.
            self.connection.send_bytes(json.dumps(job).encode())

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


def _train(connection: Connection, gpu: int | None) -> None:
    """The loop of a training process, until its parent ends it or is gone."""
    end_with_parent()
    if gpu is not None:  # before CUDA is used for the first time
        os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)
    scorer: TrainingScorer | None = None
    while True:
        job = json.loads(connection.recv_bytes())
        try:
            scorer = scorer or scorer_of(job)
            answer = {"score": score_of(scorer, job)}
        except (UserError, FormatError) as problem:
            answer = {"problem": str(problem)}
        connection.send_bytes(json.dumps(answer).encode())
