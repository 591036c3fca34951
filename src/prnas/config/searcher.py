"""Searchers in a config: the method that chooses cells, the scorer of the cells, and the budget."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, cast

from pydantic import Field, model_validator

from prnas.config.numbers import Decay, Portion, Rate, Share, Size
from prnas.config.retrain import FinalNetworkConfig, TrainingConfig
from prnas.config.sections import Section
from prnas.io.errors import suggestion
from prnas.searchers.cells import Mutation
from prnas.searchers.evolution import Death
from prnas.searchers.local_search import Move
from prnas.space.schedule import MIN_CELLS, MOST_CELLS, MOST_CHANNELS

Method = Literal[
    "none", "random", "evolution", "local-search", "reinforce", "controller", "halving"
]
Scorer = Literal["supernet", "table", "training", "proxy"]
Proxy = Literal["nwot", "synflow", "params", "macs"]


class BudgetConfig(Section):
    """The budget of a searcher: it ends with whichever comes first.

    Images, steps and seconds are those of the whole search, with the training of a supernet.
    """

    #: Number of evaluations; null: no bound.
    evaluations: Size | None = None
    #: Images that training and evaluations take; null: no bound.
    images: Annotated[int, Field(ge=1, le=10**15)] | None = None
    #: Batches of images that training and evaluations take; null: no bound.
    steps: Annotated[int, Field(ge=1, le=10**15)] | None = None
    #: Seconds by the clock, so the search cannot be repeated exactly; null: no bound.
    seconds: Annotated[float, Field(gt=0, le=1e9)] | None = None
    #: Of images, steps and seconds, the most that a supernet's training takes; then it is cut.
    training_share: Share = 0.9

    def evaluations_for(self, images: int) -> int | None:
        """The number of evaluations, at so many images each; None: the clock decides.

        One that would exceed the images is not begun, but the first.
        """
        bounds = [] if self.evaluations is None else [self.evaluations]
        if self.images is not None:
            bounds.append(max(self.images // max(images, 1), 1))
        return min(bounds, default=None)


class EvolutionConfig(Section):
    """Ageing evolution."""

    #: Number of cells in the population.
    population: Annotated[int, Field(ge=1, le=100_000)] = 10
    #: Cells drawn with replacement for each child, whose parent is the best of them.
    sample: Annotated[int, Field(ge=1, le=100_000)] = 3
    #: How a child differs from its parent: by a single edit, or also by morphisms of the space.
    mutation: Mutation = "edits"
    #: Who leaves when a child comes in.
    death: Death = "oldest"


class LocalSearchConfig(Section):
    """Local search."""

    #: Whether it moves to the best neighbour, or to the first that is better.
    move: Move = "best"


class ReinforceConfig(Section):
    """A softmax for every choice, trained by REINFORCE with Adam."""

    #: Learning rate of Adam.
    lr: Rate = 0.01
    #: Decay of the moving average of scores.
    baseline: Portion = 0.9


class ControllerConfig(Section):
    """ENAS's LSTM, which writes cells; its defaults, but for `update` by PPO, are ENAS's."""

    #: Number of updates after every epoch of step enas.
    updates: Size = 30
    #: How the controller learns.
    update: Literal["reinforce", "ppo"] = "reinforce"
    #: Size of the LSTM's state.
    hidden: Annotated[int, Field(ge=1, le=1024)] = 64
    #: Learning rate of Adam.
    lr: Rate = 0.0035
    #: Scores for an update.
    batch: Size = 10
    #: What an entropy of 1 adds to the reward.
    entropy: Decay = 1e-4
    #: Decay of the moving average of rewards.
    baseline: Portion = 0.99
    #: Of PPO: how far from 1 the ratio of probabilities counts.
    clip: Share = 0.2
    #: Of PPO: updates by the same scores.
    passes: Annotated[int, Field(ge=1, le=1000)] = 4


class HalvingConfig(Section):
    """Successive halving: of the cells on a rung, one of `factor` rises to the next."""

    #: Of so many cells one rises, and is trained so many times as long.
    factor: Annotated[int, Field(ge=2, le=100)] = 3
    #: Number of rungs.
    rungs: Annotated[int, Field(ge=1, le=10)] = 3


class ShortTrainingConfig(Section):
    """A real training of each cell's network as a scorer; or the name of a recipe for one.

    Images, batch and the network's output are those of the search.
    """

    network: FinalNetworkConfig = FinalNetworkConfig(
        cells=5, channels=8, auxiliary_weight=0.0, drop_path=0.0
    )
    training: TrainingConfig = TrainingConfig(epochs=9)

    def problems(self) -> Iterator[str]:
        """Messages about settings of a training that do not go with the scoring of cells."""
        if self.network.kind != "cells":
            yield f"searcher.training.network.kind: it must be cells, got '{self.network.kind}'"
        if self.network.start_from is not None:
            yield "searcher.training.network.start_from: each cell begins with weights of its own"
        if self.training.keep != "last":
            yield "searcher.training.training.keep: the score is that of the last epoch"


class ProxyConfig(Section):
    """A zero-cost proxy as a scorer: of the cell's network at its first weights."""

    #: Which proxy is the score.
    of: Proxy = "nwot"
    #: Number of images that nwot looks at.
    images: Annotated[int, Field(ge=2, le=4096)] = 64
    #: Cells of the network that is looked at.
    cells: Annotated[int, Field(ge=MIN_CELLS, le=MOST_CELLS)] = 5
    #: Channels of its first cells.
    channels: Annotated[int, Field(ge=1, le=MOST_CHANNELS)] = 16
    #: Whether all proxies of every scored cell are recorded, with any scorer but the table.
    record: bool = False


class TableConfig(Section):
    """The table of NAS-Bench-201 as a scorer: validation accuracy after 12 epochs."""

    #: The data set of the accuracies.
    data: Literal["cifar10", "cifar100", "imagenet16-120"] = "cifar10"


class PathsConfig(Section):
    """The trained supernet as a scorer: a cell is its path."""

    #: What a cell is normalised by: the batch it is scored on, or anew, some of the weights' half.
    statistics: Literal["batch", "recalibrated"] = "batch"
    #: Batches of the weights' half that recalibrated statistics are of.
    calibration: Size = 8
    #: Batches of the architecture half that each cell is scored on.
    batches: Size = 10
    #: How many of the best are scored again, on the whole half.
    finalists: Size = 10


class SearcherConfig(Section):
    """A searcher, which asks for the scores of whole cells; `none`: the pools decide."""

    #: Who asks for cells.
    method: Method = "none"
    #: What scores them: a trained supernet, the table of NAS-Bench-201, trainings, or a proxy.
    scorer: Scorer = "supernet"
    budget: BudgetConfig = BudgetConfig(evaluations=100)
    #: How often the best cell is trained again at the end, to tell how much scores vary.
    repeats: Annotated[int, Field(ge=0, le=1000)] = 0
    evolution: EvolutionConfig = EvolutionConfig()
    local_search: LocalSearchConfig = LocalSearchConfig()
    reinforce: ReinforceConfig = ReinforceConfig()
    controller: ControllerConfig = ControllerConfig()
    table: TableConfig = TableConfig()
    supernet: PathsConfig = PathsConfig()
    halving: HalvingConfig = HalvingConfig()
    training: ShortTrainingConfig = ShortTrainingConfig()
    proxy: ProxyConfig = ProxyConfig()

    @model_validator(mode="before")
    @classmethod
    def _recipe(cls, data: Any) -> Any:
        return with_recipe(data)

    @property
    def by_table(self) -> bool:
        """Whether scores are looked up, so that nothing is trained."""
        return self.method != "none" and self.scorer == "table"

    @property
    def by_training(self) -> bool:
        """Whether the network of each cell is trained from scratch."""
        return self.method != "none" and self.scorer == "training"

    @property
    def without_supernet(self) -> bool:
        """Whether cells are scored one by one, and no supernet is trained."""
        return self.method != "none" and self.scorer != "supernet"

    @property
    def by_supernet(self) -> bool:
        """Whether a searcher chooses among the cells that the trained supernet holds."""
        return self.method != "none" and self.scorer == "supernet"


def with_recipe(searcher: Any) -> Any:
    """A training that is given by a recipe's name is what that recipe says of it."""
    if not isinstance(searcher, dict):
        return searcher
    fields = cast(dict[str, Any], searcher)
    name = fields.get("training")
    if not isinstance(name, str):
        return fields
    from prnas.config import recipes  # Imported here because it imports this module.
    from prnas.config.retrain import RetrainConfig

    names = recipes.names("retrain")
    config = recipes.any_draft(name).config if name in names else None
    if not isinstance(config, RetrainConfig):
        raise ValueError(
            f"training: no recipe for a training is called '{name:.60}'.{suggestion(name, names)}"
        )
    data = config.to_data()
    return {**fields, "training": {key: data[key] for key in ("network", "training")}}
