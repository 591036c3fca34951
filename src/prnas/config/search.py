"""The config of a search: typed, checked, and enough to repeat the search."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from pydantic import BeforeValidator, Field, model_validator
from pydantic import PlainSerializer as Serializer

from prnas.config.architecture import SAMPLING, ArchitectureConfig
from prnas.config.choices import ExecutionChoice
from prnas.config.final import FinalConfig
from prnas.config.numbers import Decay, Portion, Rate, Share, Size
from prnas.config.searcher import SearcherConfig, with_recipe
from prnas.config.sections import (
    BatchConfig,
    ComputeConfig,
    ImagesConfig,
    RunConfig,
    Section,
    ValidationConfig,
)
from prnas.io.errors import FormatError, reading
from prnas.io.paths import exists
from prnas.io.text import read_text
from prnas.io.yaml_files import parse_yaml
from prnas.searchers.cells import CellSpace
from prnas.space.final_network import FinalNetwork
from prnas.space.nasbench201.cells import OPERATIONS as OPERATIONS201
from prnas.space.network_plan import check_network
from prnas.space.schedule import (
    MIN_CELLS,
    MOST_CELLS,
    MOST_CHANNELS,
    MOST_EPOCHS,
    Schedule,
    paper_schedule,
)
from prnas.space.setting import SETTINGS, Setting, named_setting, setting_from_data, setting_to_data
from prnas.space.shape import (
    DARTS,
    MAX_NODES,
    NASBENCH201,
    ROLES,
    SHAPES,
    USUAL,
    Output,
    Role,
    ShapeField,
    shape_data,
    width,
)


class DataConfig(ImagesConfig):
    """The images of a search, some of which train the architecture weights."""

    #: Fraction of the training images for architecture weights; the rest is for network weights.
    architecture_share: Share = 0.5


class NetworkConfig(Section):
    """The supernet; a cycle of the schedule may set its own cells and channels."""

    #: Number of cells.
    cells: Annotated[int, Field(ge=MIN_CELLS, le=MOST_CELLS)] = 8
    #: Channels of the first cells; every reduction doubles them.
    channels: Annotated[int, Field(ge=1, le=MOST_CHANNELS)] = 16
    #: Number of nodes in a cell.
    nodes: Annotated[int, Field(ge=1, le=MAX_NODES)] = 4
    #: How a cell's output is made of its nodes: all of them, or the last one alone.
    output: Output = "concat"
    #: Candidates compute one of so many parts of the channels; the others pass by (PC-DARTS).
    partial_channels: Annotated[int, Field(ge=1, le=MOST_CHANNELS)] = 1
    #: What a cell looks like: a name, or its own parts.
    shape: ShapeField = DARTS

    @model_validator(mode="before")
    @classmethod
    def _usual(cls, data: Any) -> Any:
        return with_usual(data)


def with_usual(network: Any) -> Any:
    """A shape that is given by name brings its number of nodes and its output along."""
    if not isinstance(network, dict):
        return network
    fields = cast(dict[str, Any], network)
    name = fields.get("shape")
    if not isinstance(name, str) or name not in USUAL:
        return fields
    nodes, output = USUAL[name]
    return {"nodes": nodes, "output": output, **fields}


class WeightsConfig(Section):
    """SGD for the network weights, with a cosine from `lr` to `lr_min` in every cycle."""

    #: Learning rate at the start of a cycle.
    lr: Rate = 0.025
    #: Learning rate towards which the cosine falls.
    lr_min: Decay = 0.01
    #: Momentum of SGD.
    momentum: Portion = 0.9
    #: Whether the momentum is Nesterov's.
    nesterov: bool = False
    #: Weight decay of SGD.
    weight_decay: Decay = 3e-4
    #: Largest norm of the gradients; longer ones are scaled down to it.
    gradient_norm: Rate = 5.0
    #: Base of the power that bends the cosine, as in sharpDARTS; 1: the cosine itself.
    cosine_power: Annotated[float, Field(ge=1, le=1_000)] = 1.0
    #: Epochs at the start of each cycle in which the rate rises from `lr_min`.
    warmup_epochs: Annotated[int, Field(ge=0, le=100_000)] = 0
    #: Epochs of a first cosine, which starts again, longer by the factor; 0: one for the cycle.
    restart_epochs: Annotated[int, Field(ge=0, le=MOST_EPOCHS)] = 0
    #: Factor by which each restarted cosine is longer than the one before.
    restart_factor: Annotated[int, Field(ge=1, le=100)] = 2

    @model_validator(mode="after")
    def _falls(self) -> Self:
        if self.lr_min > self.lr:
            raise ValueError(f"lr_min ({self.lr_min}) must not exceed lr ({self.lr})")
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov needs a momentum above 0")
        if self.restart_epochs and self.warmup_epochs:
            raise ValueError("restart_epochs goes without warmup_epochs: set one of them to 0")
        return self


class EvidenceConfig(Section):
    """The measurement of candidates' worth at the end of a cycle, on the architecture half."""

    #: Whether candidates are measured; none: nothing beyond what the scoring itself needs.
    measure: Literal["auto", "none"] = "auto"
    #: Largest share of a cycle's work.
    share: Annotated[float, Field(gt=0, le=1_000_000)] = 0.2
    #: Largest number of images.
    images: Size = 1024
    #: After every so many epochs, how sharply the loss depends on architecture weights; 0: never.
    curvature: Annotated[int, Field(ge=0, le=MOST_EPOCHS)] = 0
    #: A search of one cycle ends when that has grown by this factor; 0: it does not.
    curvature_stop: Decay = 0.0


class DerivationConfig(Section):
    """Bounds on the skips of each cell of the genotype."""

    #: Skips that the normal cell may have; null: no bound.
    max_skips_normal: Annotated[int, Field(ge=0)] | None = None
    #: Skips that the reduction cell may have; null: no bound.
    max_skips_reduction: Annotated[int, Field(ge=0)] | None = None

    @property
    def max_skips(self) -> dict[Role, int]:
        """The bounds of those cells that have one."""
        bounds = zip(ROLES, (self.max_skips_normal, self.max_skips_reduction), strict=True)
        return {role: bound for role, bound in bounds if bound is not None}


def read_setting(file: str) -> Setting:
    """A user's own setting from a YAML file."""
    with reading(file):
        return setting_from_data(parse_yaml(read_text(Path(file))))


def _data_of_name(space: Any) -> Any:
    return setting_to_data(named_setting(space)) if isinstance(space, str) else space


SettingField = Annotated[Setting, BeforeValidator(_data_of_name), Serializer(setting_to_data)]


class SearchComputeConfig(ComputeConfig):
    """The computation of a search."""

    #: The way to compute the supernet; the result is the same. auto: the faster one.
    supernet: ExecutionChoice = "auto"


class SearchConfig(RunConfig):
    """A whole search. The defaults are the paper's, in its DARTS-like setting."""

    #: What the config is for.
    task: Literal["search"] = "search"
    #: The search space: a setting's name, or a setting of one's own.
    space: SettingField = SETTINGS["darts-like"]
    #: The cycles.
    schedule: Schedule = Field(default_factory=paper_schedule)
    network: NetworkConfig = NetworkConfig()
    data: DataConfig = DataConfig()
    weights: WeightsConfig = WeightsConfig()
    architecture: ArchitectureConfig = ArchitectureConfig()
    evidence: EvidenceConfig = EvidenceConfig()
    batch: BatchConfig = BatchConfig()
    derivation: DerivationConfig = DerivationConfig()
    searcher: SearcherConfig = SearcherConfig()
    final: FinalConfig = FinalConfig()
    validation: ValidationConfig = ValidationConfig()
    compute: SearchComputeConfig = SearchComputeConfig()  # pyright: ignore

    @model_validator(mode="after")
    def _pools_reach_their_sizes(self) -> Self:
        if problems := self.schedule.pool_problems(len(self.space.initial_pool)):
            raise ValueError("schedule." + "; schedule.".join(problems))
        return self

    @model_validator(mode="after")
    def _warm_up_ends(self) -> Self:
        warm_up = self.weights.warmup_epochs
        shortest = min(cycle.epochs for cycle in self.schedule.cycles)
        if warm_up and warm_up >= shortest:
            raise ValueError(
                f"weights.warmup_epochs ({warm_up}) must be fewer than the epochs of every cycle "
                f"({shortest})"
            )
        return self

    @model_validator(mode="after")
    def _gradients_have_no_scale(self) -> Self:
        if self.architecture.step == "second-order" and self.compute.precision == "16-mixed":
            raise ValueError(
                "architecture.step 'second-order' takes differences of gradients, which the "
                "scaled ones of compute.precision 16-mixed do not allow: use bf16-mixed or 32-true"
            )
        return self

    @model_validator(mode="after")
    def _shape_fits(self) -> Self:
        network, cycles = self.network, self.schedule.cycles
        widest, shape = width(network.output, network.nodes), network.shape
        problems = [f"network.{problem}" for problem in check_network(shape, network.cells, widest)]
        for number, cycle in enumerate(cycles):
            if cycle.cells is not None:
                texts = check_network(shape, cycle.cells)
                problems += [f"schedule.cycles[{number}]: {text}" for text in texts]
        if self.derivation.max_skips_reduction is not None and "reduction" not in shape.roles:
            problems.append("derivation.max_skips_reduction: this shape has no reduction cell")
        if self.counts_costs:
            final_problems = self.final.problems(shape, network.nodes, network.output)
            problems += [f"final.{problem}" for problem in final_problems]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @model_validator(mode="after")
    def _curvature_is_defined(self) -> Self:
        relaxation, step = self.architecture.relaxation, self.architecture.step
        if self.evidence.curvature and relaxation in ("gdas", "rome", "proximal", "multinomial"):
            raise ValueError(
                f"evidence.curvature needs a loss that depends smoothly on architecture weights, "
                f"which relaxation '{relaxation}' does not have"
            )
        if self.evidence.curvature_stop:
            if not self.evidence.curvature:
                raise ValueError("evidence.curvature_stop needs evidence.curvature above 0")
            if len(self.schedule.cycles) > 1 or self.architecture.scoring != "weights":
                raise ValueError(
                    "evidence.curvature_stop is for searches of one cycle that are judged by "
                    "weights: it goes back to earlier ones, over more epochs than cycles have"
                )
        if self.evidence.curvature and step in ("none", *SAMPLING):
            raise ValueError(
                f"evidence.curvature is of trained architecture weights, and step '{step}' trains "
                "none"
            )
        return self

    @model_validator(mode="after")
    def _channels_can_be_parted(self) -> Self:
        network, cycles = self.network, self.schedule.cycles
        problems: list[str] = []
        parted = False
        for number, cycle in enumerate(cycles):
            channels = cycle.channels or network.channels
            groups = cycle.partial_channels or network.partial_channels
            parted |= groups > 1
            if channels % groups:
                problems.append(
                    f"schedule.cycles[{number}]: {channels} channels cannot be parted into "
                    f"{groups}: channels must be a multiple of partial_channels"
                )
        if parted and self.architecture.auxiliary_skip is not None:
            problems.append(
                "network.partial_channels goes without architecture.auxiliary_skip: the channels "
                "that go past the candidates are a skip of every edge already"
            )
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @model_validator(mode="after")
    def _searcher_fits(self) -> Self:
        if problems := list(self._searcher_problems()):
            raise ValueError("; ".join(problems))
        return self

    def _searcher_problems(self) -> Iterator[str]:
        searcher, network = self.searcher, self.network
        budget = searcher.budget
        if self.architecture.step == "enas" and not (
            searcher.method == "controller" and searcher.by_supernet
        ):
            yield (
                "architecture.step: 'enas' trains what a controller writes: set searcher.method to "
                "controller and searcher.scorer to supernet"
            )
        if searcher.method == "none":
            return
        if budget.evaluations is budget.images is budget.steps is budget.seconds is None:
            yield (
                "searcher.budget: set evaluations, images, steps or seconds: without any it never "
                "ends"
            )
        if searcher.method == "halving" and searcher.scorer != "training":
            yield (
                "searcher.method: 'halving' gives cells a share of a training: set searcher.scorer "
                "to training"
            )
        if searcher.scorer in ("table", "proxy") and self.compute.devices > 1:
            yield (
                f"compute.devices: searcher.scorer '{searcher.scorer}' takes one cell after the "
                "other, in one process: set it to 1"
            )
        if searcher.repeats and not searcher.by_training:
            yield (
                "searcher.repeats: only scores of searcher.scorer 'training' differ when they are "
                "repeated: set it to 0"
            )
        if searcher.by_table and searcher.proxy.record:
            yield "searcher.proxy.record: proxies need images, and scorer 'table' reads none"
        if searcher.by_training:
            yield from searcher.training.problems()
        built = {"training": searcher.training.network.cells} if searcher.by_training else {}
        if searcher.scorer == "proxy" or searcher.proxy.record:
            built["proxy"] = searcher.proxy.cells
        widest = width(network.output, network.nodes)
        for name, cells in built.items():
            problems = check_network(network.shape, cells, widest)
            yield from (f"searcher.{name}: {problem}" for problem in problems)
        if self.final.limits:
            yield "searcher.method: searchers know no limits on the final network; leave them out"
        if searcher.by_supernet and searcher.evolution.mutation == "morphisms":
            yield (
                "searcher.evolution.mutation: morphisms make operations that the supernet does not "
                "hold; set it to edits"
            )
        fits = (network.shape, network.nodes, network.output) == (
            NASBENCH201,
            *USUAL["nasbench201"],
        )
        if searcher.by_table and not (fits and set(self.space.initial_pool) <= set(OPERATIONS201)):
            labels = ", ".join(op.label for op in OPERATIONS201)
            yield (
                "searcher.scorer: the table has only cells of NAS-Bench-201: set network.shape to "
                f"nasbench201, and space to nasbench201 or a pool of {labels}"
            )

    @property
    def cell_space(self) -> CellSpace:
        """All cells that can be made of the first pools."""
        network, space = self.network, self.space
        return CellSpace.uniform(
            space.initial_pool, network.nodes, network.shape, network.output, space.limits
        )

    @model_validator(mode="after")
    def _cost_can_be_counted(self) -> Self:
        cost = self.architecture.cost
        if cost is not None and (problem := cost.problem(self.final)) is not None:
            raise ValueError(problem)
        return self

    @property
    def judges_by_cells(self) -> bool:
        """Whether scoring by paths draws whole cells, whose nodes read two inputs each."""
        return self.architecture.step == "sampled-cells" and self.network.shape.reads == "two"

    @property
    def counts_costs(self) -> bool:
        """Whether the size of the final network matters to the search."""
        return bool(self.final.limits) or self.architecture.cost is not None

    def final_network(self, classes: int, images: tuple[int, int, int]) -> FinalNetwork:
        """The network that the cells are for; images are channels, height and width."""
        network = self.network
        return self.final.network(network.shape, network.nodes, network.output, classes, images)

    @classmethod
    def _write_out_names(cls, data: dict[str, Any]) -> None:
        space = data["space"]
        if isinstance(space, str) and space not in SETTINGS and exists(space):
            space = setting_to_data(read_setting(space))
        data["space"] = _data_of_name(space)
        try:
            data["searcher"] = with_recipe(data["searcher"])
        except ValueError as error:
            raise FormatError([f"searcher.{error}"]) from None
        if isinstance(data["network"], dict):
            network = cast(dict[str, Any], data["network"])
            shape = network.get("shape")
            if isinstance(shape, str) and shape in SHAPES:
                network["nodes"], network["output"] = USUAL[shape]
                network["shape"] = shape_data(shape)
