"""Callbacks are checked before a run begins, and records are collected for its result."""

from pathlib import Path
from typing import Any

import pytest

import prnas
from prnas.runs.events import Callback, check_callbacks
from prnas.runs.records import EpochRecord
from tests.support.settings import small_config, small_training


class Misspelt(prnas.Callback):
    def on_epock(self, record: EpochRecord) -> None: ...


class Right(prnas.TrainingCallback):
    def on_epoch(self, record: EpochRecord) -> None: ...

    def show(self) -> None: ...


@pytest.mark.parametrize(
    ("callback", "words"),
    [
        (print, r"prnas\.Callback object, got <built-in function print>\. .*on_epoch.*, close"),
        (None, r"must be a prnas\.Callback object, got None"),
        (Right, r"Right is a class; a callback is an object of it: Right\(\)"),
        (Misspelt(), r"^Misspelt\.on_epock would never be called.* Did you mean 'on_epoch'\?"),
    ],
)
def test_what_no_run_would_call_is_refused(
    callback: Any, words: str, images: Path, tmp_path: Path
) -> None:
    callbacks = [Right(), callback]
    with pytest.raises(TypeError, match=words):
        check_callbacks(callbacks)
    with pytest.raises(TypeError, match=words):
        prnas.search(small_config(images), runs=tmp_path, callbacks=callbacks)
    with pytest.raises(TypeError, match=words):
        prnas.retrain("darts-v1", small_training(images), runs=tmp_path, callbacks=callbacks)
    assert not list(tmp_path.iterdir())


def test_callbacks_are_a_list_and_checked_before_all_else() -> None:
    for callbacks in (Right(), None):
        with pytest.raises(TypeError, match=r"callbacks must be a list of prnas\.Callback"):
            prnas.search("no such recipe", callbacks=callbacks)  # pyright: ignore
    with pytest.raises(TypeError, match="on_epock"):
        prnas.retrain("no such cell", callbacks=[Misspelt()])


def test_a_single_text_is_no_list_of_overrides() -> None:
    single: Any = "seed=1"
    with pytest.raises(TypeError, match="overrides must be a list such as"):
        prnas.search("quick", overrides=single)
    with pytest.raises(TypeError, match="overrides must be a list such as"):
        prnas.retrain("darts-v1", overrides=single)
    with pytest.raises(TypeError, match="overrides must be a list such as"):
        prnas.SearchConfig.from_data({}, single)


def test_callbacks_of_searches_and_trainings_are_the_same() -> None:
    assert prnas.TrainingCallback is prnas.Callback
    check_callbacks([Right(), Callback()])
