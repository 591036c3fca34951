"""Scorers of cells one by one, without a supernet: a table, a short training, a proxy."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from prnas.config.retrain import RetrainConfig, RetrainDataConfig
from prnas.config.search import SearchConfig
from prnas.config.sections import BatchConfig, ComputeConfig, ValidationConfig
from prnas.data.dataset import load, normalization
from prnas.io.errors import UserError
from prnas.io.memory import free_memory
from prnas.retraining.retraining import Retraining
from prnas.runs.batch_size import probe_for
from prnas.runs.context import RunContext
from prnas.runs.preparation import digest_of, seed_for
from prnas.runs.processes import Processes
from prnas.runs.records import Score
from prnas.runs.signals import Signals
from prnas.runs.threads import default_threads
from prnas.searchers.base import Proposal
from prnas.searchers.table_scorer import TableScorer
from prnas.searching.asking import Cost
from prnas.searching.proxies import Proxies
from prnas.searching.search import split_halves

if TYPE_CHECKING:
    from prnas.searching.training_pool import MakeTrainers

TABLE_BATCH = 256  # images of a step, in the trainings that the table knows


class CellScorer(ABC):
    """Scores cells. `digest` is of the images that it needs, if it does."""

    digest: str | None = None
    measure: str | None = None  # what a score is, if it is no accuracy
    signals = Signals()  # Signals that stop a training at a step's end.

    def __init__(self, config: SearchConfig) -> None:
        self.config = config

    @abstractmethod
    def cost(self, proposal: Proposal) -> Cost:
        """The cost of an evaluation."""

    @abstractmethod
    def score(self, proposal: Proposal, number: int) -> float:
        """The score of a cell, in the evaluation of that number."""

    def open(self, folder: Path) -> None:  # noqa: B027 - most need none
        """The run's folder, before the first score."""

    def expect(self, evaluations: Sequence[tuple[Proposal, int]]) -> None:  # noqa: B027
        """These will be asked for next, each by its number: they may be begun."""

    @property
    def num_at_once(self) -> int:
        """The number of evaluations that can be under way at the same time."""
        return 1

    def proxies(self) -> Proxies | None:
        """The calculator of cells' proxies, if there are images."""
        return None

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """It is needed no more."""


class TableCells(CellScorer):
    """Looked up in NAS-Bench-201: validation accuracy after 12 epochs."""

    def __init__(self, config: SearchConfig) -> None:
        super().__init__(config)
        self._table = TableScorer(config.searcher.table.data)

    def cost(self, proposal: Proposal) -> Cost:
        return Cost(self._table.images, -(-self._table.images // TABLE_BATCH))

    def score(self, proposal: Proposal, number: int) -> float:
        return self._table.score(proposal.genotype)


class ImageScorer(CellScorer):
    """A scorer that needs images: those of the search, in their two halves."""

    def __init__(self, config: SearchConfig, say: Callable[[str], None]) -> None:
        super().__init__(config)
        self.processes = Processes(config.compute)
        self.processes.begin()
        limit = config.compute.memory_limit
        self.limit = None if limit is None else limit * 1e9
        device = self.processes.device
        self.data = load(config.images, device, say, free_memory(1, self.limit))
        try:
            self.indices = split_halves(config, self.data)
            used = torch.cat(list(self.indices.values())).sort().values
            self.normalization = normalization(self.data.train, used)
            self.digest = digest_of([self.data.train], self.data.class_names, self.normalization)
            self.prepare()
        except BaseException:
            self.close()
            raise

    def proxies(self) -> Proxies:
        return Proxies(self.config, self.data, self.indices["architecture"], self.normalization)

    def prepare(self) -> None:
        """Refuse what cannot work, before anything is written."""

    def close(self) -> None:
        self.data.close()
        self.processes.done(False)


class TrainingScorer(ImageScorer):
    """A real training of each cell's network, from scratch, on the half that trains weights.

    The score is the accuracy on the other half, when the last epoch is over. Each evaluation draws
    weights and batches by a seed of its own, which follows from the search's and its number; so one
    that is cut short begins anew, to the same bits.
    """

    def prepare(self) -> None:
        first = Proposal(self.config.cell_space.draw(Random(0)))
        config = self.training_config(first, 1)
        Retraining.prepare(config, self.data, 1)
        macs = config.batch.max * Retraining.image_macs(config, self.data)
        threads = self.config.compute.threads or default_threads(macs)
        torch.set_num_threads(threads)
        # Another number would round sums differently.
        compute = self.config.compute.model_copy(update={"threads": threads})
        self.config = self.config.model_copy(update={"compute": compute})

    def epochs(self, proposal: Proposal) -> int:
        """The epochs of a proposal's training, which may deserve only a share of a whole one."""
        return max(round(proposal.share * self.config.searcher.training.training.epochs), 1)

    def cost(self, proposal: Proposal) -> Cost:
        images = self.epochs(proposal) * len(self.indices["weights"])
        return Cost(images, -(-images // self.config.batch.min))

    def training_config(self, proposal: Proposal, number: int) -> RetrainConfig:
        """The training of a cell, as `prnas retrain` would have it."""
        own, settings = self.config, self.config.searcher.training
        epochs = self.epochs(proposal)
        warmup = min(settings.training.warmup_epochs, epochs - 1)
        size = own.batch.min  # the same for all, whatever memory there is
        return RetrainConfig(
            seed=seed_for(own.seed, "evaluation", number),
            genotype=proposal.genotype,
            network=settings.network.model_copy(update={"output": own.network.output}),
            data=RetrainDataConfig(**_without(own.data, "architecture_share")),
            training=settings.training.model_copy(
                update={"epochs": epochs, "warmup_epochs": warmup}
            ),
            batch=BatchConfig(min=size, multiple=own.batch.multiple, max=size),
            testing=ValidationConfig(batch=own.validation.batch),
            compute=ComputeConfig(**_without(own.compute, "supernet", "recompute")),
        )

    def score(self, proposal: Proposal, number: int) -> float:
        config = self.training_config(proposal, number)
        probe = probe_for(self.processes.device, self.limit, 1)
        indices = {"training": self.indices["weights"]}
        context = RunContext(
            config, self.data, indices, self.processes, probe, None, (), self.signals
        )
        training = ShortTraining(context, held_out=self.indices["architecture"])
        training.go()
        return training.accuracy


def _without(section: Any, *names: str) -> dict[str, Any]:
    return section.model_dump(exclude=set(names))


class ShortTraining(Retraining):
    """A training that is scored on held-out images of the training part, and never tested."""

    uses_test_images = False

    def __init__(self, context: RunContext[RetrainConfig], held_out: Tensor) -> None:
        super().__init__(context)
        self._held_out, self.accuracy = held_out, 0.0

    def validate(self) -> dict[str, Score]:
        return {}

    def finish(self) -> None:
        while self.state.position.epoch < self.config.training.epochs:
            self.train_epoch()
            self.end_epoch()
        tally, _ = self.evaluated(self.data.train, self._held_out)
        self.accuracy = tally.score.accuracy


class ProxyScorer(ImageScorer):
    """A zero-cost proxy as the score: nothing is trained."""

    def prepare(self) -> None:
        self.measure = self.config.searcher.proxy.of
        self._proxies = self.proxies()

    def cost(self, proposal: Proposal) -> Cost:
        return Cost(self._proxies.num_images, 1)

    def score(self, proposal: Proposal, number: int) -> float:
        return self._proxies.value(proposal.genotype, self.config.searcher.proxy.of)


def make_scorer(
    config: SearchConfig,
    say: Callable[[str], None],
    make_trainers: "MakeTrainers | None" = None,
) -> CellScorer:
    """The scorer that a config names, for a search without a supernet.

    `make_trainers`: who makes its short trainings, instead of processes of its own.
    """
    if make_trainers is not None and not config.searcher.by_training:
        raise UserError(
            "an engine makes the short trainings of a search (searcher.scorer=training), and this "
            "one has none; searches themselves are run by the engine of `prnas study`"
        )
    match config.searcher.scorer:
        case "table":
            return TableCells(config)
        case "training":
            if config.compute.devices == 1 and make_trainers is None:
                return TrainingScorer(config, say)
            from prnas.searching.training_pool import TrainingPool  # It imports this file.

            return TrainingPool(config, say, make_trainers)
        case "proxy":
            return ProxyScorer(config, say)
        case "supernet":
            raise ValueError("the supernet scores cells within its own search")
