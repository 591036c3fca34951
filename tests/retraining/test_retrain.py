"""The training of a final network: as a plain loop does it, resumed exactly, tested honestly."""

import json
import math
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

import prnas
from prnas.config.retrain import RetrainConfig
from prnas.data.augment import Augmentation, plain
from prnas.data.dataset import load, normalization
from prnas.data.streams import Stream
from prnas.io.errors import UserError
from prnas.retraining.api import resume, start
from prnas.retraining.retraining import Retraining, learning_rate
from prnas.retraining.seeds import resume_seeds, start_seeds
from prnas.runs.attempt import Outcome
from prnas.runs.preparation import seed_for, torch_generator
from prnas.runs.record_lines import read_records
from prnas.runs.records import EpochRecord, TrainedRecord
from prnas.runs.session import Stopped
from prnas.space import zoo
from prnas.space.genotype import Genotype
from tests.support.settings import small_training, write_images
from tests.support.watching import Shaky, Watch, assert_same_run, folder_of, without_varying


def textbook(config: RetrainConfig) -> tuple[nn.Module, nn.Module, list[float], list[float]]:
    """The same training, written down plainly: the network, its average, losses, test errors."""
    data = load(config.data, torch.device("cpu"))
    seed, training, network = config.seed, config.training, config.network
    numbers = normalization(data.train)
    vary = config.data
    augment = Augmentation(vary.flip, vary.crop_padding, vary.cutout, numbers)
    stream = Stream(data.train, torch.arange(len(data.train)), seed_for(seed, "stream", "training"))
    augment_generator = torch_generator(seed, "augment training")
    drop_generator = torch_generator(seed, "drop path")
    assert config.genotype is not None
    dtype = torch.float64 if config.compute.precision == "64-true" else torch.float32
    net = prnas.build(
        config.genotype,
        network.channels,
        network.cells,
        data.num_classes,
        auxiliary=True,
        generator=torch_generator(seed, "weights"),
    ).to(dtype, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    average: dict[str, torch.Tensor] = {}
    optimizer = torch.optim.SGD(
        net.parameters(), training.lr, training.momentum, weight_decay=training.weight_decay
    )
    images, losses, errors = 0, [], []
    for epoch in range(training.epochs):
        net.train()
        net.drop_path_probability = network.drop_path * epoch / training.epochs
        seen, total = 0, 0.0
        while images < (epoch + 1) * len(data.train):
            images += config.batch.min
            if epoch < training.warmup_epochs:
                lr = training.lr * min(images / len(data.train) / training.warmup_epochs, 1)
            else:
                share = (epoch - training.warmup_epochs) / (
                    training.epochs - training.warmup_epochs
                )
                lr = (
                    training.lr_min
                    + (training.lr - training.lr_min) * (1 + math.cos(math.pi * share)) / 2
                )
            for group in optimizer.param_groups:
                group["lr"] = lr
            pixels, labels = stream.next(config.batch.min)
            varied = augment(pixels, augment_generator).to(dtype)
            logits, auxiliary = net(varied, drop_generator)
            loss = F.cross_entropy(logits, labels, label_smoothing=training.label_smoothing)
            second = F.cross_entropy(auxiliary, labels, label_smoothing=training.label_smoothing)
            optimizer.zero_grad()
            (loss + network.auxiliary_weight * second).backward()
            nn.utils.clip_grad_norm_(net.parameters(), training.gradient_norm)
            optimizer.step()
            seen += len(labels)
            total += loss.item() * len(labels)
            decay = training.average_decay if average else 0.0
            for name, value in net.state_dict().items():
                old = average.get(name, torch.zeros_like(value))
                average[name] = old * (decay or 0.0) + value * (1 - (decay or 0.0))
        losses.append(total / seen)
        test = plain(data.test.fetch(torch.arange(len(data.test))), numbers)
        with torch.no_grad():
            wrong = net.eval()(test.to(dtype)).argmax(1) != data.test.labels
        errors.append(float(wrong.double().mean()))
    averaged = prnas.build(
        config.genotype, network.channels, network.cells, data.num_classes, auxiliary=True
    )
    averaged.load_state_dict(average)
    return net, averaged, losses, errors


@pytest.fixture(scope="module")
def whole(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that was never stopped."""
    return folder_of(start(small_training(images), runs=tmp_path_factory.mktemp("whole")))


def weights_of(network: nn.Module) -> dict[str, torch.Tensor]:
    return {
        name: one
        for name, one in network.state_dict().items()
        if not name.startswith("auxiliary.") and one.is_floating_point()
    }


def test_it_is_the_plain_loop(images: Path, tmp_path: Path) -> None:
    """In double precision: in single, rounding grows from step to step by what the CPU does."""
    config = small_training(images, genotype="pr-darts-dl1", compute={"precision": "64-true"})
    whole = folder_of(start(config, runs=tmp_path))
    network, _, losses, errors = textbook(config)
    records = list(read_records(whole / "records.jsonl"))
    epochs = [one for one in records if isinstance(one, EpochRecord)]
    assert [one.scores["training"].loss for one in epochs] == pytest.approx(losses, rel=1e-10)
    assert [1 - one.scores["test"].accuracy for one in epochs] == pytest.approx(errors)
    found = prnas.load(whole)
    mine = found.network.state_dict()
    for name, one in weights_of(network).items():  # a saved model has single precision
        assert torch.allclose(mine[name], one.float(), rtol=1e-6, atol=1e-9), name
    (end,) = [one for one in records if isinstance(one, TrainedRecord)]
    assert end.test_error == pytest.approx(sum(errors) / 4)
    assert end.averaged_epochs == 4  # there are no five
    assert end.parameters == sum(
        one.numel() for name, one in network.named_parameters() if "auxiliary" not in name
    )
    assert np.sum(end.confusion) == 12
    assert np.trace(end.confusion) == round(12 * end.test.accuracy)
    assert np.sum(end.confusion, axis=1).tolist() == [4, 4, 4]


def test_the_moving_average_is_what_is_tested_and_handed_over(images: Path) -> None:
    config = small_training(images, training={"epochs": 2, "average_decay": 0.8})
    _, averaged, _, _ = textbook(config)
    result = start(config, runs=None)
    found = result.model.network.state_dict()
    for name, one in weights_of(averaged).items():
        assert torch.allclose(found[name], one, rtol=1e-4, atol=1e-5), name
    data = load(config.data, torch.device("cpu"))
    pixels = data.test.fetch(torch.arange(12)).float() / 255
    with torch.no_grad():
        wrong = result.model(pixels).argmax(1) != data.test.labels
    last = result.epochs[-1].scores["test"]
    assert last.accuracy == pytest.approx(1 - float(wrong.double().mean()))


@pytest.mark.parametrize("at", [1, 5, 7, 20])
def test_a_stopped_training_goes_on_bit_for_bit(
    images: Path, tmp_path: Path, at: int, whole: Path
) -> None:
    stop = Watch(at, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped) as caught:
        start(small_training(images), runs=tmp_path, callbacks=[stop])
    folder = folder_of(caught.value)
    go_on = Watch()
    result = resume(folder, callbacks=[go_on])
    assert go_on.start.resumed
    assert at + len(go_on.steps) == sum(one.steps for one in result.epochs)
    assert_same_run(folder, whole)


def test_with_an_average_too(images: Path, tmp_path: Path) -> None:
    config = small_training(images, training={"average_decay": 0.9})
    start(config, runs=tmp_path, name="whole")
    stop = Watch(7, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Stopped):
        start(config, runs=tmp_path, name="stopped", callbacks=[stop])
    resume(tmp_path / "stopped")
    assert_same_run(tmp_path / "stopped", tmp_path / "whole")


def test_a_finished_training_is_not_trained_again(whole: Path) -> None:
    watch = Watch()
    result = resume(whole, callbacks=[watch])
    assert not watch.steps
    (end,) = [one for one in read_records(whole / "records.jsonl") if one.type == "trained"]
    assert isinstance(end, TrainedRecord)
    assert result.test_error == end.test_error
    assert len(result.epochs) == 4


def test_the_test_part_decides_nothing(images: Path, tmp_path: Path) -> None:
    """With its labels shuffled, all is the same but for what is reported of it."""
    with np.load(images) as arrays:
        changed = dict(arrays)
    changed["y_test"] = (changed["y_test"] + 1) % 3
    np.savez(tmp_path / "shuffled.npz", **changed)
    results = [
        start(small_training(path), runs=tmp_path, name=name)
        for name, path in (("one", images), ("other", tmp_path / "shuffled.npz"))
    ]
    assert results[0].test_error != results[1].test_error
    one, other = (
        (tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("one", "other")
    )
    assert one == other
    for ours, theirs in zip(results[0].epochs, results[1].epochs, strict=True):
        known, found = without_varying(ours), without_varying(theirs)
        del known["test"], found["test"]
        assert known == found


@given(
    epochs=st.integers(1, 20),
    warmup=st.integers(0, 5),
    place=st.floats(0, 1),
    lr=st.floats(0.001, 1),
)
def test_the_learning_rate_rises_and_falls(
    epochs: int, warmup: int, place: float, lr: float
) -> None:
    epochs += warmup
    config = RetrainConfig.from_data(
        {"training": {"epochs": epochs, "warmup_epochs": warmup, "lr": lr}}
    )
    epoch = min(int(place * epochs), epochs - 1)
    found = learning_rate(config, epoch, place * epochs)
    assert 0 <= found <= lr
    assert learning_rate(config, warmup, warmup + 0.5) == pytest.approx(lr)  # its greatest
    if warmup:
        assert learning_rate(config, 0, 0.5) == pytest.approx(lr * 0.5 / warmup)
    last = learning_rate(config, epochs - 1, float(epochs))
    assert last == pytest.approx(lr * (1 + math.cos(math.pi * (1 - 1 / (epochs - warmup)))) / 2)


def test_memory_decides_the_batch_if_asked_to(images: Path, tmp_path: Path) -> None:
    config = small_training(images, batch={"min": 4, "multiple": 4, "max": 32, "every": 2})
    watch = Watch()
    start(config, runs=tmp_path, callbacks=[watch], probe=Shaky(0.1, 0.99, 0.5))
    assert {one.reason for one in watch.batches} == {"start", "memory"}
    assert max(one.batch for one in watch.batches) > 8


def test_out_of_memory_lowers_the_batch(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Retraining._gradients  # pyright: ignore[reportPrivateUsage]

    def limited(self: Retraining) -> Outcome:
        if self.batch.batch > 8:
            real(self)
            raise MemoryError
        return real(self)

    monkeypatch.setattr(Retraining, "_gradients", limited)
    config = small_training(images, batch={"min": 4, "multiple": 4, "max": 16, "every": 2})
    watch = Watch()
    start(config, runs=tmp_path, callbacks=[watch], probe=Shaky(0.1))
    assert "out-of-memory" in {one.reason for one in watch.batches}
    with pytest.raises(UserError, match=r"out of memory with a batch of 20 .*epoch 1, step 1"):
        start(small_training(images), runs=tmp_path)


def test_numbers_that_are_not_finite_stop_it(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Retraining) -> Outcome:
        return Outcome(torch.tensor(float("nan")), torch.tensor(0.0))

    monkeypatch.setattr(Retraining, "_gradients", broken)
    with pytest.raises(UserError, match=r"not a finite number \(epoch 1, step 1\).*training\.lr"):
        start(small_training(images), runs=tmp_path)


def test_other_test_images_are_noticed(tmp_path: Path) -> None:
    data = write_images(tmp_path / "images.npz")
    stop = Watch(2, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped) as caught:
        start(small_training(data), runs=tmp_path / "runs", callbacks=[stop])
    with np.load(data) as arrays:
        changed = dict(arrays)
    changed["y_test"] = changed["y_test"][::-1]
    np.savez(data, **changed)
    with pytest.raises(UserError, match="the data changed"):
        resume(folder_of(caught.value))


def test_seeds_are_independent_runs_with_one_summary(images: Path, tmp_path: Path) -> None:
    config = small_training(images, training={"epochs": 2})
    found = start_seeds(config, 3, runs=tmp_path, name="three", watchers=lambda i, n: [])
    alone = start(config.model_copy(update={"seed": 2}), runs=tmp_path, name="alone")
    assert_same_run(tmp_path / "three" / "seed-2", folder_of(alone))
    assert [one.seed for one in found.results] == [1, 2, 3]
    errors = [one.test_error for one in found.results]
    told = json.loads((tmp_path / "three" / "results.json").read_text())
    assert told["test_error"]["mean"] == pytest.approx(np.mean(errors))
    assert told["test_error"]["standard_deviation"] == pytest.approx(np.std(errors, ddof=1))
    assert [one["seed"] for one in told["runs"]] == [1, 2, 3]


def test_seeds_go_on_where_they_stopped(images: Path, tmp_path: Path) -> None:
    config = small_training(images, training={"epochs": 2})
    start_seeds(config, 3, runs=tmp_path, name="whole", watchers=lambda i, n: [])

    def watchers(number: int, of: int) -> list[Watch]:
        stop = Watch(3, lambda: os.kill(os.getpid(), signal.SIGTERM))
        return [stop] if number == 1 else []

    with pytest.raises(Stopped) as caught:
        start_seeds(config, 3, runs=tmp_path, name="stopped", watchers=watchers)
    assert caught.value.folder == tmp_path / "stopped"
    (tmp_path / "stopped" / "seed-3").mkdir()  # as if killed before anything was in it
    found = resume_seeds(tmp_path / "stopped", watchers=lambda i, n: [])
    for seed in (1, 2, 3):
        assert_same_run(tmp_path / "stopped" / f"seed-{seed}", tmp_path / "whole" / f"seed-{seed}")
    again = resume_seeds(tmp_path / "stopped", watchers=lambda i, n: [])
    assert again.test_errors == found.test_errors


def test_a_damaged_group_is_told(images: Path, tmp_path: Path) -> None:
    config = small_training(images, training={"epochs": 1, "warmup_epochs": 0})
    start_seeds(config, 2, runs=tmp_path, name="two", watchers=lambda i, n: [])
    for text in ("", "{}", '{"format": "prnas-retrain-group", "version": 1, "seeds": "many"}'):
        (tmp_path / "two" / "group.json").write_text(text)
        with pytest.raises(UserError, match=r"group\.json"):
            resume_seeds(tmp_path / "two", watchers=lambda i, n: [])


@pytest.mark.parametrize("precision", ["64-true", "bf16-mixed"])
def test_other_precisions(images: Path, tmp_path: Path, precision: str) -> None:
    config = small_training(
        images, compute={"precision": precision}, training={"epochs": 2}, genotype="pr-darts-dr"
    )
    result = start(config, runs=tmp_path)
    assert all(math.isfinite(one.scores["training"].loss) for one in result.epochs)
    weights = prnas.load(folder_of(result)).network.state_dict().values()
    assert {one.dtype for one in weights} == {torch.float32, torch.int64}


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_very_narrow_networks(images: Path, channels: int) -> None:
    config = small_training(images, network={"channels": channels}, training={"epochs": 2})
    assert 0 <= start(config, runs=None).test_error <= 1


def test_from_python(images: Path) -> None:
    config = small_training(images, training={"epochs": 7})
    result = prnas.retrain("darts-v1", config, seed=3, overrides=["training.epochs=2"])
    assert result.seed == 3
    assert result.folder is None
    assert result.model.card.genotype == zoo.get("darts-v1")
    assert 0 <= result.test_error <= 1
    assert len(result.epochs) == 2


def test_settings_that_cannot_work_are_refused() -> None:
    for wrong, said in (
        ({"training": {"warmup_epochs": 600}}, "warmup_epochs"),
        ({"training": {"lr_min": 1.0}}, "lr_min"),
        ({"network": {"stem": "imagenet", "channels": 7}}, "even"),
        ({"genotype": "no-such"}, "no-such"),
        ({"training": {"average_decay": 1.0}}, "average_decay"),
        ({"surprise": 1}, "unknown key"),
        ({"compute": {"recompute": True}}, "recompute"),
    ):
        with pytest.raises(ValueError, match=said):
            RetrainConfig.from_data(wrong)


def test_the_genotype_may_be_a_file_or_a_searchs_folder(
    images: Path, tmp_path: Path, reference: Path
) -> None:
    config = small_training(images, training={"epochs": 1, "warmup_epochs": 0})
    found = Genotype.loads((reference / "genotype.json").read_text(encoding="utf-8"))
    for source in (reference, str(reference / "genotype.json")):
        assert prnas.retrain(source, config).model.card.genotype == found
    with pytest.raises(UserError, match="is not a run's folder"):
        prnas.retrain(tmp_path, config)
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(UserError, match=r"bad\.json"):
        prnas.retrain(tmp_path / "bad.json", config)


@pytest.mark.slow
def test_compiled_it_trains_about_the_same(images: Path) -> None:
    plain, compiled = (
        prnas.retrain(
            "pr-darts-dl1",
            small_training(
                images,
                training={"epochs": 2},
                network={"drop_path": 0.0},
                compute={"compile": compiled},
            ),
        )
        for compiled in (False, True)
    )
    losses = [[one.scores["training"].loss for one in run.epochs] for run in (plain, compiled)]
    assert losses[1] == pytest.approx(losses[0], rel=0.02)  # rounding differs
