"""A run's files are damaged, rotated, moved or deleted: it is told, mended, and never believed."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from prnas.commands.options import ReportOptions
from prnas.commands.report import run as report
from prnas.config.search import SearchConfig
from prnas.io.errors import UserError
from prnas.report.read_run import read_view
from prnas.retraining import seeds
from prnas.runs import checkpoint
from prnas.runs.checkpoint import Checkpoint, Checkpoints
from prnas.runs.folder import RunFolder
from prnas.runs.named import genotype_and_data
from prnas.runs.names import DECISIONS
from prnas.searching.api import resume, start
from prnas.space.genotype import Genotype
from prnas.space.operations import Skip
from tests.support.settings import small_config, small_training
from tests.support.watching import Watch, assert_same_run, stopped


@pytest.mark.parametrize("damage", ["flipped", "gone", "shortened"])
def test_damaged_records_are_told_kept_and_written_anew(
    images: Path, tmp_path: Path, damage: str, reference: Path
) -> None:
    folder = stopped(images, tmp_path, at=9)
    path = folder / "records.jsonl"
    text = path.read_text()
    changed = text.replace('"grace":true', '"grace":false', 1)
    if damage == "gone":
        # Without the file it is no run's folder; an empty one is what a rotation leaves.
        changed = ""
    elif damage == "shortened":
        changed = text[:-20]
    assert changed != text
    path.write_text(changed)
    with pytest.raises(UserError, match=r"records\.jsonl is damaged"):
        read_view(folder)
    watch = Watch()
    assert resume(folder, callbacks=[watch]).genotype
    assert [one for one in watch.messages if "records.jsonl was damaged" in one]
    assert (folder / "damaged-records.jsonl").read_text() == changed
    assert_same_run(folder, reference)


@pytest.mark.parametrize("how", ["rotated", "truncated", "appended"])
def test_records_that_another_program_touches_are_mended_under_way(
    images: Path, tmp_path: Path, how: str, reference: Path
) -> None:
    path = tmp_path / "a" / "records.jsonl"

    def touch() -> None:
        if how == "rotated":
            path.rename(path.with_name("records.jsonl.1"))
        elif how == "truncated":
            path.write_bytes(b"")
        else:
            with path.open("ab") as file:
                file.write(b"a foreign line\n")

    watch = Watch(9, touch)
    start(small_config(images), runs=tmp_path, name="a", callbacks=[watch])
    assert [one for one in watch.messages if "by another program" in one]
    assert_same_run(path.parent, reference)


@pytest.mark.parametrize("how", ["deleted", "moved", "replaced"])
def test_a_folder_that_goes_away_under_a_run(images: Path, tmp_path: Path, how: str) -> None:
    folder, other = tmp_path / "a", tmp_path / "b"

    def act() -> None:
        if how == "deleted":
            shutil.rmtree(folder)
        else:
            folder.rename(other)
        if how == "replaced":
            folder.mkdir()
            (folder / "records.jsonl").write_text("mine")

    with pytest.raises(UserError, match="is no longer there: it was moved or deleted"):
        start(small_config(images), runs=tmp_path, name="a", callbacks=[Watch(9, act)])
    if how == "replaced":
        assert [one.name for one in folder.iterdir()] == ["records.jsonl"]
        assert (folder / "records.jsonl").read_text() == "mine"
    else:
        assert not folder.exists()
    if how != "deleted":
        assert resume(other).genotype


def test_a_folder_that_goes_away_in_the_midst_of_a_checkpoint(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, save = tmp_path / "a", Checkpoints.save

    def moved_away(self: Checkpoints, checkpoint: Checkpoint) -> None:
        folder.rename(tmp_path / "b")
        save(self, checkpoint)

    monkeypatch.setattr(Checkpoints, "save", moved_away)
    with pytest.raises(UserError, match="is no longer there: it was moved or deleted"):
        start(small_config(images), runs=tmp_path, name="a")
    assert not folder.exists()


@pytest.mark.parametrize(("problem", "number"), [(errno.ENOSPC, 11), (errno.EROFS, 2)])
def test_a_disk_that_takes_no_more_is_told_and_the_run_goes_on(
    images: Path,
    tmp_path: Path,
    reference: Path,
    monkeypatch: pytest.MonkeyPatch,
    problem: int,
    number: int,
) -> None:
    calls, write = 0, checkpoint._write_synced

    def until_full(path: Path, data: bytes) -> None:
        nonlocal calls
        calls += 1
        if calls >= number:
            raise OSError(problem, os.strerror(problem), str(path))
        write(path, data)

    monkeypatch.setattr(checkpoint, "_write_synced", until_full)
    with pytest.raises(UserError, match=f"cannot save a checkpoint .*{os.strerror(problem)}"):
        start(small_config(images), runs=tmp_path, name="a")
    monkeypatch.undo()
    resume(tmp_path / "a")
    assert_same_run(tmp_path / "a", reference)


def test_only_one_gets_a_runs_folder(tmp_path: Path) -> None:
    first = RunFolder.create(tmp_path, "a", "r", SearchConfig(), {})
    with pytest.raises(UserError, match="another process is running in"):
        RunFolder.open(first.path, first.config, {})
    first.close()
    RunFolder.open(first.path, first.config, {}).close()


def test_a_damaged_genotype_is_noticed_and_mended(
    images: Path, tmp_path: Path, reference: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(reference, folder)
    whole = (folder / "genotype.json").read_text()
    cells, _ = genotype_and_data(str(folder))
    assert cells.dumps() == whole
    changed = cells.to_json()
    edge = changed["normal"]["nodes"][0][0]
    edge["op"] = "max 3x3" if cells.normal.nodes[0][0].op == Skip() else "skip"
    (folder / "genotype.json").write_text(Genotype.from_json(changed).dumps())
    for use in (genotype_and_data, lambda name: read_view(Path(name).parent)):
        with pytest.raises(UserError, match=r"genotype\.json is damaged"):
            use(str(folder / "genotype.json"))
    with pytest.raises(UserError, match=r"genotype\.json is damaged"):
        genotype_and_data(str(folder))
    resume(folder)
    assert (folder / "genotype.json").read_text() == whole


def test_a_damaged_config_is_noticed_where_a_run_is_used(tmp_path: Path, reference: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(reference, folder)
    path = folder / "config.yaml"
    path.write_text(path.read_text().replace("seed: 1", "seed: 3", 1))
    for use in (genotype_and_data, lambda name: read_view(Path(name))):
        with pytest.raises(UserError, match=r"config\.yaml was changed or damaged"):
            use(str(folder))


OWN = (
    *("records.jsonl", "environment.json", "genotype.json", "batch-decisions.jsonl", "report.html"),
    *("checkpoints", "checkpoints/000001", "checkpoints/000001/state.json", "model"),
)


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_nothing_is_written_through_a_link_or_a_pipe(
    tmp_path: Path, reference: Path, name: str, kind: str
) -> None:
    folder, outside = tmp_path / "run", tmp_path / "outside"
    shutil.copytree(reference, folder)
    if name == "checkpoints/000001":  # whichever is there
        name = str(min((folder / "checkpoints").iterdir()).relative_to(folder))
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    if path.is_dir():
        path.rename(outside)
    else:
        path.unlink(missing_ok=True)
        outside.write_text("precious")
    path.symlink_to(outside) if kind == "link" else os.mkfifo(path)
    before = {one: one.stat().st_mtime_ns for one in [outside, *outside.rglob("*")]}
    with pytest.raises(UserError, match=r"is not a run's folder|is a link, or no plain file"):
        resume(folder)
    assert {one: one.stat().st_mtime_ns for one in [outside, *outside.rglob("*")]} == before


def test_what_lies_beside_a_runs_files_is_left_alone(tmp_path: Path, reference: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(reference, folder)
    (folder / "notes").symlink_to(tmp_path)
    assert resume(folder).genotype


@pytest.mark.parametrize("name", ["batch-decisions.jsonl", "records.jsonl"])
def test_a_file_too_large_to_be_true_is_not_read(
    tmp_path: Path, reference: Path, name: str
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(reference, folder)
    if name == "records.jsonl":
        shutil.rmtree(folder / "checkpoints")
    os.truncate((folder / name), 2**40)
    with pytest.raises(UserError, match=f"cannot read .*{name}: File too large"):
        resume(folder)


def test_a_report_replaces_a_pipe(tmp_path: Path, reference: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(reference, folder)
    page = folder / "report.html"
    page.unlink(missing_ok=True)
    os.mkfifo(page)
    report([folder], ReportOptions(as_json=True))
    assert page.is_file()


def test_damaged_decisions_about_the_batch_do_not_count(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "a", "r", SearchConfig(), {})
    folder.log_decision("0/0/8/check", 16)
    folder.log_decision("0/0/16/check", 32)
    assert folder.batch_decisions() == {"0/0/8/check": [16], "0/0/16/check": [32]}
    path = folder.path / DECISIONS
    path.write_text(path.read_text().replace(", 32,", ", 33,"))
    assert folder.batch_decisions() == {"0/0/8/check": [16]}
    folder.close()


@pytest.mark.parametrize(
    ("name", "old", "new"), [("config.yaml", "epochs: 4", "epochs: 5"), ("group.json", "2]", "3]")]
)
def test_a_changed_group_of_seeds_is_noticed(
    images: Path, tmp_path: Path, name: str, old: str, new: str
) -> None:
    folder = seeds._created(small_training(images), [1, 2], tmp_path, "a", "r")
    path = folder / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(UserError, match="was changed or damaged"):
        seeds.resume_seeds(folder, watchers=lambda number, of: [])
