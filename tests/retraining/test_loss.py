"""The loss of a training with weights of classes, against one image at a time."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from prnas.data.augment_mixup import mixup
from prnas.retraining.api import resume, start
from prnas.retraining.loss import Loss, balanced_weights
from prnas.runs.record_lines import read_records
from prnas.runs.records import TrainedRecord
from prnas.runs.run import Stopped
from tests.support.settings import small_training
from tests.support.watching import Watch, assert_same_run, folder_of


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60))
def test_all_classes_weigh_the_same(labels: list[int]) -> None:
    found = balanced_weights(torch.tensor(labels), 6).tolist()
    present = set(labels)
    each = [found[label] * labels.count(label) for label in present]
    assert each == pytest.approx([len(labels) / len(present)] * len(present))
    assert sum(found[label] for label in labels) == pytest.approx(len(labels))
    assert all(found[label] == 0 for label in range(6) if label not in present)


@given(st.integers(0, 1_000), st.sampled_from([0.0, 0.1]))
def test_the_loss_is_that_of_each_image_times_its_weight(seed: int, smoothing: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(7, 3, generator=generator, dtype=torch.float64)
    labels = torch.randint(3, (7,), generator=generator)
    weights = torch.rand(3, generator=generator, dtype=torch.float64)
    each = [
        weights[label]
        * ((1 - smoothing) * -row.log_softmax(0)[label] - smoothing * row.log_softmax(0).mean())
        for row, label in zip(logits, labels, strict=True)
    ]
    found = Loss(smoothing, weights)(logits, labels)
    assert float(found) == pytest.approx(float(sum(each)) / 7, rel=1e-12)
    plain = F.cross_entropy(logits, labels, label_smoothing=smoothing)
    assert torch.equal(Loss(smoothing)(logits, labels), plain)


def test_of_mixed_images_both_labels_count() -> None:
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(5, 3, generator=generator, dtype=torch.float64)
    labels = torch.tensor([0, 1, 2, 1, 0])
    images = torch.zeros(5, 1, 1, 1, dtype=torch.float64)
    mixed = mixup(images, 0.3, generator)
    weights = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    each = [
        sum(
            share * weights[label] * -logits[number].log_softmax(0)[label]
            for share, label in (
                (mixed.shares[number], labels[number]),
                (1 - mixed.shares[number], labels[mixed.partners[number]]),
            )
        )
        for number in range(5)
    ]
    found = Loss(0.0, weights)(logits, labels, mixed)
    assert float(found) == pytest.approx(float(sum(each)) / 5, rel=1e-12)


def test_with_everything_on_it_goes_on_exactly(images: Path, tmp_path: Path) -> None:
    config = small_training(
        images,
        data={"rand_augment": 2, "color_jitter": 0.3},
        training={"epochs": 2, "mixup": 0.2, "class_weights": "balanced"},
    )
    start(config, runs=tmp_path, name="whole")
    stop = Watch(7, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped):
        start(config, runs=tmp_path, name="stopped", callbacks=[stop])
    resume(tmp_path / "stopped")
    assert_same_run(tmp_path / "stopped", tmp_path / "whole")


def test_a_training_says_and_records_its_weights(tmp_path: Path) -> None:
    """Of 48 training images, 32 are of the first class."""
    labels = np.array([0, 0, 1, 0, 2, 0] * 8)
    images = np.random.default_rng(0).integers(0, 255, (48, 8, 8, 3)).astype(np.uint8)
    part = {"x_test": images[:12], "y_test": labels[:12]}
    np.savez(tmp_path / "uneven.npz", x_train=images, y_train=labels, **part)
    once = {"epochs": 1, "warmup_epochs": 0}
    losses: list[float] = []
    for kind in ("none", "balanced"):
        watch = Watch()
        config = small_training(tmp_path / "uneven.npz", training={**once, "class_weights": kind})
        result = start(config, runs=tmp_path, callbacks=[watch])
        losses.append(result.epochs[0].scores["training"].loss)
        (end,) = [
            record
            for record in read_records(folder_of(result) / "records.jsonl")
            if isinstance(record, TrainedRecord)
        ]
        if kind == "none":
            assert (end.class_weights, watch.start.notes) == (None, ())
            continue
        assert end.class_weights == pytest.approx([0.5, 2, 2])
        (note,) = watch.start.notes
        assert note.endswith("0.5 for '0' to 2 for '1'")
    assert losses[0] != losses[1]
