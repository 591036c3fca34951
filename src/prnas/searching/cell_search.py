"""A search without a supernet: cells are scored one by one, by a table, a training or a proxy.

It leaves the folder that every search leaves, and is stopped and resumed like any other.
"""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from prnas.config.search import SearchConfig
from prnas.io.errors import UserError
from prnas.runs.checkpoint import Checkpoint
from prnas.runs.events import Callback, RunStart, SearchResult, check_callbacks
from prnas.runs.folder import RunFolder, Session, read_config
from prnas.runs.names import RECORDS
from prnas.runs.preparation import check_same
from prnas.runs.record_lines import read_records
from prnas.runs.records import EvaluationRecord, GenotypeRecord, Record, TruthRecord
from prnas.runs.run import Stopped
from prnas.runs.signals import Signals, stop_signals
from prnas.searchers.base import Evaluated, Proposal
from prnas.searching.asking import Asking, make_searcher
from prnas.searching.cell_scorers import CellScorer, make_scorer
from prnas.searching.training_pool import MakeTrainers
from prnas.space.genotype import Genotype
from prnas.space.nasbench201.truth import truth_of

K = TypeVar("K", bound=Record)


def start(
    config: SearchConfig,
    *,
    runs: Path | None = Path("runs"),
    name: str | None = None,
    recipe: str | None = None,
    callbacks: Sequence[Callback] = (),
    reasons: tuple[tuple[str, str], ...] = (),
    make_trainers: MakeTrainers | None = None,
) -> SearchResult:
    """A new search, and its result; it is written to a new folder in `runs`, if given.

    `make_trainers`: who makes its short trainings, instead of processes of its own.
    """
    create = partial(RunFolder.create, runs, name, recipe or config.task) if runs else None
    return _run(config, callbacks, create, reasons, make_trainers)


def resume(
    folder: Path,
    *,
    overrides: Sequence[str] = (),
    callbacks: Sequence[Callback] = (),
    make_trainers: MakeTrainers | None = None,
) -> SearchResult:
    """Go on in a search's own folder, exactly as if it had never stopped."""
    config = read_config(folder, SearchConfig, overrides)
    open_folder = partial(RunFolder.open, folder)
    return _run(config, callbacks, open_folder, make_trainers=make_trainers)


def _run(
    config: SearchConfig,
    callbacks: Sequence[Callback],
    open_folder: Callable[[SearchConfig, Session], RunFolder] | None,
    reasons: tuple[tuple[str, str], ...] = (),
    make_trainers: MakeTrainers | None = None,
) -> SearchResult:
    check_callbacks(callbacks)
    precision = "64-true" if config.searcher.by_table else config.compute.precision
    session = {"command": sys.argv, "device": "cpu", "processes": 1, "precision": precision}
    with ExitStack() as stack:
        for callback in callbacks:
            stack.callback(callback.close)
        scorer = make_scorer(config, lambda text: _say(callbacks, text), make_trainers)
        stack.callback(scorer.close)
        config = scorer.config
        signals = stack.enter_context(stop_signals())
        scorer.signals = signals
        folder, checkpoint = None, None
        if open_folder is not None:
            folder = open_folder(config, session)
            stack.callback(folder.close)
            scorer.open(folder.path)
            folder.warn = lambda text: _say(callbacks, text)
            checkpoint, problems = folder.newest_checkpoint()
            for problem in problems:
                _say(callbacks, f"{problem}; going on from the one before it")
        search = _made(config, scorer, folder, callbacks, signals, checkpoint)
        search.emit("on_start", search.start_event(reasons))
        try:
            search.go()
        except Stopped as stopped:  # maybe in the training of a cell, which has no folder
            search.save()
            raise Stopped(folder.path if folder else None, stopped.number) from None
        result = search.result()
        search.emit("on_end", result)
        return result


def _say(callbacks: Sequence[Callback], text: str) -> None:
    for callback in callbacks:
        callback.on_message(text)


def _made(
    config: SearchConfig,
    scorer: CellScorer,
    folder: RunFolder | None,
    callbacks: Sequence[Callback],
    signals: Signals,
    checkpoint: Checkpoint | None,
) -> "CellSearch":
    """A checkpoint may be of another release, or made up, whatever its checksums say."""
    try:
        return CellSearch(config, scorer, folder, callbacks, signals, checkpoint)
    except UserError:
        raise
    except Exception as error:
        if checkpoint is None:
            raise
        raise UserError(
            f"the checkpoint does not fit this run ({type(error).__name__}: {error!s:.200})"
        ) from None


class CellSearch:
    """A search under way. `go` continues from wherever its state stands."""

    def __init__(
        self,
        config: SearchConfig,
        scorer: CellScorer,
        folder: RunFolder | None,
        callbacks: Sequence[Callback],
        signals: Signals,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.config, self.folder, self.callbacks = config, folder, callbacks
        self._signals, self.resumed = signals, checkpoint is not None
        saved = checkpoint.state if checkpoint else None
        self.scorer = scorer
        self.proxies = scorer.proxies() if config.searcher.proxy.record else None
        if saved is not None and scorer.digest is not None:
            check_same("data", saved, scorer.digest)
        self.asking = Asking(
            make_searcher(config.searcher, config.cell_space, config.seed),
            config.searcher.budget,
            scorer.cost,
            saved["asking"] if saved else None,
        )
        self.genotype: Genotype | None = None  # at the end
        self.elapsed = 0.0  # seconds of earlier sessions
        self.records: list[Record] = []  # The records of a search that has no folder.
        if saved is not None:
            self.elapsed = float(saved["elapsed"])
            if saved["genotype"] is not None:
                self.genotype = Genotype.from_json(saved["genotype"])
        self._began = self._last_save = time.monotonic()

    def go(self) -> None:
        """Start or continue, until the end or until a signal raises `Stopped`."""
        if not self.resumed:
            self.save()
        while self.genotype is None and self.asking.goes_on:
            cell = self.asking.searcher.ask()
            if (several := self.scorer.num_at_once) > 1:
                self.scorer.expect(self.asking.upcoming(several))
            facts = {"proxies": None if self.proxies is None else self.proxies.all(cell)}
            record = self.asking.evaluate(self.scorer.score, measure=self.scorer.measure, **facts)
            self.record(record)
            self.emit("on_evaluation", record)
            self._stop_or_save()
        if self.genotype is None:
            self._end()
        assert self.genotype is not None
        if self.folder is not None:  # again for a finished run: resuming it repairs its result
            self.folder.write_genotype(self.genotype)

    def _stop_or_save(self) -> None:
        if self._signals.number:
            raise Stopped(self.folder.path if self.folder else None, self._signals.number)
        minutes = (time.monotonic() - self._last_save) / 60
        if self._signals.take_save() or minutes >= self.config.checkpoints.every_minutes:
            self.save()

    def _repeat_best(self, best: Evaluated) -> None:
        """Score the best cell again, which changes no decision: it tells the noise of scores."""
        searcher, records = self.asking.searcher, self.records_of(EvaluationRecord)
        first = next(record for record in records if record.number == best.number)
        proposal = Proposal(best.genotype, share=first.share or 1.0)
        start = searcher.num_evaluations + 1
        numbers = range(start, start + self.config.searcher.repeats)
        done = {record.number for record in records if record.stage == "repeat"}
        for number in numbers:
            if number in done:
                continue
            several = self.scorer.num_at_once
            self.scorer.expect(
                [(proposal, later) for later in numbers if later >= number][:several]
            )
            began = time.perf_counter()
            score = self.scorer.score(proposal, number)
            record = EvaluationRecord(
                number=number,
                stage="repeat",
                genotype=first.genotype,
                score=score,
                best=best.score,
                images=self.asking.images,
                share=first.share,
                seconds=time.perf_counter() - began,
            )
            self.record(record)
            self.emit("on_evaluation", record)
            self._stop_or_save()

    def _end(self) -> None:
        best = self.asking.searcher.best
        assert best is not None
        self._repeat_best(best)
        self.genotype = best.genotype
        self.record(GenotypeRecord(genotype=best.genotype.to_json()))
        if (truth := truth_of(best.genotype)) is not None:  # all is decided by now
            self.record(TruthRecord(truth=truth.to_json()))
        self.save()

    @property
    def seconds(self) -> float:
        return self.elapsed + time.monotonic() - self._began

    def save(self) -> None:
        """Write a checkpoint of the whole state."""
        self._last_save = time.monotonic()
        if self.folder is None:
            return
        state = {
            "config": self.folder.config_digest,
            **({} if self.scorer.digest is None else {"data": self.scorer.digest}),
            "position": {"done": self.genotype is not None},
            "elapsed": self.seconds,
            "genotype": self.genotype.to_json() if self.genotype else None,
            "asking": self.asking.state(),
        }
        self.folder.save(Checkpoint(state, {}))

    def record(self, record: Record) -> None:
        if self.folder is None:
            self.records.append(record)
        else:
            self.folder.record(record)

    def records_of(self, kind: type[K]) -> tuple[K, ...]:
        """The records of a kind, of the whole search and not only since it was resumed."""
        records = self.records if self.folder is None else read_records(self.folder.path / RECORDS)
        return tuple(record for record in records if isinstance(record, kind))

    def emit(self, event: str, *arguments: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(*arguments)

    def start_event(self, reasons: tuple[tuple[str, str], ...]) -> RunStart:
        return RunStart(
            config=self.config,
            folder=self.folder.path if self.folder else None,
            device="cpu",
            world_size=1,
            num_parameters=0,
            train_images=0,
            resumed=self.resumed,
            cycle=1,
            epoch=1,
            evaluations=self.asking.searcher.num_evaluations,
            reasons=reasons,
        )

    def result(self) -> SearchResult:
        assert self.genotype is not None
        return SearchResult(
            self.genotype,
            self.folder.path if self.folder else None,
            (),
            (),
            self.seconds,
            evaluations=self.records_of(EvaluationRecord),
            config=self.config,
        )
