"""The training of a final network: epochs, tests, and the model at the end."""

from collections.abc import Mapping
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from prnas.config.retrain import RetrainConfig
from prnas.config.sections import LAST_EPOCHS
from prnas.models.card import ModelCard
from prnas.models.model import FOLDER, Model, network_of, save_model
from prnas.retraining.state import RetrainState
from prnas.retraining.step import RetrainSteps
from prnas.runs.callbacks import TrainingStep
from prnas.runs.checked_state import whole
from prnas.runs.generators import torch_generator
from prnas.runs.loop import Loop, Setup, score
from prnas.runs.preparation import cosine, some_places
from prnas.runs.records import TrainedRecord, TrainingParts, TrainingRecord
from prnas.runs.state import Sums
from prnas.searching.time_left import seconds_left
from prnas.space.network_size import NetworkSize, network_size


def learning_rate(config: RetrainConfig, epoch: int, progress: float) -> float:
    """Of a step in `epoch`, after which `progress` epochs are done: warm-up, then cosine."""
    training = config.training
    warmup = training.warmup_epochs
    if epoch < warmup:
        return training.lr * min(progress / warmup, 1.0)
    return cosine(training.lr, training.lr_min, epoch - warmup, training.epochs - warmup)


class Retraining(Loop[RetrainConfig, RetrainState, RetrainSteps]):
    """A training under way."""

    def __init__(self, setup: Setup[RetrainConfig]) -> None:
        config, data, processes = setup.config, setup.data, setup.processes
        places = some_places(config.data, data, torch_generator(config.seed, "images"))
        super().__init__(setup, {"training": places}, [data.train, data.test])
        self.state = RetrainState(
            config, data.num_classes, data.shape[0], processes.device, processes.dtype
        )
        self.steps = RetrainSteps(self)
        self.validation_batch = config.testing.batch
        self.trained: TrainedRecord | None = None
        self._tested: tuple[Sums, Tensor] | None = None  # after the latest step

    def go_on(self) -> None:
        position = self.state.position
        while position.epoch < self.config.training.epochs:
            self.train_epoch()
            self._end_epoch()
        if not position.done:
            self._end()
        if self.folder is not None:  # a finished run that is resumed mends its result
            self.folder.writing(FOLDER, self._save_model)

    def own_state(self) -> dict[str, Any]:
        return {"trained": self.trained.model_dump() if self.trained else None}

    def load_own_state(self, state: Mapping[str, Any]) -> None:
        position, epochs = self.state.position, self.config.training.epochs
        whole("epoch", position.epoch, most=epochs)
        if state["trained"] is not None:
            self.trained = TrainedRecord(**state["trained"])
        elif position.done or (position.epoch == epochs and not self.state.errors):
            raise ValueError("it is said to be done, but has no results")

    @property
    def drop_path(self) -> float:
        epoch, epochs = self.state.position.epoch, self.config.training.epochs
        return self.config.network.drop_path * epoch / epochs

    @property
    def size(self) -> NetworkSize:
        network, (channels, height, width) = self.config.network, self.data.shape
        return network_size(
            self.config.genotype,
            network.channels,
            network.cells,
            self.data.num_classes,
            stem=network.stem,
            output=network.output,
            input_channels=channels,
            image_size=(height, width),
        )

    # ---------------------------------------------------------------- an epoch

    def take_step(self) -> None:
        state, position = self.state, self.state.position
        batch = self.batch.batch * self.processes.size
        progress = (position.images + batch) / self.epoch_images
        state.so_far.lr = learning_rate(self.config, position.epoch, progress)
        for group in state.optimizer.param_groups:
            group["lr"] = state.so_far.lr
        state.network.drop_path_probability = self.drop_path
        self._tested = None
        self.save_soon |= self.steps.do("training")
        if state.averaged is not None:
            with state.timed("training"):
                state.averaged.update_parameters(state.network)

    def _test(self) -> tuple[Sums, Tensor]:
        if self._tested is None:
            places = torch.arange(len(self.data.test))
            with self.state.timed("testing"):
                self._tested = self.evaluate(
                    self.state.handed_over, self.data.test, places, "training"
                )
            self.probe.reset()  # the next batch size follows from training, not from this
        return self._tested

    def _end_epoch(self) -> None:
        state, position, so_far = self.state, self.state.position, self.state.so_far
        test: Sums | None = None
        if self.is_validated(
            self.config.testing.epochs, self.config.training.epochs - position.epoch
        ):
            test, _ = self._test()
            state.errors = [*state.errors, 1 - test.accuracy][-LAST_EPOCHS:]
        training = so_far.sums["training"]
        record = TrainingRecord(
            epoch=position.epoch,
            steps=position.step,
            lr=so_far.lr,
            drop_path=self.drop_path,
            batch=self.batch.batch * self.processes.size,
            training=score(training),
            test=score(test) if test else None,
            seconds=so_far.total,
            images_per_second=training.images / max(so_far.total, 1e-9),
            memory=so_far.memory,
            parts=TrainingParts(**so_far.seconds),
        )
        state.elapsed += record.seconds
        state.work_done.append((1.0, record.seconds))
        self.record(record)
        state.next_epoch()
        with state.timed("other"):  # counts for the next epoch, as does the saving
            self.tell("on_epoch", record)
        self.save()

    # ---------------------------------------------------------------- the end

    def _end(self) -> None:
        self.processes.check_equal(self.state.parameters, "weights")
        test, confusion = self._test()
        self.trained = TrainedRecord(
            test_error=fmean(self.state.errors),
            averaged_epochs=len(self.state.errors),
            test=score(test),
            parameters=self.size.parameters,
            macs=self.size.macs,
            class_names=list(self.data.class_names),
            confusion=confusion.tolist(),
            seconds=self.state.elapsed,
        )
        self.record(self.trained)
        self.state.position.done = True
        self.save()

    def _save_model(self) -> None:
        assert self.folder is not None
        save_model(self.folder.path / FOLDER, self.state.handed_over, self._card())

    def _card(self) -> ModelCard:
        assert self.trained is not None
        network = self.config.network
        config = self.config.to_data()
        del config["genotype"]  # the card has it already
        return ModelCard(
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
            results={
                "test_error": self.trained.test_error,
                "averaged_epochs": self.trained.averaged_epochs,
                "last_test_accuracy": self.trained.test.accuracy,
                "parameters": self.trained.parameters,
                "macs": self.trained.macs,
            },
        )

    def model(self) -> Model:
        """The trained model, on the CPU, for use."""
        card = self._card()
        network = network_of(card)
        weights = {
            name: one.detach().cpu().float() if one.is_floating_point() else one.cpu()
            for name, one in self.state.handed_over.state_dict().items()
            if not name.startswith("auxiliary.")
        }
        network.load_state_dict(weights)
        return Model(network, card).eval()

    # ---------------------------------------------------------------- telling

    def tell_step(self, goal: int) -> None:
        position, so_far = self.state.position, self.state.so_far
        seconds, training = max(so_far.total, 1e-9), so_far.sums["training"]
        epochs = self.config.training.epochs
        share = 1 - max(goal - position.images, 0) / self.epoch_images
        done = [*self.state.work_done, (share, seconds)]
        step = TrainingStep(
            epoch=position.epoch,
            step=position.step,
            images=self.epoch_images - (goal - position.images),
            epoch_images=self.epoch_images,
            lr=so_far.lr,
            batch=self.batch.batch * self.processes.size,
            loss=training.mean_loss,
            accuracy=training.accuracy,
            images_per_second=training.images / seconds,
            memory=so_far.memory,
            seconds_left=seconds_left(done, epochs - position.epoch - share),
        )
        self.tell("on_step", step)
