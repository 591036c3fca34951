"""One of two processes is killed, stalls or fails alone: the other ends soon and says so."""

import os
import signal
import time
from pathlib import Path

import pytest

from prnas.runs.record_lines import read_records
from prnas.runs.records import EpochRecord
from tests.support.real_processes import finish, prnas
from tests.support.watching import assert_same_run, stopped, without_varying
from torture.ranks import TWO, Blow, Program, check_whole, check_words, disturb, resume
from torture.ranks import write_recipe as ranks_recipe

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")
SECONDS = 3.0  # that processes wait for each other


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ranks_recipe(tmp_path_factory.mktemp("recipe"), SECONDS)


@pytest.fixture(scope="module")
def undisturbed(recipe: Path) -> Path:
    """A run of two processes that nobody disturbed."""
    program = Program(["search", str(recipe), "--quiet", "--name", "whole", *TWO], recipe.parent)
    assert program.process.wait(60) == 0, program.said()
    return recipe.parent / "runs" / "whole"


@pytest.mark.parametrize(
    ("rank", "kind"),
    [
        pytest.param(1, signal.SIGKILL, id="killed"),
        pytest.param(0, signal.SIGSTOP, id="stalled", marks=pytest.mark.slow),
    ],
)
def test_the_other_ends_and_the_run_goes_on_to_the_same_bits(
    recipe: Path, tmp_path: Path, undisturbed: Path, rank: int, kind: signal.Signals
) -> None:
    run = tmp_path / "runs" / "run"
    blow = Blow(rank, kind, checkpoints=4)
    arguments = ["search", str(recipe), "--quiet", "--name", "run"]
    outcome = disturb(arguments, tmp_path, run, blow)
    assert outcome is not None
    check_words(outcome, blow)
    assert "prnas search --resume runs/run" in outcome.said
    assert ("was killed by SIGKILL" if rank else "gave no answer for 0.05 min") in outcome.said
    assert outcome.seconds < SECONDS + 10
    check_whole(run)
    if rank == 1:
        resume(run, 2)
        assert_same_run(run, undisturbed)


FAILING = """
import os, sys
from prnas.io.errors import UserError
from prnas.runs import session
real = session.load
def load(*arguments):
    if os.environ.get("LOCAL_RANK") == "{rank}":
        raise {error}
    return real(*arguments)
session.load = load
from prnas.cli import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("rank", "error", "said"),
    [
        pytest.param(
            *(0, "UserError('a bad disk')", ["prnas: a bad disk"]), marks=pytest.mark.slow
        ),
        (
            1,
            "MemoryError",
            ["prnas: process 1: out of memory", "prnas: process 1 ended unexpectedly"],
        ),
    ],
)
def test_one_that_fails_alone_does_not_leave_the_other_waiting(
    recipe: Path, tmp_path: Path, rank: int, error: str, said: list[str]
) -> None:
    program = FAILING.format(rank=rank, error=error)
    process = prnas("search", recipe, "--name", "run", *TWO, cwd=tmp_path, prefix=("-c", program))
    code, _, err = finish(process)
    assert code == 2
    lines = err.splitlines()
    assert len(lines) == len(said), err
    for line, start in zip(lines, said, strict=True):
        assert line.startswith(start)
    assert not (tmp_path / "runs").exists()


DYING = """
import os, sys
if os.environ.get("LOCAL_RANK") == "1":
    sys.exit(3)
from prnas.cli import main
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_one_that_never_joins_is_not_waited_for(recipe: Path, tmp_path: Path) -> None:
    start = time.monotonic()
    process = prnas("search", recipe, "--name", "run", *TWO, cwd=tmp_path, prefix=("-c", DYING))
    code, _, err = finish(process)
    assert code == 2
    assert "process 1 ended unexpectedly (exit code 3)" in err
    assert "Traceback" not in err
    assert time.monotonic() - start < 30
    assert not (tmp_path / "runs").exists()


def test_a_run_of_one_process_goes_on_with_two(images: Path, tmp_path: Path) -> None:
    """What was done stays as it is; what follows has other batches, so other numbers."""
    run = stopped(images, tmp_path)
    before = [without_varying(record) for record in read_records(run / "records.jsonl")]
    resume(run, 2)
    records = list(read_records(run / "records.jsonl"))
    assert [without_varying(record) for record in records[: len(before)]] == before
    epochs = [record for record in records if isinstance(record, EpochRecord)]
    assert len(epochs) == 5
    assert epochs[-1].batch == 2 * epochs[0].batch
    assert (run / "genotype.json").exists()
