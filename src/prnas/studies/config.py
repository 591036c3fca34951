"""The study file: which rows are compared, how often, how they are trained, and on what."""

import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, model_validator

from prnas.config.overrides import apply_overrides
from prnas.config.sections import Section
from prnas.io.errors import FormatError, UserError, reading, suggestion
from prnas.io.paths import exists
from prnas.io.reading import validated
from prnas.io.text import read_text
from prnas.io.yaml_files import parse_yaml
from prnas.runs.names import check_name
from prnas.studies.names import OWN

MOST_SEEDS, MOST_TRAININGS, MOST_ROWS = 1_000, 1_000, 100
Text = Annotated[str, Field(min_length=1, max_length=4096)]
Overrides = Annotated[dict[Text, Any], Field(max_length=1_000)]
ENGINES = ("local", "ray")
_ADDRESS = re.compile(r"auto|(?:[\w.-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}")


def _row_name(name: str) -> str:
    try:
        check_name(name, "a row's name")
    except UserError as error:
        raise ValueError(str(error)) from None
    if name.casefold() in OWN:
        raise ValueError(f"'{name}' is a file of the study itself; call the row otherwise")
    return name


def _engine(name: str) -> str:
    if name not in ENGINES:
        raise ValueError(f"no engine is called '{name:.60}'.{suggestion(name, ENGINES)}")
    return name


def check_address(address: str) -> str:
    """The address of a Ray cluster: `auto`, or what `ray start --head` prints."""
    if not _ADDRESS.fullmatch(address):
        raise ValueError(
            f"an address is auto (the cluster that this machine is in) or HOST:PORT, such as "
            f"10.0.0.1:6379, got '{address:.60}'"
        )
    return address


class RowConfig(Section):
    """A row of the comparison: searches by a recipe, cells drawn at random, or one known cell."""

    #: The row's name, and that of its folder.
    name: Annotated[str, AfterValidator(_row_name)]
    #: A recipe for a search, or a YAML file.
    search: Text | None = None
    #: A recipe for a search, or a YAML file: cells are drawn at random from its space.
    random: Text | None = None
    #: A published cell, a genotype file or a run's folder.
    cell: Text | None = None
    #: Overrides of the recipe, by dotted key.
    set: Overrides = Field(default_factory=dict)
    #: Searches, or cells, of this row; null: as many as the study says.
    seeds: Annotated[int, Field(ge=1, le=MOST_SEEDS)] | None = None

    @model_validator(mode="after")
    def _single_kind(self) -> Self:
        kinds = [kind for kind in ("search", "random", "cell") if getattr(self, kind) is not None]
        if len(kinds) != 1:
            raise ValueError(
                "a row has one of search (a recipe), random (a recipe, for its space) and cell (a "
                f"published cell or a genotype file); this one has {' and '.join(kinds) or 'none'}"
            )
        if self.cell is not None and self.set:
            raise ValueError("set overrides a recipe, and a cell has none")
        return self

    @property
    def kind(self) -> Literal["search", "random", "cell"]:
        if self.search is not None:
            return "search"
        return "random" if self.random is not None else "cell"


def _recipe_data(value: Any) -> Any:
    return {"recipe": value} if isinstance(value, str) else value


class RetrainingConfig(Section):
    """The training of the network of each row's cells, the same for all rows."""

    #: A recipe for a training, or a YAML file.
    recipe: Text = "retrain-quick"
    #: Overrides of the recipe, by dotted key.
    set: Overrides = Field(default_factory=dict)


def _engine_data(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class EngineConfig(Section):
    """The engine that runs the jobs, and where it does."""

    #: Processes on this machine, or Ray.
    name: Annotated[str, AfterValidator(_engine)] = "local"
    #: Address of a running Ray cluster; null: one of our own on this machine.
    address: Annotated[str, AfterValidator(check_address)] | None = None

    @model_validator(mode="after")
    def _address_of_ray(self) -> Self:
        if self.address is not None and self.name != "ray":
            raise ValueError(f"an address is for the engine ray, and this one is {self.name}")
        return self


class ResourcesConfig(Section):
    """The resources of a job."""

    #: CPU threads.
    threads: Annotated[int, Field(ge=1, le=1024)] = 1
    #: GB of memory, which the batch size follows; null: an equal share.
    memory: Annotated[float, Field(gt=0, le=1e6)] | None = None
    #: Whole GPUs, or a share of one, such as 0.5; null: one, where there are any.
    gpus: Annotated[float, Field(ge=0, le=1024)] | None = None

    @model_validator(mode="after")
    def _whole_or_share(self) -> Self:
        gpus = self.gpus
        if gpus is not None and gpus > 1 and gpus != int(gpus):
            raise ValueError(f"gpus is a whole number or a share of one, got {gpus}")
        return self


class StudyConfig(Section):
    """A whole study: rows x seeds x trainings."""

    #: What it is, for people: its page shows it.
    description: Annotated[str, Field(max_length=10_000)] = ""
    #: What is compared: each row has a name and one of `search`, `random` and `cell`.
    rows: Annotated[tuple[RowConfig, ...], Field(min_length=1, max_length=MOST_ROWS)]
    #: Searches, or cells, of each row.
    seeds: Annotated[int, Field(ge=1, le=MOST_SEEDS)] = 5
    #: Seed of the first of them; the others follow it.
    first_seed: Annotated[int, Field(ge=0, lt=2**40)] = 0
    #: Trainings of each search's cells; training m of seed s has the seed 1000 s + m.
    trainings: Annotated[int, Field(ge=0, le=MOST_TRAININGS)] = 1
    #: What says how good a cell is: a training of its network, or the table of NAS-Bench-201.
    judge: Literal["training", "truth"] = "training"
    retrain: Annotated[RetrainingConfig, BeforeValidator(_recipe_data)] = RetrainingConfig()
    #: Name of the row that each other row is tested against; null: every pair is tested.
    against: Annotated[str, Field(max_length=200)] | None = None
    #: Keys of the data section, for all searches and trainings.
    data: Overrides = Field(default_factory=dict)
    engine: Annotated[EngineConfig, BeforeValidator(_engine_data)] = EngineConfig()
    #: Number of jobs at the same time; null: as many as the resources allow.
    slots: Annotated[int, Field(ge=1, le=1024)] | None = None
    resources: ResourcesConfig = ResourcesConfig()

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        names = [row.name.casefold() for row in self.rows]
        if doubles := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"two rows are called '{min(doubles)}'; each needs a name of its own")
        listed = [row.name for row in self.rows]
        if self.against is not None and self.against not in listed:
            hint = suggestion(self.against, listed)
            raise ValueError(f"against: no row is called '{self.against:.60}'.{hint}")
        if self.judge == "truth":
            if self.trainings:
                raise ValueError(
                    "judge: truth looks cells up and trains nothing, so trainings must be 0; "
                    "leave it out"
                )
        elif not self.trainings and any(row.kind != "search" for row in self.rows):
            raise ValueError("trainings: 0 leaves nothing to do for a row that is no search")
        return self

    @property
    def num_pairs(self) -> int:
        """The number of pairs of rows that are tested."""
        rows = len(self.rows)
        return rows * (rows - 1) // 2 if self.against is None else rows - 1

    def seeds_of(self, row: str) -> range:
        """The seeds of a row's searches, or cells."""
        number = next(each.seeds for each in self.rows if each.name == row) or self.seeds
        return range(self.first_seed, self.first_seed + number)

    def to_data(self) -> dict[str, Any]:
        """Plain data with every default written out, which `from_data` reads back."""
        return self.model_dump(mode="json")

    @classmethod
    def from_data(cls, data: Any, overrides: Sequence[str] = ()) -> Self:
        """The study in parsed YAML; a `FormatError` names every problem and its key."""
        if isinstance(data, dict) and cast(dict[str, Any], data).get("judge") == "truth":
            data = {"trainings": 0, **cast(dict[str, Any], data)}  # There is nothing to train.
        study = validated(_adapter(cls), {} if data is None else data, "study")
        if not overrides:
            return study
        changed = apply_overrides(study.to_data(), overrides, lambda data: None)
        return validated(_adapter(cls), changed, "study")


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def override_list(values: dict[str, Any], section: str = "") -> list[str]:
    """A mapping of dotted keys as the overrides that a command line would have."""
    return [f"{section}{key}={json.dumps(value)}" for key, value in values.items()]


# ---------------------------------------------------------------- ready studies, and files


def ready_studies() -> list[str]:
    """The names of the studies that come with prnas."""
    entries = (item.name for item in files("prnas.studies.ready").iterdir())
    return sorted(name.removesuffix(".yaml") for name in entries if name.endswith(".yaml"))


def ready_text(name: str) -> str:
    return (files("prnas.studies.ready") / f"{name}.yaml").read_text(encoding="utf-8")


def read_study(name: str, overrides: Sequence[str] = ()) -> StudyConfig:
    """A study that comes with prnas by its name, or one in a YAML file."""
    with reading(name):
        if name in ready_studies():
            text = ready_text(name)
        elif exists(name):
            text = read_text(Path(name))
        else:
            hint = suggestion(name, ready_studies())
            raise UserError(f"no study and no file is called '{name:.200}'.{hint}")
        data = parse_yaml(text)
        if isinstance(data, dict) and "rows" not in data:
            raise FormatError(["rows: a study needs them; `prnas recipes baselines-quick` is one"])
        return StudyConfig.from_data(data, overrides)
