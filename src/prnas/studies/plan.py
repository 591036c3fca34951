"""The plan of a study: its jobs as a pure function of the file and the recipes that it names."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from random import Random
from typing import Any, Literal

from prnas.config import recipes
from prnas.config.recipes import KINDS
from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.config.sections import RunConfig
from prnas.io.errors import FormatError, UserError
from prnas.io.paths import exists
from prnas.runs import named
from prnas.runs.integrity import config_digest
from prnas.space import zoo
from prnas.space.analysis.counting import discoverable
from prnas.space.analysis.sampling import random_genotype
from prnas.space.genotype import Genotype
from prnas.space.nasbench201.truth import truth_of
from prnas.space.operations import Operation
from prnas.space.setting import Setting
from prnas.space.shape import NASBENCH201, CellShape, Output, Role
from prnas.studies.config import MOST_TRAININGS, RowConfig, StudyConfig, override_list

Kind = Literal["search", "random", "cell"]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the comparison. `config`: of its searches, or the one whose space it draws from."""

    name: str
    kind: Kind
    config: SearchConfig | None = None
    cell: Genotype | None = None
    published: str | None = None  # The name of a published cell.

    def genotype(self, seed: int) -> Genotype | None:
        """The cells of a seed, if they are known before anything runs."""
        if self.kind == "random":
            assert self.config is not None
            # The search could have come so far: one morphing step in each cycle that replaces.
            steps = sum(cycle.morphisms > 0 for cycle in self.config.schedule.cycles)
            network = self.config.network
            skips = tuple(self.config.derivation.max_skips.items())
            looks = (network.nodes, network.shape, network.output, skips)
            return _random_cells(self.config.space, steps, looks, seed)
        return self.cell


@lru_cache(maxsize=10_000)
def _random_cells(
    space: Setting,
    steps: int,
    looks: tuple[int, CellShape, Output, tuple[tuple[Role, int], ...]],
    seed: int,
) -> Genotype:
    operations, generator = _operations(space, steps), Random(f"random cell {seed}")
    nodes, shape, output, max_skips = looks
    return random_genotype(operations, generator, nodes, shape, output, dict(max_skips))


@lru_cache(maxsize=100)
def _operations(space: Setting, steps: int) -> tuple[Operation, ...]:
    return discoverable(space, steps)


@dataclass(frozen=True, slots=True)
class Job:
    """A search or a training: one run, in one folder. Numbers count from 1."""

    number: int
    row: Row
    task: Literal["search", "retrain"]
    unit: int  # The seed of the search, or of the random cell, that this is about.
    training: int | None  # The number of the training of this unit, from 0.
    needs: int | None = None  # The number of the job whose cells this one trains.

    @property
    def seed(self) -> int:
        """A training's is its own: no two trainings of a row share their randomness."""
        if self.training is None:
            return self.unit
        return self.unit * MOST_TRAININGS + self.training

    @property
    def name(self) -> str:
        """The name of the run's folder, in the folder of the row."""
        unit = f"seed-{self.unit}"
        return unit if self.training is None else f"{unit}-training-{self.training}"

    @property
    def path(self) -> str:
        """The run's folder, in the study's."""
        return f"{self.row.name}/{self.name}"


@dataclass(frozen=True)
class Plan:
    """A study with every recipe, name and override resolved."""

    study: StudyConfig
    rows: tuple[Row, ...]
    retrain: RetrainConfig | None

    @cached_property
    def _units(self) -> dict[str, range]:
        return {row.name: self.study.seeds_of(row.name) for row in self.rows}

    def units(self, row: Row) -> range:
        """The seeds of a row's searches, or cells."""
        return self._units[row.name]

    @property
    def fewest_units(self) -> int:
        """The fewest units of a row; not of the one that others are tested against."""
        against = self.study.against if len(self._units) > 1 else None
        return min(len(units) for name, units in self._units.items() if name != against)

    @property
    def units_against(self) -> int | None:
        """The units of the row that others are tested against, if there is one."""
        against = self.study.against
        return None if against is None else len(self._units[against])

    @cached_property
    def _all_units(self) -> range:
        return max(self._units.values(), key=len)

    @cached_property
    def jobs(self) -> tuple[Job, ...]:
        """All searches first, then all trainings: none comes before what it needs.

        Row by row within a seed, so that a study that is stopped has something of every row.
        """
        jobs: list[Job] = []
        searches: dict[tuple[str, int], int] = {}
        for unit in self._all_units:
            for row in self.rows:
                if row.kind == "search" and unit in self.units(row):
                    jobs.append(Job(len(jobs) + 1, row, "search", unit, None))
                    searches[row.name, unit] = len(jobs)
        for unit in self._all_units:
            for training in range(self.study.trainings):
                for row in self.rows:
                    if unit not in self.units(row):
                        continue
                    needs = searches.get((row.name, unit))
                    jobs.append(Job(len(jobs) + 1, row, "retrain", unit, training, needs))
        return tuple(jobs)

    def config_digest(self, job: Job, genotype: Genotype | None) -> str:
        """The digest of the config that a job's run must have; a training's has a `genotype`."""
        if job.task == "search":
            data = {**self._search_data[job.row.name], "seed": job.seed}
        else:
            assert genotype is not None
            data = {**self._retrain_data, "seed": job.seed, "genotype": genotype.to_json()}
        return config_digest(data)

    @cached_property
    def _search_data(self) -> dict[str, dict[str, Any]]:
        return {row.name: row.config.to_data() for row in self.rows if row.config is not None}

    @cached_property
    def _retrain_data(self) -> dict[str, Any]:
        return {} if self.retrain is None else self.retrain.to_data()


def make_plan(study: StudyConfig, folder: Path | None = None) -> Plan:
    """Resolve what a study names. One `FormatError` names all that is wrong, with its row.

    Files that it names are looked for in `folder`, that of the study's file, and then here.
    """
    problems: list[str] = []
    data = override_list(study.data, "data.")

    def config_of(recipe: str, task: Literal["search", "retrain"], own: Sequence[str]) -> Any:
        return named.config_of(_beside(recipe, folder), [*data, *own], KINDS[task])

    rows: list[Row] = []
    for row in study.rows:
        try:
            rows.append(_row(row, folder, config_of))
            if study.judge == "truth":
                _check_looked_up(rows[-1])
        except (UserError, FormatError) as error:
            problems += [f"row '{row.name}': {problem}" for problem in _problems(error)]
    retrain: RetrainConfig | None = None
    if study.trainings:
        try:
            own = override_list(study.retrain.set)
            retrain = config_of(study.retrain.recipe, "retrain", own)
        except (UserError, FormatError) as error:
            problems += [f"retrain: {problem}" for problem in _problems(error)]
    if problems:
        raise FormatError(problems)
    return Plan(study, tuple(rows), retrain)


def _row(row: RowConfig, folder: Path | None, config_of: Any) -> Row:
    if row.cell is not None:
        published = row.cell if row.cell in zoo.names() else None
        return Row(
            row.name, "cell", None, named.genotype_and_data(_beside(row.cell, folder))[0], published
        )
    config = config_of(row.search or row.random, "search", override_list(row.set))
    return Row(row.name, row.kind, config)


def _check_looked_up(row: Row) -> None:
    """All that a row can find must be cells of NAS-Bench-201."""
    looks = row.config.network.shape if row.config is not None else None
    cell = row.cell if looks is None else None
    if (looks is not None and looks != NASBENCH201) or (cell is not None and not truth_of(cell)):
        raise UserError(
            "judge: truth looks cells up in the table of NAS-Bench-201, and this row's are others; "
            "its recipes are nasbench201, nasbench201-small and those of searchers, such as random"
        )


def _beside(name: str, folder: Path | None) -> str:
    """A file beside the study's own, if there is one of that name; else the name as it is."""
    shipped = name in recipes.names() or name in zoo.names()
    if folder is None or shipped or not exists(folder / name):
        return name
    return str(folder / name)


def _problems(error: UserError | FormatError) -> Sequence[str]:
    return error.problems if isinstance(error, FormatError) else [str(error)]


def plain(config: RunConfig | None) -> dict[str, Any] | None:
    return None if config is None else config.to_data()
