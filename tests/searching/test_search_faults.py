"""Memory runs out, numbers are not finite, something is missing."""

from pathlib import Path

import pytest
import torch
from torch import nn

import prnas
from prnas.data.dataset import Images
from prnas.io.errors import UserError
from prnas.runs import evaluation
from prnas.runs.attempt import Outcome
from prnas.searching.api import resume, start
from prnas.searching.search import Search
from prnas.searching.steps import FirstOrderStep, Part
from tests.support.settings import small_config
from tests.support.watching import Watch, assert_same_run, epochs_of


def test_validation_goes_on_in_smaller_batches_when_memory_runs_out(
    images: Path, monkeypatch: pytest.MonkeyPatch, reference: Path
) -> None:
    real = evaluation.predict

    def limited(
        run: Search, module: nn.Module, images: Images, indices: torch.Tensor
    ) -> tuple[float, torch.Tensor]:
        if len(indices) > 10:
            raise MemoryError
        return real(run, module, images, indices)

    monkeypatch.setattr(evaluation, "predict", limited)
    found = prnas.search(small_config(images))
    for one, other in zip(found.epochs, epochs_of(reference), strict=True):
        ours, theirs = one.scores["validation"], other.scores["validation"]
        assert ours.accuracy == theirs.accuracy
        assert ours.loss == pytest.approx(theirs.loss)


def test_out_of_memory_lowers_the_batch_and_takes_the_same_images(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[tuple[str, int, int]] = []
    real = FirstOrderStep.gradients

    def limited(self: FirstOrderStep, part: Part) -> Outcome:
        search = self.search
        position = search.streams[part].state()["position"]
        outcome = real(self, part)
        taken.append((part, position, search.batch.batch))
        if search.batch.batch > 9 and part == "weights":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return outcome

    monkeypatch.setattr(FirstOrderStep, "gradients", limited)
    watch = Watch()
    config = small_config(images, batch={"min": 8, "multiple": 1, "max": 16, "every": 2})
    result = start(config, runs=tmp_path, callbacks=[watch])
    failed = [place for place, one in enumerate(taken) if one[0] == "weights" and one[2] > 9]
    assert failed
    for place in failed:
        assert taken[place + 1][:2] == taken[place][:2]  # the very same images, fewer of them
        assert taken[place + 1][2] < taken[place][2]
    reasons = [one.reason for one in watch.batches]
    assert reasons.count("out-of-memory") == len(failed)
    assert result.genotype


def test_out_of_memory_at_the_smallest_batch_is_an_error_that_keeps_the_checkpoint(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: Path
) -> None:
    real = FirstOrderStep.gradients

    def failing(self: FirstOrderStep, part: Part) -> Outcome:
        if self.search.state.position.cycle == 1:
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
        return real(self, part)

    monkeypatch.setattr(FirstOrderStep, "gradients", failing)
    expected = r"batch of 8 \(the smallest is 8\), cycle 2, epoch 1, step 1\. The last checkpoint"
    with pytest.raises(UserError, match=expected):
        start(small_config(images), runs=tmp_path, name="a")
    monkeypatch.undo()
    resume(tmp_path / "a")
    assert_same_run(tmp_path / "a", reference)


def test_an_impossible_accelerator_is_a_users_mistake(images: Path, tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(UserError, match="cannot compute on 'cuda'"):
        start(small_config(images, compute={"accelerator": "cuda"}), runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_missing_data_leaves_nothing_behind(tmp_path: Path) -> None:
    config = small_config(tmp_path / "nowhere.npz")
    with pytest.raises(UserError, match="nowhere"):
        start(config, runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_more_images_than_there_are(images: Path) -> None:
    config = small_config(images, data={"images": 1000})
    with pytest.raises(UserError, match="1000 training images"):
        prnas.search(config)


def test_a_batch_of_more_images_than_there_are(images: Path) -> None:
    with pytest.raises(UserError, match=r"batch\.min \(60"):
        prnas.search(small_config(images, batch={"min": 60, "multiple": 1, "max": 60}))
