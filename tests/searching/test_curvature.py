"""Curvature as a search records it."""

import os
import signal
from pathlib import Path

import pytest

from prnas.io.errors import FormatError
from prnas.runs.record_lines import read_records
from prnas.runs.records import CycleRecord
from prnas.runs.run import Stopped
from prnas.searching import search as search_module
from prnas.searching.api import resume, start
from prnas.searching.curvature import has_grown
from prnas.searching.search import Search
from tests.support.settings import small_config
from tests.support.watching import (
    Watch,
    assert_same_run,
    epochs_of,
    folder_of,
    last_state,
    without_varying,
)


def test_it_is_recorded_where_it_is_due_and_changes_nothing(images: Path, tmp_path: Path) -> None:
    cycles = [
        {"epochs": 3, "grace_epochs": 1, "morphisms": 0, "candidates": 2},
        {"epochs": 2, "grace_epochs": 0, "morphisms": 0, "candidates": 1},
    ]

    def records(every: int) -> list[dict[str, object]]:
        config = small_config(
            images, schedule={"cycles": cycles}, evidence={"measure": "none", "curvature": every}
        )
        folder = folder_of(start(config, runs=tmp_path))
        return [without_varying(record) for record in epochs_of(folder)]

    measured = records(2)
    found = [record.pop("curvature", None) for record in measured]
    assert [value is not None for value in found] == [False, True, False, False, True]
    assert measured == records(0)


def test_it_has_grown_when_the_mean_of_five_has() -> None:
    flat = [1.0] * 9
    assert not has_grown(flat, 1.3)
    assert not has_grown([1.0, 9.0], 1.3)  # too few to compare
    # The mean of the last five against that of the five up to four before.
    assert not has_grown([*flat, 2.4], 1.3)
    assert has_grown([*flat, 2.6], 1.3)
    assert not has_grown([-1.0] * 5 + [5.0] * 4, 1.3)  # from below 0, no factor says anything


def test_a_search_ends_by_it_and_goes_on_bit_for_bit(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made_up(search: Search) -> float:
        return 1.0 if search.state.position.epoch < 8 else 5.0

    monkeypatch.setattr(search_module, "measured_curvature", made_up)
    cycle = {"epochs": 30, "grace_epochs": 0, "morphisms": 0, "candidates": 1}
    config = small_config(
        images,
        schedule={"cycles": [cycle]},
        data={"images": 32},
        evidence={"measure": "none", "curvature": 1, "curvature_stop": 1.3},
    )
    whole = folder_of(start(config, runs=tmp_path, name="whole"))
    epochs = epochs_of(whole)
    assert len(epochs) == 10
    (cycle_end,) = [r for r in read_records(whole / "records.jsonl") if isinstance(r, CycleRecord)]
    state, tensors = last_state(whole)
    # Those of four measurements before: the sixth epoch's.
    assert cycle_end.architecture_weights == state["curvature"]["weights"][5]
    last = tensors["supernet/architecture.normal.0"].double().tolist()
    assert cycle_end.architecture_weights["normal"][0] != last
    stop = Watch(7, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped) as caught:
        start(config, runs=tmp_path, name="cut", callbacks=[stop])
    resume(folder_of(caught.value))
    assert_same_run(tmp_path / "cut", whole)


@pytest.mark.parametrize(
    "architecture", [{"relaxation": "gdas"}, {"step": "none", "scoring": "removal"}]
)
def test_it_is_refused_where_it_says_nothing(images: Path, architecture: dict[str, str]) -> None:
    with pytest.raises(FormatError, match=r"evidence\.curvature"):
        small_config(images, architecture=architecture, evidence={"curvature": 1})
