"""Checkpoints: exact, atomic, verified."""

import hashlib
import json
import os
from pathlib import Path

import pytest
import torch

from prnas.io.errors import UserError
from prnas.runs import checkpoint as module
from prnas.runs.checkpoint import (
    CHECKSUMS,
    RECORDS,
    STATE,
    TENSORS,
    Checkpoint,
    Checkpoints,
    read_checkpoint,
    under,
)
from prnas.runs.integrity import newest_state


def make(number: int) -> Checkpoint:
    return Checkpoint(
        {"number": number, "pi": 3.141592653589793},
        {"a/b": torch.full((2, 3), float(number)), "count": torch.tensor(number)},
        b"some records\n" * number,
    )


def number_of(checkpoint: Checkpoint | None) -> int | None:
    return None if checkpoint is None else checkpoint.state["number"]


def test_there_and_back(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path / "checkpoints", keep=2)
    assert store.newest() == (None, [])
    channels_last = torch.randn(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)
    tensors = {"weight": channels_last, "u8": torch.arange(3).byte()}
    one = Checkpoint({"x": [1, None, "ä"]}, tensors, b"records\n")
    back = read_checkpoint(store.save(one))
    assert back.state == one.state
    assert back.records == one.records
    assert torch.equal(back.tensors["weight"], channels_last)
    assert back.tensors["u8"].dtype == torch.uint8


def test_the_last_ones_are_kept(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path, keep=2)
    for number in range(5):
        store.save(make(number))
    assert store.numbers() == [4, 5]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["000004", "000005"]
    assert number_of(store.newest()[0]) == 4


def damage(path: Path, how: str) -> None:
    data = path.read_bytes()
    match how:
        case "truncated":
            path.write_bytes(data[: len(data) // 2])
        case "zeroed":
            path.write_bytes(bytes(len(data)))
        case "flipped":
            path.write_bytes(bytes([*data[:-3], data[-3] ^ 1, *data[-2:]]))
        case "pipe":
            path.unlink()
            os.mkfifo(path)
        case _:
            path.unlink()


@pytest.mark.parametrize("how", ["truncated", "zeroed", "flipped", "missing", "pipe"])
@pytest.mark.parametrize("name", [STATE, TENSORS, RECORDS, CHECKSUMS])
def test_a_damaged_one_is_named_and_the_one_before_it_is_used(
    tmp_path: Path, name: str, how: str
) -> None:
    store = Checkpoints(tmp_path, keep=3)
    store.save(make(1))
    newest = store.save(make(2))
    damage(newest / name, how)
    with pytest.raises(UserError):
        read_checkpoint(newest)
    found, problems = store.newest()
    assert number_of(found) == 1
    assert len(problems) == 1
    assert str(newest) in problems[0]
    assert store.numbers() == [1]
    assert (tmp_path / "broken-000002").is_dir()
    store.save(make(3))
    assert number_of(store.newest()[0]) == 3


@pytest.mark.parametrize("stop_at", range(1, 12))
def test_a_save_that_is_cut_short_anywhere_leaves_the_old_or_the_new(
    tmp_path: Path, stop_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Checkpoints(tmp_path, keep=1)
    store.save(make(1))
    calls = 0

    class CutError(Exception):
        pass

    def counted(real):
        def run(*arguments, **options):
            nonlocal calls
            calls += 1
            if calls == stop_at:
                raise CutError
            return real(*arguments, **options)

        return run

    monkeypatch.setattr(module.os, "fsync", counted(os.fsync))
    monkeypatch.setattr(module.os, "replace", counted(os.replace))
    monkeypatch.setattr(module.shutil, "rmtree", counted(module.shutil.rmtree))
    try:
        store.save(make(2))
    except CutError:
        cut = True
    else:
        cut = False
    monkeypatch.undo()
    assert cut or stop_at > 11
    found, problems = store.newest()
    assert number_of(found) in (1, 2)
    assert not problems
    store.remove_leftovers()
    store.save(make(3))
    assert store.numbers()[-1:] == [max(store.numbers())]
    assert number_of(store.newest()[0]) == 3
    assert len(list(tmp_path.iterdir())) == 1  # what was left half done is gone


def test_leftovers_of_a_kill_go_and_nothing_else(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path, keep=2)
    store.save(make(1))
    (tmp_path / ".unfinished-000002").mkdir()
    (tmp_path / ".unfinished-000002" / TENSORS).write_bytes(b"half")
    (tmp_path / "broken-000003").mkdir()
    store.remove_leftovers()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["000001", "broken-000003"]


def test_a_folder_that_was_deleted_does_not_come_back(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Checkpoints(tmp_path / "gone" / "checkpoints", keep=2).save(make(1))
    assert not (tmp_path / "gone").exists()


def test_prefixes() -> None:
    tensors = {name: torch.ones(1) for name in ("net/a", "net/b/c", "network/a")}
    assert set(under("net", tensors)) == {"a", "b/c"}


def test_other_folders_are_no_checkpoints(tmp_path: Path) -> None:
    store = Checkpoints(tmp_path, keep=3)
    store.save(make(1))
    for name in ("٣", "2", "0000002", "9" * 40):
        (tmp_path / name).mkdir()
    assert store.numbers() == [1]
    assert number_of(store.newest()[0]) == 1


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "nothing", '{"format":"other"}'])
def test_a_state_that_is_none(tmp_path: Path, text: str) -> None:
    path = Checkpoints(tmp_path / "checkpoints", keep=1).save(make(1))
    (path / STATE).write_text(text)
    sums = {
        name: hashlib.sha256((path / name).read_bytes()).hexdigest()
        for name in (STATE, TENSORS, RECORDS)
    }
    (path / CHECKSUMS).write_text(json.dumps(sums))
    assert newest_state(tmp_path) in ({}, {"format": "other"})
    with pytest.raises(UserError, match="cannot be used"):
        read_checkpoint(path)
