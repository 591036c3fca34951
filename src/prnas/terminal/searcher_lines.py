"""A searcher in lines: what it is, its evaluations in a log, and in the view of a terminal."""

from collections import deque

from prnas.config.search import SearchConfig
from prnas.config.searcher import SearcherConfig
from prnas.runs.records import EvaluationRecord
from prnas.space.nasbench201.truth import DATA_SETS
from prnas.terminal.amounts import counted, duration, exact_percent

NAMES = {
    "random": "random search",
    "evolution": "ageing evolution",
    "local-search": "local search",
    "reinforce": "REINFORCE",
    "controller": "an LSTM controller",
    "halving": "successive halving",
}


def score_of(record: EvaluationRecord, score: float | None = None) -> str:
    """'91.21 %'; of a proxy, the number itself. `score`: another one than the record's own."""
    value = record.score if score is None else score
    return exact_percent(value) if record.measure is None else f"{value:.6g}"


def in_short(config: SearchConfig) -> str:
    """'ageing evolution (population 10, sample 3)'."""
    searcher = config.searcher
    name = NAMES[searcher.method]
    if searcher.method == "evolution":
        own = searcher.evolution
        if own.death == "worst":
            name = "evolution in which the worst dies"
        more = ", morphisms" if own.mutation == "morphisms" else ""
        return f"{name} (population {own.population}, sample {own.sample}{more})"
    if searcher.method == "controller":
        update = {"reinforce": "REINFORCE", "ppo": "PPO"}[searcher.controller.update]
        return f"{name} trained by {update}"
    return name


def budget(searcher: SearcherConfig) -> str:
    """'100 evaluations, at most 60 s'."""
    own = searcher.budget
    limits = [
        None if own.evaluations is None else counted(own.evaluations, "evaluation"),
        None if own.images is None else f"at most {counted(own.images, 'image')}",
        None if own.steps is None else f"at most {counted(own.steps, 'step')}",
        None if own.seconds is None else f"at most {duration(own.seconds)}",
    ]
    return ", ".join(limit for limit in limits if limit)


def supernet_budget(config: SearchConfig) -> str | None:
    """The budget of a search on a supernet, if it bounds more than evaluations.

    '100 evaluations, at most 5,000 steps with the supernet's training, which may take 90 % of them'
    """
    own = config.searcher.budget
    if not config.searcher.by_supernet or own.images is own.steps is own.seconds is None:
        return None
    share = f"{100 * own.training_share:.6g} %"
    return f"{budget(config.searcher)} with the supernet's training, which may take {share} of it"


def cell_search(config: SearchConfig) -> str:
    """A description of a search that scores cells one by one: method, scorer and budget."""
    searcher = config.searcher
    if searcher.scorer == "training":
        epochs = counted(searcher.training.training.epochs, "epoch")
        by = f"trainings of {epochs} on {config.data.name}"
    elif searcher.scorer == "proxy":
        by = f"{searcher.proxy.of}, before any training"
    else:
        data = next(
            data_set.title for data_set in DATA_SETS if data_set.name == searcher.table.data
        )
        by = f"the table of NAS-Bench-201 ({data}, validation after 12 epochs)"
    return f"{in_short(config)} by {by}: {budget(searcher)}"


class Evaluations:
    """The evaluations so far, as far as they are shown."""

    def __init__(self, config: SearchConfig) -> None:
        self.config = config
        self.last: EvaluationRecord | None = None
        self.best: EvaluationRecord | None = None  # of this session, if it had one
        own = config.searcher.evolution
        self._size = own.population if config.searcher.method == "evolution" else 0
        self._population: deque[float] = deque()

    def add(self, record: EvaluationRecord) -> bool:
        """Whether it is the best of its stage so far."""
        if record.stage != "repeat" and self.last is not None and record.stage != self.last.stage:
            self.best = None
        self.last = record
        if record.stage == "repeat":
            return False
        if record.stage == "search" and self._size:
            self._population.append(record.score)
            if len(self._population) > self._size:
                if self.config.searcher.evolution.death == "oldest":
                    self._population.popleft()
                else:
                    self._population.remove(min(self._population))
        # `record.best` also knows the sessions before this one.
        better = record.score == record.best and (
            self.best is None or _worth(record) > _worth(self.best)
        )
        if better:
            self.best = record
        return better

    def sentence(self) -> str:
        """'evaluation 17/100: 90.12 %, the best so far', for a log."""
        assert self.last is not None
        return f"{self.position}: {score_of(self.last)}, the best so far"

    @property
    def position(self) -> str:
        """'evaluation 17/100'; of the finalists, how many were scored again."""
        assert self.last is not None
        if self.last.stage == "final":
            return f"finalist, evaluation {self.last.number}"
        if self.last.stage == "repeat":
            return f"the best again, evaluation {self.last.number}"
        return f"evaluation {self.last.number}{'' if self.total is None else f'/{self.total}'}"

    @property
    def total(self) -> int | None:
        """The number of evaluations, if it is known before."""
        assert self.last is not None
        if self.config.searcher.by_supernet:  # Its training counts as well.
            return None if self.last.used is not None else self.config.searcher.budget.evaluations
        each = max(self.last.images // self.last.number, 1)
        return self.config.searcher.budget.evaluations_for(each)

    def in_a_line(self) -> str:
        """'best 91.21 % (evaluation 43)  last 89.10 %  population of 10: 88.10 to 91.21 %'."""
        assert self.last is not None
        best = f"best {score_of(self.last, self.last.best)}"
        if self.best is not None:
            best += f" (evaluation {self.best.number})"
        facts = [best, f"last {score_of(self.last)}"]
        if self._population and len(self._population) == min(self._size, self.last.number):
            low, high = min(self._population), max(self._population)
            size = len(self._population)
            ends = f"{100 * low:.2f} to {exact_percent(high)}"
            if self.last.measure is not None:
                ends = f"{low:.6g} to {high:.6g}"
            facts.append(f"population of {size}: {ends}")
        return "  ".join(facts)


def _worth(record: EvaluationRecord) -> tuple[float, float]:
    """What a search compares: a score by more of a training is better than any by less."""
    return record.share or 1.0, record.score
