"""Curvature as a search records it."""

from pathlib import Path

import pytest

from prnas.io.errors import FormatError
from prnas.searching.api import start
from tests.support.settings import small_config
from tests.support.watching import epochs_of, folder_of, without_varying


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


@pytest.mark.parametrize(
    "architecture", [{"relaxation": "gdas"}, {"step": "none", "scoring": "removal"}]
)
def test_it_is_refused_where_it_says_nothing(images: Path, architecture: dict[str, str]) -> None:
    with pytest.raises(FormatError, match=r"evidence\.curvature"):
        small_config(images, architecture=architecture, evidence={"curvature": 1})
