"""The training of a final network: epochs, tests, and the model at the end."""

from collections.abc import Iterator
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn

from prnas.config.retrain import RetrainConfig
from prnas.config.sections import LAST_EPOCHS
from prnas.data.augment_mixup import Mixed, mixup
from prnas.data.dataset import DataSet, Images, validation_split
from prnas.io.errors import UserError
from prnas.models.card import MOST_VALUES, ModelCard, values_inside
from prnas.models.model import FOLDER, Model, is_saved, network_of, save_model
from prnas.nets.network import Network
from prnas.retraining.best_network import mean_of_classes
from prnas.retraining.loss import Loss, balanced_weights
from prnas.retraining.start import read_start
from prnas.retraining.state import RetrainState
from prnas.runs.attempt import Outcome, attempt
from prnas.runs.checkpoint import Checkpoint
from prnas.runs.context import RunContext
from prnas.runs.evaluation import evaluate
from prnas.runs.events import RetrainResult
from prnas.runs.preparation import check_sizes, cosine, draw_indices, torch_generator
from prnas.runs.records import EpochRecord, Score, TrainedRecord
from prnas.runs.run import Run
from prnas.runs.state import SavedState, Tally
from prnas.space.network_size import NetworkSize, network_size
from prnas.space.resnet import resnet_size


def learning_rate(config: RetrainConfig, epoch: int, progress: float) -> float:
    """The rate of a step in `epoch`, which ends after `progress` epochs: warm-up, then cosine."""
    training = config.training
    warmup = training.warmup_epochs
    if epoch < warmup:
        return training.lr * min(progress / warmup, 1.0)
    return cosine(training.lr, training.lr_min, epoch - warmup, training.epochs - warmup)


class Retraining(Run[RetrainConfig, RetrainState, RetrainResult]):
    """A training under way."""

    config_type = RetrainConfig
    weights_part = "training"
    epoch_type = "training"
    uses_test_images = True
    memory_advice = "in a new run, set batch.min, channels or cells lower."
    not_finite_advice = (
        "In a new run, try a smaller training.lr or gradient_norm; and look at the data."
    )

    def __init__(
        self, context: RunContext[RetrainConfig], checkpoint: Checkpoint | None = None
    ) -> None:
        _, self.validation_indices = split_images(context.config, context.data)
        super().__init__(context, checkpoint)
        self.validation_batch = self.config.testing.batch
        self._tested: tuple[Tally, Tensor] | None = None  # after the latest step
        self.loss = Loss(self.config.training.label_smoothing, self._class_weights())
        if self.config.compute.compile:
            network = self.state.network
            blocks = network.cells if isinstance(network, Network) else network.blocks
            for cell in blocks:  # the whole network takes minutes to compile
                cell.compile(dynamic=True)

    @classmethod
    def prepare(cls, config: RetrainConfig, data: DataSet, num_processes: int) -> dict[str, Tensor]:
        network, shape = config.network, data.shape
        indices, _ = split_images(config, data)
        if values_inside(shape, network.channels, network.stem) > MOST_VALUES:
            raise UserError(
                f"images of {shape[1]} x {shape[2]} pixels are too large for {network.channels} "
                "channels: set data.image_size or network.channels lower"
            )
        halvings = 2 if network.stem == "cifar" else 5
        auxiliary = network.auxiliary_weight > 0
        check_sizes(config, data, len(indices), num_processes, halvings, auxiliary)
        return {"training": indices}

    @classmethod
    def check_start(cls, config: RetrainConfig, data: DataSet) -> None:
        read_start(config, data)

    @classmethod
    def image_macs(cls, config: RetrainConfig, data: DataSet) -> float:
        return final_size(config, data).macs

    def make_state(self, saved: SavedState | None) -> RetrainState:
        return RetrainState(self.config, self.data, self.processes, saved)

    def finish(self) -> None:
        position = self.state.position
        while position.epoch < self.config.training.epochs:
            self.train_epoch()
            self.end_epoch()
        if not position.done:
            self._end()
        if self.folder is not None:  # again for a finished run: resuming it repairs its result
            path, network = self.folder.path / FOLDER, self.state.final_network
            if is_saved(path, network, card := self._card()):
                return
            with self.folder.writing(f"write {path}"):
                save_model(path, network, card)

    @property
    def lr(self) -> float:
        return self.state.epoch.lr

    @property
    def drop_path(self) -> float:
        epoch, epochs = self.state.position.epoch, self.config.training.epochs
        return self.config.network.drop_path * epoch / epochs

    def take_step(self) -> None:
        state, position = self.state, self.state.position
        batch = self.batch.batch * self.processes.size
        progress = (position.images + batch) / self.epoch_images
        state.epoch.lr = learning_rate(self.config, position.epoch, progress)
        for group in state.optimizer.param_groups:
            group["lr"] = state.epoch.lr
        self._tested = None
        outcome = attempt(self, ["training"], self._gradients)
        with state.timed("training"):
            norm = self.config.training.gradient_norm
            self.optimize("training", state.parameters, state.optimizer, norm, outcome)
            if state.averaged is not None:
                state.averaged.update_parameters(state.network)

    def _gradients(self) -> Outcome:
        """The outcome is the main classifier's; the auxiliary head only adds to the gradients."""
        state, config = self.state, self.config
        images, labels = self.next_images("training")
        mixed = self._mixed(images)
        images = images if mixed is None else mixed.images
        with state.timed("training"):
            with self.processes.autocast():
                logits, auxiliary = state.forward(images, self.drop_path)
                loss = self.loss(logits, labels, mixed)
                total = loss
                if auxiliary is not None:
                    second = self.loss(auxiliary, labels, mixed)
                    total = loss + config.network.auxiliary_weight * second
            self.processes.scaled(total).backward()
            return Outcome.of(loss, logits, labels)

    def _mixed(self, images: Tensor) -> Mixed | None:
        if not (alpha := self.config.training.mixup):
            return None
        number, processes = len(images), self.processes
        generator = self.state.generators["augment training"]
        with self.state.timed("data"):
            return mixup(images, alpha, generator, number * processes.size, number * processes.rank)

    def _class_weights(self) -> Tensor | None:
        """The weight of each class in the loss, if they have any; on the CPU."""
        if self.config.training.class_weights == "none":
            return None
        labels = self.data.train.labels[self.indices["training"]]
        return balanced_weights(labels, self.data.num_classes)

    def _test(self) -> tuple[Tally, Tensor]:
        if self._tested is None:
            images = self.data.test
            self._tested = self.evaluated(images, torch.arange(len(images)))
        return self._tested

    def _validate(self, network: nn.Module) -> tuple[Tally, Tensor]:
        with self.state.timed("testing"):
            return evaluate(self, network, self.data.train, self.validation_indices)

    def evaluated(self, images: Images, indices: Tensor) -> tuple[Tally, Tensor]:
        """The final network's score on some images, and its confusions."""
        with self.state.timed("testing"):
            return evaluate(self, self.state.final_network, images, indices)

    def validate(self) -> dict[str, Score]:
        """Measure the scores on the validation part, if there is one, and on the test part.

        Nothing is chosen by the test part. Where an epoch is to be chosen, it is tested only then.
        """
        state, epoch, scores = self.state, self.state.position.epoch, dict[str, Score]()
        if not self.config.testing.includes(epoch, self.config.training.epochs):
            return scores
        if len(self.validation_indices):
            tally, confusion = self._validate(state.current_network)
            scores["validation"] = tally.score
            if state.best is not None:
                balanced = self.config.training.class_weights == "balanced"
                accuracy = mean_of_classes(confusion) if balanced else tally.score.accuracy
                state.best.offer(state.current_network, epoch + 1, accuracy, tally.score)
                return scores
            state.validation = tally.score
        tally, _ = self._test()
        state.errors = [*state.errors, 1 - tally.score.accuracy][-LAST_EPOCHS:]
        return {**scores, "test": tally.score}

    def epoch_work(self) -> list[float]:
        return [1.0] * self.config.training.epochs

    def _end(self) -> None:
        state, size = self.state, final_size(self.config, self.data)
        weights = self._class_weights()
        self.processes.check_equal(state.parameters, "weights")
        test, confusion = self._test()
        best = state.best
        # Chosen weights have one test error; there are no last epochs of the same to average.
        errors = state.errors if best is None else [1 - test.score.accuracy]
        state.trained = TrainedRecord(
            test_error=fmean(errors),
            averaged_epochs=len(errors),
            test=test.score,
            parameters=size.parameters,
            macs=size.macs,
            class_names=list(self.data.class_names),
            confusion=confusion.tolist(),
            seconds=state.elapsed,
            started_from=state.started_from,
            class_weights=None if weights is None else weights.tolist(),
            validation=state.validation if best is None else best.score,
            kept_epoch=None if best is None else best.epoch,
        )
        self.record(state.trained)
        state.position.done = True
        self.save()

    def _card(self) -> ModelCard:
        network, config = self.config.network, self.config.to_data()
        del config["genotype"]  # the card has it already
        return ModelCard(
            kind=network.kind,
            genotype=self.config.genotype,
            channels=network.channels,
            cells=network.cells,
            stem=network.stem,
            output=network.output,
            input_shape=self.data.shape,
            class_names=self.data.class_names,
            mean=self.normalization.mean,
            std=self.normalization.std,
            config=config,
            results=self._results(),
        )

    def _results(self) -> dict[str, Any]:
        """What a card has of the training's results; of one that has not ended, there are few."""
        trained, started, best = self.state.trained, self.state.started_from, self.state.best
        kept = None if best is None else best.epoch
        ended: dict[str, Any] = {}
        if trained is not None:
            kept, started = trained.kept_epoch, trained.started_from
            ended = {
                "test_error": trained.test_error,
                "averaged_epochs": trained.averaged_epochs,
                "last_test_accuracy": trained.test.accuracy,
                "parameters": trained.parameters,
                "macs": trained.macs,
            }
        return {
            **ended,
            **({"started_from": started.model_dump()} if started else {}),
            **({"kept_epoch": kept} if kept else {}),
        }

    def so_far(self) -> tuple[Model, Score] | None:
        """The model of the best epoch so far, if one is chosen, and its validation."""
        best = self.state.best
        return None if best is None or best.score is None else (self.model(), best.score)

    def model(self) -> Model:
        """The trained model, on the CPU, for use."""
        card, weights = self._card(), self.state.final_network.state_dict()
        network = network_of(card)
        own = {name: weights[name] for name in weights if not name.startswith("auxiliary.")}
        network.load_state_dict(own)
        return Model(network, card).eval()

    def start_facts(self) -> dict[str, Any]:
        size = final_size(self.config, self.data)
        return {
            "config": self.config,
            "num_parameters": size.parameters,
            "macs": size.macs,
            "test_images": len(self.data.test),
            "validation_images": len(self.validation_indices),
            "notes": tuple(self._notes()),
        }

    def _notes(self) -> Iterator[str]:
        if (start := self.state.started_from) is not None:
            new = f"; new: {' and '.join(start.new)}" if start.new else ""
            yield f"starts with the weights of {start.model}{new}"
        if (weights := self._class_weights()) is not None:
            words = _weights_in_words(self.data, weights)
            yield f"classes are weighed by how few images they have: {words}"

    def result(self) -> RetrainResult:
        trained = self.state.trained
        assert trained is not None
        return RetrainResult(
            model=self.model(),
            folder=self.folder.path if self.folder else None,
            seed=self.config.seed,
            test_error=trained.test_error,
            averaged_epochs=trained.averaged_epochs,
            epochs=self.records_of(EpochRecord),
            parameters=trained.parameters,
            macs=trained.macs,
            seconds=self.state.elapsed,
            validation=trained.validation,
            kept_epoch=trained.kept_epoch,
            config=self.config,
        )


def split_images(config: RetrainConfig, data: DataSet) -> tuple[Tensor, Tensor]:
    """Indices of the training images that train, and of those that validate: none by default."""
    indices = draw_indices(config.data, data, torch_generator(config.seed, "images"))
    if not config.data.validation:
        return indices, indices[:0]
    generator = torch_generator(config.seed, "validation")
    return validation_split(data.train.labels, indices, config.data.validation, generator)


def _weights_in_words(data: DataSet, weights: Tensor) -> str:
    """The lightest and the heaviest class."""
    numbers, names = weights.tolist(), data.class_names
    light, heavy = numbers.index(min(numbers)), numbers.index(max(numbers))
    if numbers[light] == numbers[heavy]:
        return "all are equal"
    ends = [f"{numbers[index]:.3g} for '{names[index]:.40}'" for index in (light, heavy)]
    return " to ".join(ends)


def final_size(config: RetrainConfig, data: DataSet) -> NetworkSize:
    """The size of the network that is trained, without its auxiliary head."""
    network, (channels, height, width) = config.network, data.shape
    sizes = (network.channels, network.cells, data.num_classes)
    if config.genotype is None:
        return resnet_size(*sizes, input_channels=channels, image_size=(height, width))
    return network_size(
        config.genotype,
        *sizes,
        stem=network.stem,
        output=network.output,
        input_channels=channels,
        image_size=(height, width),
    )
