"""The short trainings of a search as jobs of an engine, which may be that of a cluster.

Each has files of its own in the run's folder, as long as it is wanted. As everywhere, the engine is
trusted with nothing: a training has ended when its score is there.
"""

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prnas.io.errors import UserError, cannot
from prnas.searching import short_training
from prnas.studies.attempt import Ended, Task
from prnas.studies.engines import Engine
from prnas.studies.locks import lock_file
from prnas.studies.queue import STRIKES, USER_ERROR

FOLDER = "trainings-"  # The beginning of its name: no session meets jobs of another.


class EngineTrainers:
    """Makes short trainings (`searching/training_pool.py: Trainers`) by an engine.

    An attempt that is lost is made again, to the same bits.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._folder: Path | None = None
        self._again: list[Task] = []  # To be started once more.
        self._strikes: Counter[int] = Counter()

    @property
    def num_at_once(self) -> int:
        return self._engine.num_slots

    def open(self, folder: Path) -> None:
        for left in folder.glob(f"{FOLDER}*"):  # by a session that was killed
            shutil.rmtree(left, ignore_errors=True)
        with cannot(f"make a folder in {folder}"):
            self._folder = Path(tempfile.mkdtemp(prefix=FOLDER, dir=folder.absolute()))

    def begin(self, number: int, job: Mapping[str, Any]) -> None:
        assert self._folder is not None
        file = self._folder / f"{number}.json"
        with cannot(f"write {file}"):
            file.write_text(json.dumps(job), encoding="utf-8")
        lock = lock_file(self._folder, str(number))
        module = short_training.__name__
        task = Task(number, str(number), self._folder, lock, (str(file),), (), "", module=module)
        self._engine.start(task)

    def wait(self, seconds: float) -> list[tuple[int, float]]:
        again, self._again = self._again, []
        for task in again:
            self._engine.start(task)
        scores: list[tuple[int, float]] = []
        for ended in self._engine.wait(seconds):
            score = self._score(ended.task)
            if score is None:
                self._try_again(ended)
            else:
                scores.append((ended.task.number, score))
        return scores

    def _score(self, task: Task) -> float | None:
        file = task.study / f"{task.job}{short_training.SCORE}"
        try:
            return float(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def _try_again(self, ended: Ended) -> None:
        message = ended.message or f"exit code {ended.code}"
        if ended.code == USER_ERROR:
            raise UserError(message)
        self._strikes[ended.task.number] += ended.code is not None  # Or its last is ending still.
        if (strikes := self._strikes[ended.task.number]) >= STRIKES:
            raise UserError(
                f"the training of evaluation {ended.task.number} was lost {strikes} times; the "
                f"last: {message}"
            )
        self._again.append(ended.task)

    def close(self) -> None:
        self._engine.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
