"""A few cases of each kind that `torture.fuzz` has thousands of; the same ones every time."""

import contextlib
import dataclasses
import os
import shutil
from pathlib import Path
from random import Random

import pytest

from prnas.io.errors import UserError
from prnas.runs.checkpoint import read_checkpoint
from torture.fuzz import KINDS, HarmError, fuzz
from torture.fuzzing import guard
from torture.fuzzing.kinds import Arena, Kind, Maker
from torture.fuzzing.made_runs import make_runs
from torture.fuzzing.run_folders import forge

SEED = 1
CASES = {
    **{"cifar": 10, "idx": 12, "npz": 20, "folder": 9},
    **{"record": 12, "checkpoint": 4, "model": 12, "command": 40},
}


@pytest.mark.parametrize("name", CASES)
def test_spoilt_inputs_are_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prnas.data import catalog

    monkeypatch.setattr(catalog, "SPECS", catalog.SPECS)  # cases put small ones in
    for key, value in list(catalog.SPECS.items()):
        monkeypatch.setitem(catalog.SPECS, key, value)
    kind = dataclasses.replace(KINDS[name], alone=False)  # processes are tested elsewhere
    accepted = fuzz(kind, SEED, range(CASES[name]), tmp_path.resolve() / "arena", tell=False)
    assert accepted < CASES[name]  # else they are not spoilt enough


def test_forged_checkpoints_get_past_the_checksums(tmp_path: Path) -> None:
    """Else nothing is learnt of what comes after them."""
    runs = make_runs(tmp_path)["search"]
    readable = 0
    for number in range(10):
        run = tmp_path / f"run-{number}"
        shutil.copytree(runs[0], run)
        forge(run, Random(number))
        newest = max(
            folder for folder in (run / "checkpoints").iterdir() if folder.name.isdecimal()
        )
        with contextlib.suppress(UserError):
            read_checkpoint(newest)
            readable += 1
    assert readable > 2


HARMS = {
    "prints": "raise ValueError('oops')",
    "code": "raise SystemExit(3)",
    "rude": "print('no', file=sys.stderr); raise SystemExit(2)",
    "outside": "open('../outside', 'w').close()",
    "pristine": "open('../pristine/new', 'w').close()",
    "canary": "os.mkdir('../EXECUTED')",
    "left": "open('left', 'w').close(); print('prnas: no', file=sys.stderr); raise SystemExit(2)",
    "control": "print('prnas: \\x1b', file=sys.stderr); raise SystemExit(2)",
    "memory": "bytearray(1_200_000_000)",
    "slow": "while True: pass",
}


@pytest.mark.parametrize("harm", HARMS)
def test_harm_is_noticed(harm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fuzzer that notices nothing proves nothing."""
    import sys

    def bad(arguments: list[str]) -> None:
        exec(HARMS[harm], {"sys": sys, "os": os})  # noqa: S102 - the harm itself

    def prepare(arena: Arena) -> Maker:
        def make(random: Random, case: Path) -> list[str]:
            return ["x"]

        return make

    monkeypatch.setattr(guard, "main", bad)
    monkeypatch.setattr(guard, "SECONDS", 0.5 if harm == "slow" else 20.0)
    with pytest.raises(HarmError, match="case 0 of seed 1"):
        fuzz(Kind("bad", prepare, alone=False), SEED, [0], tmp_path.resolve() / "arena", tell=False)


def test_cases_are_the_same_every_time(tmp_path: Path) -> None:
    def inputs(name: str) -> list[bytes]:
        arena = Arena(tmp_path / name / "pristine", tmp_path / name / "EXECUTED")
        arena.pristine.mkdir(parents=True)
        maker = KINDS["config"].prepare(arena)
        made: list[bytes] = []
        for number in range(20):
            folder = tmp_path / name / str(number)
            folder.mkdir()
            maker(Random(f"1/config/{number}"), folder)
            made.append((folder / "input.file").read_bytes().replace(name.encode(), b""))
        return made

    assert inputs("folder-1") == inputs("folder-2")
