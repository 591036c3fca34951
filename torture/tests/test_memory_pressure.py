"""Memory that really runs out: a process whose address space is bounded."""

import sys
from pathlib import Path

import pytest

from prnas.io.memory import check_room
from torture.memory import Squeezed, squeeze, write_hungry

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS and /proc")


def _squeezed(folder: Path, name: str, megabytes: float, *changes: str) -> Squeezed:
    """A search of one epoch with batches of 64 and 128."""
    recipe = write_hungry(folder, step=64, number=256)
    arguments = ["search", str(recipe), "--quiet", "--runs", str(folder), "--name", name]
    for change in ("schedule.cycles.0.epochs=1", "evidence.measure=none", *changes):
        arguments += ["--set", change]
    return squeeze(arguments, folder / name, megabytes)


def test_the_batch_shrinks_and_the_search_goes_on_to_its_end(tmp_path: Path) -> None:
    """There is room for a batch of 64 and a third more, not for one of 128.

    How much that is, a search tells that has no larger batch: it differs from machine to machine.
    """
    free = _squeezed(tmp_path, "free", float("inf"), "batch.max=64")
    assert free.code == 0, free.error
    assert free.batches == [(64, "start")]
    bounded = _squeezed(tmp_path, "bounded", 4 / 3 * free.megabytes)
    assert bounded.code == 0, bounded.error
    assert bounded.batches == [(64, "start"), (128, "memory"), (64, "out-of-memory")]
    assert bounded.megabytes <= 4 / 3 * free.megabytes
    assert (tmp_path / "bounded" / "genotype.json").exists()


@pytest.mark.parametrize("megabytes", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_with_no_room_at_all_there_is_one_message(tmp_path: Path, megabytes: float) -> None:
    """For the data and the network, or for the first step."""
    outcome = _squeezed(tmp_path, "run", megabytes)
    assert outcome.code == 2, outcome.error
    assert outcome.error.startswith("prnas: out of memory")
    assert len(outcome.error.splitlines()) == 1, outcome.error


def test_room_is_checked_without_taking_it() -> None:
    check_room(2**20)
    with pytest.raises(MemoryError):
        check_room(2**62)
