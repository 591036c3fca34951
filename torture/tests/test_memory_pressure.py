"""Memory that really runs out: a process whose address space is bounded."""

import sys
from pathlib import Path

import pytest

from prnas.io.memory import check_room
from torture.memory import squeeze, write_hungry

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS and /proc")


def test_the_batch_shrinks_and_the_search_goes_on_to_its_end(tmp_path: Path) -> None:
    """There is room for a batch of 64, not for one of 128."""
    recipe = write_hungry(tmp_path, step=64)
    arguments = ["search", str(recipe), "--quiet", "--runs", str(tmp_path), "--name", "run"]
    outcome = squeeze(arguments, tmp_path / "run", megabytes=215)
    assert outcome.code == 0, outcome.error
    assert outcome.batches == [(64, "start"), (128, "memory"), (64, "out-of-memory")]
    assert (tmp_path / "run" / "genotype.json").exists()


@pytest.mark.parametrize("megabytes", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_with_no_room_at_all_there_is_one_message(tmp_path: Path, megabytes: float) -> None:
    """For the data and the network, or for the first step."""
    recipe = write_hungry(tmp_path, step=64)
    arguments = ["search", str(recipe), "--quiet", "--runs", str(tmp_path), "--name", "run"]
    outcome = squeeze(arguments, tmp_path / "run", megabytes)
    assert outcome.code == 2, outcome.error
    assert outcome.error.startswith("prnas: out of memory")
    assert len(outcome.error.splitlines()) == 1, outcome.error


def test_room_is_checked_without_taking_it() -> None:
    check_room(2**20)
    with pytest.raises(MemoryError):
        check_room(2**62)
