"""The results of a study so far: one value that tables, files and pages are made from."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import combinations
from statistics import fmean
from typing import Any, Literal

from prnas.space import zoo
from prnas.space.genotype import Genotype
from prnas.space.nasbench201.truth import truth_of
from prnas.studies import statistics
from prnas.studies.plan import Job, Kind, Plan, Row
from prnas.studies.states import JobState

FORMAT, VERSION = "prnas-study-summary", 1
Metric = Literal["test_error", "true_error", "validation_error"]
METRICS: dict[Metric, str] = {
    "test_error": "Test error",
    "true_error": "True test error",
    "validation_error": "Validation error",
}


@dataclass(frozen=True, slots=True)
class Unit:
    """A search, or a cell, with the trainings of it. It is the unit of all statistics."""

    seed: int
    genotype: Genotype | None
    search_seconds: float | None
    validation_error: float | None
    trainings: tuple["Training", ...]  # Those that are done.
    complete: bool  # Whether all that the study wants of it is done.
    looked_up: bool = False  # Whether the table of NAS-Bench-201 is the judge.

    @property
    def true_error(self) -> float | None:
        """The test error on CIFAR-10 that the cell's network has after 200 epochs."""
        truth = truth_of(self.genotype) if self.looked_up and self.genotype is not None else None
        return None if truth is None else 1 - truth.data_sets["cifar10"].test / 100

    @property
    def error(self) -> float | None:
        """The mean test error; of a search that is not trained, the true one or its supernet's."""
        if not self.complete:
            return None
        if self.looked_up:
            return self.true_error
        if not self.trainings:
            return self.validation_error
        return fmean(training.test_error for training in self.trainings)


@dataclass(frozen=True, slots=True)
class Training:
    job: Job
    test_error: float
    parameters: int | None
    macs: int | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class RowResult:
    """A row: all its units, and what those that are whole say together."""

    name: str
    kind: Kind
    published: str | None
    units: tuple[Unit, ...]
    summary: statistics.Summary | None
    components: statistics.Components | None
    ranks: tuple[int, int] | None = None  # The best and the worst that it may have.

    @property
    def errors(self) -> list[float]:
        return [unit.error for unit in self.units if unit.error is not None]

    def mean_of(self, field: str) -> float | None:
        """The mean of a field over the trainings that are done."""
        values = [getattr(training, field) for unit in self.units for training in unit.trainings]
        numbers = [float(value) for value in values if value is not None]
        return fmean(numbers) if numbers else None

    @property
    def search_seconds(self) -> float | None:
        numbers = [unit.search_seconds for unit in self.units if unit.search_seconds is not None]
        return fmean(numbers) if numbers else None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two rows compared. `difference`: the second mean less the first."""

    first: str
    second: str
    difference: float
    p: float
    corrected: float  # p after Holm's correction for the number of pairs.

    @property
    def significant(self) -> bool:
        return self.corrected < statistics.LEVEL


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of the study's order of published cells with the published order."""

    rows: tuple[str, ...]
    tau: float


@dataclass(frozen=True, slots=True)
class StudyResults:
    """Everything; errors are shares of 1."""

    # "test_error", "true_error" (looked up) or, of supernets alone, "validation_error".
    metric: Metric
    rows: tuple[RowResult, ...]
    pairs: tuple[Pair, ...]
    agreement: Agreement | None
    detectable: float | None  # Difference that the study can show, by the spread it has seen.
    jobs_done: int
    jobs: int

    @property
    def complete(self) -> bool:
        return self.jobs_done == self.jobs

    @property
    def compares(self) -> bool:
        """Whether the errors are those of cells, so that rows can be compared by them."""
        return self.metric != "validation_error"

    def row(self, name: str) -> RowResult:
        return next(row for row in self.rows if row.name == name)

    def to_json(self, plan: Plan) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "description": plan.study.description,
            "metric": self.metric,
            "level": statistics.LEVEL,
            "jobs": {"done": self.jobs_done, "of": self.jobs},
            "rows": [_row_data(row) for row in self.rows],
            "pairs": [{**asdict(pair), "significant": pair.significant} for pair in self.pairs],
            "agreement": None if self.agreement is None else asdict(self.agreement),
            "detectable": self.detectable,
            "conclusions": conclusions(self),
        }


def _row_data(row: RowResult) -> dict[str, Any]:
    return {
        "name": row.name,
        "kind": row.kind,
        "published": row.published,
        "summary": None if row.summary is None else asdict(row.summary),
        "variance": None if row.components is None else asdict(row.components),
        "ranks": row.ranks,
        "parameters": row.mean_of("parameters"),
        "macs": row.mean_of("macs"),
        "search_seconds": row.search_seconds,
        "training_seconds": row.mean_of("seconds"),
        "units": [_unit_data(row, unit) for unit in row.units],
    }


def _unit_data(row: RowResult, unit: Unit) -> dict[str, Any]:
    return {
        "seed": unit.seed,
        "error": unit.error,
        "validation_error": unit.validation_error,
        "search_seconds": unit.search_seconds,
        "folder": f"{row.name}/seed-{unit.seed}" if row.kind == "search" else None,
        "genotype": None if unit.genotype is None else unit.genotype.to_json(),
        "trainings": [
            {
                "seed": training.job.seed,
                "test_error": training.test_error,
                "parameters": training.parameters,
                "macs": training.macs,
                "seconds": training.seconds,
                "folder": training.job.path,
            }
            for training in unit.trainings
        ],
    }


def results_of(plan: Plan, states: Mapping[int, JobState]) -> StudyResults:
    """A pure function of the plan and what the folders say."""
    metric = _metric(plan)
    compares = metric != "validation_error"
    rows = [_row_result(plan, row, states) for row in plan.rows]
    against = plan.study.against
    pairs = _pairs(rows, against) if compares else ()
    if compares and against is None:  # Ranks need a test of every pair.
        rows = _ranked(rows, pairs)
    done = sum(states[job.number].state == "done" for job in plan.jobs)
    return StudyResults(
        metric,
        tuple(rows),
        pairs,
        _agreement(rows),
        _detectable(rows, against) if compares else None,
        done,
        len(plan.jobs),
    )


def _metric(plan: Plan) -> Metric:
    if plan.study.judge == "truth":
        return "true_error"
    return "test_error" if plan.study.trainings else "validation_error"


def _row_result(plan: Plan, row: Row, states: Mapping[int, JobState]) -> RowResult:
    jobs: dict[int, list[Job]] = {unit: [] for unit in plan.units(row)}
    for job in plan.jobs:
        if job.row.name == row.name:
            jobs[job.unit].append(job)
    units = tuple(_unit(row, seed, of_unit, states) for seed, of_unit in jobs.items())
    if plan.study.judge == "truth":
        units = tuple(replace(unit, looked_up=True) for unit in units)
    errors = [unit.error for unit in units if unit.error is not None]
    groups = [
        [training.test_error for training in unit.trainings] for unit in units if unit.trainings
    ]
    return RowResult(
        row.name,
        row.kind,
        row.published,
        units,
        _summary(tuple(errors)) if errors else None,
        # A single cell has trainings only: there is nothing that varies between searches.
        None if row.kind == "cell" else statistics.variance_components(groups),
    )


def _unit(row: Row, seed: int, jobs: Sequence[Job], states: Mapping[int, JobState]) -> Unit:
    search = next((states[job.number] for job in jobs if job.task == "search"), None)
    done = [(job, states[job.number]) for job in jobs if states[job.number].state == "done"]
    trainings = tuple(
        Training(job, state.test_error, state.parameters, state.macs, state.seconds)
        for job, state in done
        if state.test_error is not None
    )
    searched = search is not None and search.state == "done"
    return Unit(
        seed,
        search.genotype if search is not None else row.genotype(seed),
        search.seconds if search is not None and searched else None,
        search.validation_error if search is not None else None,
        trainings,
        len(done) == len(jobs),
    )


def _pairs(rows: Sequence[RowResult], against: str | None) -> tuple[Pair, ...]:
    """Every two rows of which several units are known; with `against`, that row and each other."""
    samples = {row.name: tuple(row.errors) for row in rows if len(row.errors) > 1}
    tested = [pair for pair in combinations(samples, 2) if against is None or against in pair]
    p_values = {(a, b): _p_value(samples[a], samples[b]) for a, b in tested}
    corrected = statistics.holm(p_values)
    return tuple(
        Pair(a, b, fmean(samples[b]) - fmean(samples[a]), p, corrected[a, b])
        for (a, b), p in p_values.items()
    )


# A study that goes on asks again and again for what has mostly not changed.
_p_value = lru_cache(maxsize=10_000)(statistics.permutation_test)
_summary = lru_cache(maxsize=1_000)(statistics.summary)


def _ranked(rows: Sequence[RowResult], pairs: Sequence[Pair]) -> list[RowResult]:
    means = {row.name: row.summary.mean for row in rows if row.summary and row.summary.n > 1}
    p_values = {(pair.first, pair.second): pair.corrected for pair in pairs}
    ranks = statistics.rank_ranges(means, p_values)
    return [replace(row, ranks=ranks.get(row.name)) for row in rows]


def _agreement(rows: Sequence[RowResult]) -> Agreement | None:
    """Kendall's tau of three or more published cells with their errors on CIFAR-10."""
    both = [
        (row.name, row.summary.mean, published[0])
        for row in rows
        if row.published is not None and row.summary is not None
        if (published := zoo.entry(row.published).cifar10_error) is not None
    ]
    if len(both) < 3:
        return None
    tau = statistics.kendall_tau([mean for _, mean, _ in both], [error for _, _, error in both])
    return None if tau is None else Agreement(tuple(name for name, _, _ in both), tau)


def _detectable(rows: Sequence[RowResult], against: str | None) -> float | None:
    """The detectable difference, by the pooled spread of all rows and their fewest units."""
    samples = {row.name: row.errors for row in rows if len(row.errors) > 1}
    if len(samples) < 2 or (against is not None and against not in samples):
        return None
    num_pairs = len(samples) - 1
    if against is None:
        num_pairs = num_pairs * len(samples) // 2
    fewest = min(len(errors) for name, errors in samples.items() if name != against)
    return statistics.detectable(
        fewest,
        pooled_deviation(list(samples.values())),
        statistics.LEVEL / num_pairs,
        other=None if against is None else len(samples[against]),
    )


def pooled_deviation(samples: Sequence[Sequence[float]]) -> float:
    """The spread within samples of at least two numbers each."""
    freedom = sum(len(sample) - 1 for sample in samples)
    squares = sum((value - fmean(sample)) ** 2 for sample in samples for value in sample)
    return (squares / freedom) ** 0.5


def conclusions(results: StudyResults) -> list[str]:
    """The sentences that may be concluded, and what may not."""
    return [*differences(results), *limits(results)]


def differences(results: StudyResults) -> list[str]:
    """Sentences on what the study has shown."""
    sentences: list[str] = []
    for pair in results.pairs:
        if pair.significant:
            better, worse = pair.first, pair.second
            if pair.difference < 0:
                better, worse = worse, better
            sentences.append(
                f"{better} is better than {worse}, by {100 * abs(pair.difference):.2f} points on "
                f"average (p = {pair.corrected:.2g} after Holm's correction)."
            )
    return sentences


def limits(results: StudyResults) -> list[str]:
    """Sentences on what the study has not shown, and why."""
    if not results.compares:
        return []
    sentences: list[str] = []
    open_pairs = [pair for pair in results.pairs if not pair.significant]
    if open_pairs:
        names = ", ".join(f"{pair.first} and {pair.second}" for pair in open_pairs[:5])
        more = f" and {len(open_pairs) - 5} other pairs" if len(open_pairs) > 5 else ""
        sentences.append(f"No difference is shown between {names}{more}; there may be one.")
        sentences += _why_not(results)
    if not results.pairs and len(results.rows) > 1:
        sentences.append("Nothing can be concluded before two rows have two results each.")
    if results.pairs and not results.complete:
        sentences.append("This is what is known so far: not all jobs are done.")
    return sentences


def _why_not(results: StudyResults) -> list[str]:
    least = min(len(row.errors) for row in results.rows if len(row.errors) > 1)
    if results.detectable is None:
        return [
            f"With {least} results a row, no test of {len(results.pairs)} pairs can be "
            "significant: more seeds are needed."
        ]
    return [
        f"With {least} results a row, a difference of {100 * results.detectable:.2f} points would "
        f"be shown in {100 * statistics.POWER:.0f} of 100 such studies, a smaller one less often."
    ]
