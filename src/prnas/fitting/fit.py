"""A fit from its plan to its results: a search, trainings, tests, the best network for use.

Each stage is an ordinary run in its own folder, which goes on exactly; what is decided between them
is written once. So a fit that is resumed ends as one that never stopped.
"""

import shlex
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.fitting import configs
from prnas.fitting.configs import SEARCHED, Contender
from prnas.fitting.events import Listener
from prnas.fitting.exports import write_exports
from prnas.fitting.folder import FitFolder, FitState, Trainings, read_results, read_state
from prnas.fitting.look import names_in_test
from prnas.fitting.measure import Meter
from prnas.fitting.model_card import model_card
from prnas.fitting.names import CARD, PAGE, SEARCH
from prnas.fitting.page import write_fit_page
from prnas.fitting.plan import AIM, plan_trainings
from prnas.fitting.preparing import Loaded, prepared
from prnas.fitting.request import Request, checked
from prnas.fitting.testing import Outcome, outcome_of, results_of, tested_of
from prnas.fitting.verdict import Trained
from prnas.io.atomic import write_atomically
from prnas.io.errors import UserError, cannot
from prnas.models.model import FOLDER, Model, is_saved, load, save_model
from prnas.report.default_callbacks import with_default_callbacks
from prnas.retraining import api as retraining
from prnas.runs.events import RetrainResult, SearchResult
from prnas.runs.integrity import is_begun
from prnas.runs.records import Score
from prnas.runs.run import Stopped
from prnas.runs.signals import Signals, stop_signals
from prnas.searching import api as searching

STAGES = 2  # Beside the trainings: the search, and the end.


class Fit:
    """A fit under way."""

    def __init__(
        self,
        folder: FitFolder,
        state: FitState,
        loaded: Loaded,
        meter: Meter,
        listener: Listener,
        signals: Signals,
    ) -> None:
        self.folder, self.state, self.meter = folder, state, meter
        self.listener, self.signals = listener, signals
        self._loaded = loaded
        self.done: dict[str, RetrainResult] = {}
        self.under_way: str | None = None  # The network that is being trained.

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def data(self) -> Any:
        return self._loaded.at(self.state.plan.rung.size)

    @property
    def contenders(self) -> dict[str, Contender]:
        return {name: Contender.from_json(saved) for name, saved in self.state.contenders.items()}

    def go(self) -> dict[str, Any]:
        """All that is left; the results."""
        try:
            results, search = read_results(self.path), None
            if results is None:
                search = self._search()
                if self.state.trainings is None:
                    self._decide_trainings(search)
                for number, name in enumerate(self.state.task.contenders):
                    self._train(name, number)
                self._check_signals()
            return self._end(results, search)
        except Stopped as stopped:
            self._keep_best_so_far(stopped.so_far)
            raise Stopped(self.path, stopped.number) from None
        except UserError as error:  # A full disk, say: a stage names itself, not the fit.
            again = f"prnas fit --resume {shlex.quote(str(self.path))}"
            raise UserError(f"{error} The whole fit goes on by `{again}`.") from None

    def _check_signals(self) -> None:
        if self.signals.number:
            raise Stopped(self.path, self.signals.number)

    def _run(self, api: Any, config: Any, name: str) -> Any:
        """A stage: started, or gone on with. The results of one that is done are only read."""
        self._check_signals()
        path = self.path / name
        callbacks = with_default_callbacks(list(self.listener.callbacks(name)))
        if is_begun(path):
            return api.resume(path, callbacks=callbacks, loaded=self.data)
        common: dict[str, Any] = {"recipe": "fit", "callbacks": callbacks, "loaded": self.data}
        return api.start(config, runs=self.path, name=name, **common)

    def _announce(self, name: str, number: int) -> None:
        self.listener.on_stage(name, number, STAGES + len(self.state.task.contenders))

    def _search(self) -> SearchResult:
        self._announce(SEARCH, 1)
        return self._run(searching, SearchConfig.from_data(self.state.search), SEARCH)

    def _decide_trainings(self, search: SearchResult) -> None:
        """The epochs of each training, by the time that is left: the same for each."""
        state = self.state
        plan, task, request = state.plan, state.task, state.request
        contenders = self.contenders
        contenders[SEARCHED] = replace(contenders[SEARCHED], genotype=search.genotype)
        size, before = plan.rung.size, self.meter.elapsed()
        self.listener.on_measuring("some steps of what was found")
        first = configs.training_config(contenders[SEARCHED], 10, size, task, request)
        times = state.times | {SEARCHED: self.meter.training(first, self.data)}
        spent = plan.spent + self.meter.spent_on(search, plan.search.seconds)
        spent += self.meter.elapsed() - before
        left = AIM * request.seconds - spent - plan.ending
        epochs = plan_trainings(times, task, max(left, 0.0))
        trainings = {
            name: configs.training_config(
                contender, epochs[name].epochs, size, task, request
            ).to_data()
            for name, contender in contenders.items()
        }
        self.state = replace(state, trainings=Trainings(times[SEARCHED], spent, left, trainings))
        self.folder.write(self.state)

    def _train(self, name: str, number: int) -> None:
        assert self.state.trainings is not None
        self._announce(name, 2 + number)
        config = RetrainConfig.from_data(self.state.trainings.configs[name])
        self.under_way = name
        self.done[name] = self._run(retraining, config, name)
        self.under_way = None

    def _keep_best_so_far(self, so_far: tuple[Model, Score] | None) -> None:
        """The best network for use, whatever is still to be done.

        `so_far`: the best epoch of the network that is being trained, and its validation.
        """
        scored = {
            name: (result.model, result.validation)
            for name, result in self.done.items()
            if result.validation is not None
        }
        if so_far is not None and self.under_way is not None:
            scored[self.under_way] = so_far
        if not scored or read_results(self.path) is not None:
            return
        best = max(scored, key=lambda name: _by_validation(scored[name][1]))
        model, _ = scored[best]
        with suppress(OSError):
            save_model(self.path / FOLDER, model.network, model.card)
            where = f"{self.contenders[best].label} is in {self.path / FOLDER}"
            unfinished = ", trained in part" if best == self.under_way else ""
            self.listener.on_message(f"the best network so far: {where}{unfinished}")

    # ------------------------------------------------------------ the end

    def _end(self, results: dict[str, Any] | None, search: SearchResult | None) -> dict[str, Any]:
        """Test all, choose, write everything that is for people. What is there is kept."""
        self._announce("end", STAGES + len(self.state.task.contenders))
        if results is None:
            assert search is not None
            results = self._tested(search)
            self.folder.write_results(results)
        best = load(self.path / results["best"])
        with cannot(f"write in {self.path}"):
            if not is_saved(self.path / FOLDER, best.network, best.card):
                save_model(self.path / FOLDER, best.network, best.card)
            self._write_for_people(results, best)
        return results

    def _write_for_people(self, results: dict[str, Any], best: Model) -> None:
        exported = write_exports(best, self.path, self.listener.on_message)
        card = model_card(self.state, results, best.card, exported)
        write_atomically(self.path / CARD, card.encode())
        if not (self.path / PAGE).is_file():
            write_fit_page(self.path / PAGE, self.state, results, self.data, exported)

    def _tested(self, search: SearchResult) -> dict[str, Any]:
        data, request = self.data, self.state.request
        outcomes: dict[str, Outcome] = {}
        tested: dict[str, Trained] = {}
        for name, contender in self.contenders.items():
            outcomes[name] = outcome_of(self.path / name, data)
            latency = self.meter.latency(outcomes[name].model, data, request.threads)
            result = self.done[name]
            tested[name] = tested_of(contender, result, outcomes[name], data, latency, request)
            self._check_signals()
        share = self._loaded.config(self.state.plan.rung.size).test_share
        names = names_in_test(request.data, share, data)
        return results_of(search, tested, outcomes, data, names)


def _by_validation(score: Score) -> tuple[float, float]:
    return score.accuracy, -score.loss


def start(
    request: Request,
    *,
    runs: Path,
    name: str | None = None,
    meter: Meter | None = None,
    listener: Listener | None = None,
) -> tuple[Path, dict[str, Any]]:
    """A new fit: its folder and its results. What cannot work is found before it is written."""
    meter, listener = meter or Meter(), listener or Listener()
    with prepared(checked(request), meter, listener) as (state, loaded):
        folder = FitFolder.create(runs, name, request.seed)
        try:
            with stop_signals() as signals:
                folder.write(state)
                listener.on_plan(state, folder.path)
                return folder.path, Fit(folder, state, loaded, meter, listener, signals).go()
        finally:
            folder.close()


def plan_only(
    request: Request, *, meter: Meter | None = None, listener: Listener | None = None
) -> FitState:
    """The state of a fit with its plan, as it would begin; nothing is written."""
    meter, listener = meter or Meter(), listener or Listener()
    with prepared(checked(request), meter, listener) as (state, _):
        listener.on_plan(state, None)
        return state


def resume(
    path: Path, *, meter: Meter | None = None, listener: Listener | None = None
) -> dict[str, Any]:
    """Go on with a fit, exactly; its results. One that is done is only read."""
    meter, listener = meter or Meter(), listener or Listener()
    state = read_state(path)
    folder = FitFolder(path)
    loaded = Loaded(state.request, state.task)
    try:
        meter.elapsed()
        with stop_signals() as signals:
            listener.on_plan(state, path)
            return Fit(folder, state, loaded, meter, listener, signals).go()
    finally:
        loaded.close()
        folder.close()
