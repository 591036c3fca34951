"""Who chooses cells in a search without architecture weights, what scores them, and the budget."""

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
    """When a searcher has seen enough: whichever comes first; None: no bound."""

    evaluations: Size | None = None
    images: Annotated[int, Field(ge=1, le=10**15)] | None = None  # That evaluations take.
    steps: Annotated[int, Field(ge=1, le=10**15)] | None = None  # Batches of images, likewise.
    seconds: Annotated[float, Field(gt=0, le=1e9)] | None = None  # By the clock: not repeatable.

    def evaluations_for(self, images: int) -> int | None:
        """How many evaluations there will be, at so many images each; None: the clock decides.

        One that would exceed the images is not begun, but the first.
        """
        bounds = [] if self.evaluations is None else [self.evaluations]
        if self.images is not None:
            bounds.append(max(self.images // max(images, 1), 1))
        return min(bounds, default=None)


class EvolutionConfig(Section):
    """Ageing evolution."""

    population: Annotated[int, Field(ge=1, le=100_000)] = 10
    sample: Annotated[int, Field(ge=1, le=100_000)] = 3  # Drawn with replacement for each child.
    mutation: Mutation = "edits"
    death: Death = "oldest"


class LocalSearchConfig(Section):
    """Local search."""

    move: Move = "best"  # To the best neighbour, or to the first that is better.


class ReinforceConfig(Section):
    """A softmax for every choice, trained by REINFORCE with Adam."""

    lr: Rate = 0.01
    baseline: Portion = 0.9  # Decay of the moving average of scores.


class ControllerConfig(Section):
    """ENAS's LSTM, which writes cells; its defaults, but for `update` by PPO, are ENAS's."""

    updates: Size = 30  # After every epoch of step enas.
    update: Literal["reinforce", "ppo"] = "reinforce"
    hidden: Annotated[int, Field(ge=1, le=1024)] = 64
    lr: Rate = 0.0035
    batch: Size = 10  # Scores for an update.
    entropy: Decay = 1e-4  # What an entropy of 1 adds to the reward.
    baseline: Portion = 0.99  # Decay of the moving average of rewards.
    clip: Share = 0.2  # Of PPO: how far from 1 the ratio of probabilities counts.
    passes: Annotated[int, Field(ge=1, le=1000)] = 4  # Of PPO: updates by the same scores.


class HalvingConfig(Section):
    """Successive halving: of the cells on a rung, one of `factor` rises to the next."""

    factor: Annotated[int, Field(ge=2, le=100)] = 3
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
        """What a training has that the score of a cell cannot."""
        if self.network.kind != "cells":
            yield f"searcher.training.network.kind: it must be cells, got '{self.network.kind}'"
        if self.network.start_from is not None:
            yield "searcher.training.network.start_from: each cell begins with weights of its own"
        if self.training.keep != "last":
            yield "searcher.training.training.keep: the score is that of the last epoch"


class ProxyConfig(Section):
    """A zero-cost proxy as a scorer: of the cell's network at its first weights."""

    of: Proxy = "nwot"
    images: Annotated[int, Field(ge=2, le=4096)] = 64  # That nwot looks at.
    cells: Annotated[int, Field(ge=MIN_CELLS, le=MOST_CELLS)] = 5
    channels: Annotated[int, Field(ge=1, le=MOST_CHANNELS)] = 16
    record: bool = False  # Whether all proxies of every scored cell are recorded.


class TableConfig(Section):
    """The table of NAS-Bench-201 as a scorer: validation accuracy after 12 epochs."""

    data: Literal["cifar10", "cifar100", "imagenet16-120"] = "cifar10"


class PathsConfig(Section):
    """The trained supernet as a scorer: a cell is its path."""

    # By what a cell is normalised: the batch it is scored on, or anew, some of the weights' half.
    statistics: Literal["batch", "recalibrated"] = "batch"
    calibration: Size = 8  # Batches for the latter.
    batches: Size = 10  # Of the architecture half, for each cell.
    finalists: Size = 10  # The best, of which each is scored on the whole half.


class SearcherConfig(Section):
    """A searcher, which asks for the scores of whole cells; `none`: the pools decide."""

    method: Method = "none"
    scorer: Scorer = "supernet"
    budget: BudgetConfig = BudgetConfig(evaluations=100)
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
    from prnas.config import recipes  # which knows this section
    from prnas.config.retrain import RetrainConfig

    names = recipes.names("retrain")
    config = recipes.any_draft(name).config if name in names else None
    if not isinstance(config, RetrainConfig):
        raise ValueError(
            f"training: no recipe for a training is called '{name:.60}'.{suggestion(name, names)}"
        )
    data = config.to_data()
    return {**fields, "training": {key: data[key] for key in ("network", "training")}}
