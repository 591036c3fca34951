"""Who chooses cells in a search without architecture weights, what scores them, and the budget."""

from typing import Annotated, Literal

from pydantic import Field

from prnas.config.numbers import Decay, Portion, Rate, Share, Size
from prnas.config.sections import Section
from prnas.searchers.cells import Mutation
from prnas.searchers.evolution import Death
from prnas.searchers.local_search import Move

Method = Literal["none", "random", "evolution", "local-search", "reinforce", "controller"]
Scorer = Literal["supernet", "table"]


class BudgetConfig(Section):
    """When a searcher has seen enough: whichever comes first; None: no bound."""

    evaluations: Size | None = None
    images: Annotated[int, Field(ge=1, le=10**15)] | None = None  # That evaluations take.
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


class TableConfig(Section):
    """The table of NAS-Bench-201 as a scorer: validation accuracy after 12 epochs."""

    data: Literal["cifar10", "cifar100", "imagenet16-120"] = "cifar10"


class PathsConfig(Section):
    """The trained supernet as a scorer: a cell is its path, with the statistics of the batch."""

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

    @property
    def by_table(self) -> bool:
        """Whether scores are looked up, so that nothing is trained."""
        return self.method != "none" and self.scorer == "table"

    @property
    def by_supernet(self) -> bool:
        """Whether a searcher chooses among the cells that the trained supernet holds."""
        return self.method != "none" and self.scorer == "supernet"
