"""What a person sees of a run, from synthetic records."""

import errno
import io
import os
import re
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from prnas.config import recipes
from prnas.config.retrain import RetrainConfig
from prnas.runs.events import RetrainResult, RunStart, StepEvent, Validating
from prnas.runs.records import BatchRecord, EpochRecord
from prnas.space.change import Added, CellChange, Change, EdgeChange, Pruned
from prnas.space.operations import Conv, Pool, Skip
from prnas.space.pools import CellPools, Pools
from prnas.space.setting import INITIAL_POOL
from prnas.terminal import amounts, columns, cycle_lines, lines
from prnas.terminal.display import Display
from tests.support.synthetic_runs import training_records
from tests.support.synthetic_search import epoch_record, events, play, quick, start_of

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def a_terminal(monkeypatch: pytest.MonkeyPatch, columns: int = 100) -> Terminal:
    """No fixture: pytest sets the streams anew between a test's set-up and the test."""
    made = Terminal()
    monkeypatch.setattr(sys, "stdout", made)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    return made


def seen_in(text: str) -> str:
    """The text without colours, a line for all that the cursor was moved for."""
    return CONTROL.sub("\n", COLOURS.sub("", text))


def every_step() -> Display:
    """A display for which a second passes whenever it looks, so that it shows every step."""
    ticks = count()
    return Display(clock=lambda: float(next(ticks)))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (4.24, "4.2 s"),
        (9.97, "10 s"),
        (59.6, "1 m 0 s"),
        (200, "3 m 20 s"),
        (3599.6, "1 h 0 m"),
        (7_500, "2 h 5 m"),
        (90_000, "1 d 1 h"),
        (-1, "0.0 s"),
        (float("nan"), "?"),
        (float("inf"), "?"),
        (None, "?"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert amounts.duration(seconds) == text


def test_other_amounts() -> None:
    assert [amounts.memory(size) for size in (812e6, 0.9999e9, 1.25e9, float("nan"))] == [
        "812 MB",
        "1.0 GB",
        "1.2 GB",
        "?",
    ]
    assert [amounts.rate(value) for value in (0.025, 0.0, 6e-4)] == ["0.0250", "0.0000", "6e-04"]
    assert [amounts.speed(value) for value in (1234.5, 3.21)] == ["1,234", "3.2"]
    assert [amounts.percent(value) for value in (0.456, 0.9996, None)] == ["45.6 %", "100 %", "-"]


def test_a_log_has_a_line_an_epoch(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = quick()
    play([Display()], config, tmp_path / "run")
    seen = capsys.readouterr()
    assert seen.err == ""
    assert not any(ord(one) < 32 and one != "\n" for one in seen.out)
    lines = seen.out.splitlines()
    epochs = [line for line in lines if re.match(r"cycle \d/9, epoch ", line)]
    assert len(epochs) == config.schedule.num_epochs
    assert epochs[0] == (
        "cycle 1/9, epoch 1/3 (grace): weights 10.0 % (loss 2.3000), "
        "validation 10.0 % (loss 2.5000), lr 0.0250, batch 64, 1,234 images/s, 1.2 GB, 4.5 s, "
        "about 1 m 30 s left"
    )
    assert "architecture 13.5 %" in epochs[1]
    assert "cycle 1/9: 28 pools of 4 (25 % conv, 50 % pool, 25 % skip); 3 epochs (1 grace)" in lines
    # What the percentages are of is said once, before them.
    words = [line.partition(": ")[0] for line in lines[: lines.index(epochs[0])]]
    start = words.index("weights, architecture")
    assert words[start : start + 3] == ["weights, architecture", "validation", "grace"]
    assert sum(line.startswith("batch size 64") for line in lines) == 9
    assert sum(line.startswith("  normal: pruned") for line in lines) == 9
    assert all(line == line.rstrip() for line in lines)
    assert "conv 7x7 ×[1] of B1" in seen.out
    assert str(tmp_path / "run") in seen.out
    assert re.search(r"validation +67.0 %", seen.out)
    assert "3 m 20 s" in seen.out


def play_training(display: Display, folder: Path | None = None, epochs: int = 3) -> None:
    """Tell a display of a whole training, the first epoch of which is not tested."""
    config = RetrainConfig.from_data(
        recipes.any_recipe("retrain-quick").to_data(), [f"training.epochs={epochs}"]
    )
    start = RunStart(
        config=config,
        folder=folder,
        device="cpu",
        world_size=1,
        num_parameters=64_252,
        train_images=1000,
        resumed=False,
        cycle=1,
        epoch=1,
        macs=1_234_567,
        test_images=300,
    )
    display.on_start(start)
    display.on_batch(BatchRecord(cycle=1, epoch=1, step=1, batch=96, reason="start"))
    records = [one for one in training_records(epochs=epochs) if isinstance(one, EpochRecord)]
    del records[0].scores["test"]
    for record in records:
        step = StepEvent(
            cycle=1,
            epoch=record.epoch,
            step=10,
            grace=False,
            images=960,
            epoch_images=1000,
            lr=record.lr,
            batch=record.batch,
            scores={"training": record.scores["training"]},
            images_per_second=80.0,
            memory=9e8,
            seconds_left=12.5 * (epochs - record.epoch),
        )
        display.on_step(step)
        display.on_validating(Validating(150, 300))
        display.on_epoch(record)
    no_model: Any = None
    result = RetrainResult(no_model, folder, 3, 0.0251, 2, tuple(records), 64_252, 1_234_567, 37.5)
    display.on_end(result)
    display.close()


def test_a_training_in_a_log(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    play_training(Display(), tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == [
        "training on digits: 1,000 images, 300 to test, 3 epochs, seed 0",
        "cpu; network of 64,252 parameters, 1.2 million multiply-accumulates an image",
        f"run folder {tmp_path}",
        "batch size 96 (initial): epoch 1, step 1",
    ]
    assert lines[4:7] == [
        "epoch 1/3: training 53.0 % (loss 1.5000), lr 0.0167, batch 96, 80 images/s, 900 MB, 12 s, "
        "about 25 s left",
        "epoch 2/3: training 69.4 % (loss 1.0000), test error 25.63 % (loss 1.0333), lr 0.0083, "
        "batch 96, 80 images/s, 900 MB, 12 s, about 12 s left",
        "epoch 3/3: training 84.7 % (loss 0.5000), test error 10.32 % (loss 0.6000), lr 0.0000, "
        "batch 96, 80 images/s, 900 MB, 12 s",
    ]
    end = "\n".join(lines[7:])
    assert "test error  2.51 % (mean of the last 2 epochs)" in end
    assert "model: the trained model" in end
    assert f"next: prnas evaluate {tmp_path}" in end


def test_one_training_of_several_has_a_title_and_no_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    play_training(Display(title="run 2 of 3"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("run 2 of 3: training on digits")
    assert lines[-1].startswith("epoch 3/3: ")


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_training_in_a_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch, columns)
    ticks = count()
    play_training(Display(title="run 2 of 3", clock=lambda: float(next(ticks))))
    plain = seen_in(terminal.getvalue())
    assert max(map(len, plain.splitlines())) <= columns
    assert ("epoch    loss  training  test error      lr   img/s" in plain) == (columns == 80)
    assert ("epoch    loss  training  test error      lr  batch   img/s" in plain) == (columns > 80)
    assert "run 2 of 3: epoch 1/3  step 10\n" in plain
    assert "150/300 tested" in plain
    assert "loss 1.5000  accuracy 53.0 %  lr" in plain
    assert "cycle" not in plain
    rows = [line for line in plain.splitlines() if re.match(r" +\d/3 .* s$", line)]
    assert len(rows) == 3
    assert " - " in rows[0]
    assert "10.32 %" in rows[2]


@pytest.mark.parametrize(
    ("cycle", "epoch", "said", "heads"),
    [(3, 2, "resumed at cycle 3, epoch 2", 1), (9, 3, "resumed at cycle 9, its end", 0)],
)
def test_resuming(
    cycle: int, epoch: int, said: str, heads: int, capsys: pytest.CaptureFixture[str]
) -> None:
    start = start_of(quick(), None, resumed=True, cycle=cycle, epoch=epoch, world_size=2)
    Display().on_start(start)
    seen = capsys.readouterr().out
    assert said in seen
    assert "cpu, 2 processes" in seen
    assert seen.count("pools of") == heads


def test_a_log_is_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="utf-8", write_through=False))
    display = Display()
    display.on_start(start_of(quick(), None))
    display.on_epoch(epoch_record(quick(), 0, 0))
    assert b"epoch 1/3" in raw.getvalue()


def test_quiet_shows_only_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    display = Display(quiet=True)
    display.on_message("careful")
    play([display])
    seen = capsys.readouterr()
    assert seen.err == "note: careful\n"
    assert seen.out.lstrip().startswith("normal cell")


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 120, 200])
def test_terminals_of_any_width(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch, columns)
    display = every_step()
    play([display])
    assert sys.stdout is terminal  # the live view gave it back
    text = terminal.getvalue()
    plain = seen_in(text)
    assert max(map(len, plain.splitlines())) <= columns
    assert plain.count("epoch    loss  weights    arch") == (9 if columns >= 60 else 0)
    assert plain.count("  valid      lr  batch") == (9 if columns >= 80 else 0)
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1  # the cursor is back
    assert "validated" in plain
    assert "about 1 m" in plain or columns < 60


def test_a_terminal_keeps_a_row_for_each_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    play([every_step()])
    plain = seen_in(terminal.getvalue())
    rows = [line for line in plain.splitlines() if re.match(r" +\d/\d .* s$", line)]
    assert len(rows) == quick().schedule.num_epochs
    assert len({len(row) for row in rows}) == 1
    assert "next: " not in plain  # nothing was written


def test_the_next_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "my run"
    folder.mkdir()
    for name in ("genotype.json", "records.jsonl", "own.txt", ".lock"):
        (folder / name).touch()
    terminal = a_terminal(monkeypatch, columns=300)
    play([Display()], folder=folder)
    plain = seen_in(terminal.getvalue())
    assert f"next: prnas retrain '{folder}'" in plain
    assert "genotype.json: the cells" in plain
    assert "own.txt" in plain
    assert ".lock" not in plain


def test_dumb_terminals_get_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    play([Display()], cycles=1)
    assert "\x1b" not in terminal.getvalue()
    assert "cycle 1/9, epoch 3/3" in terminal.getvalue()


def test_names_cannot_drive_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    display = Display()
    display.on_message("\x1b]0;before\a")
    config = quick('data.name="\\e[31mred\\e]0;title\\a"')
    display.on_start(start_of(config, Path("a\x1b]0;folder\a"), device="\x1b]0;device\a"))
    display.on_message("bad \x1b]0;message\a")
    display.close()
    text = terminal.getvalue()
    assert "\\x1b]0;message\\x07" in CONTROL.sub("", text).replace("\n", "")
    assert "\x1b]0;" not in text
    assert "\x1b[31m" not in text


def test_numbers_that_are_none() -> None:
    nan = float("nan")
    start, record = start_of(quick(), None), epoch_record(quick(), 0, 1)
    scores = {"weights": record.scores["weights"]}
    record = epoch_record(quick(), 0, 1, scores=scores, images_per_second=nan, memory=nan)
    sentence = lines.sentence(start, record, nan)
    assert sentence.count("?") == 3
    assert "architecture" not in sentence
    assert columns.row(columns.columns_for(start, 200), record, 3).split().count("-") == 2


def test_memory_that_ran_out_is_told_in_terminals_too(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    display = Display()
    display.on_start(start_of(quick(), None))
    for batch, reason in ((64, "memory"), (32, "out-of-memory")):
        record = BatchRecord.model_validate(
            {"cycle": 1, "epoch": 1, "step": 4, "batch": batch, "reason": reason}
        )
        display.on_batch(record)
    display.close()
    assert "batch size 64" not in terminal.getvalue()
    assert "batch size 32 (memory ran out)" in terminal.getvalue()


class Failing(io.StringIO):
    """A stream that fails after some lines."""

    def __init__(self, error: int, after: int, tty: bool) -> None:
        super().__init__()
        self.error, self.left, self.tty = error, after, tty

    def isatty(self) -> bool:
        return self.tty

    def write(self, text: str) -> int:
        self.left -= 1
        if self.left < 0:
            raise OSError(self.error, os.strerror(self.error))
        return super().write(text)


@pytest.mark.parametrize("tty", [False, True])
@pytest.mark.parametrize("after", [0, 1, 5, 50, 200])
def test_a_lost_terminal_or_full_disk_does_not_stop_the_search(
    after: int, tty: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Failing(errno.EIO if tty else errno.ENOSPC, after, tty)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("TERM", "xterm")
    play([every_step()])
    assert sys.stdout is stream


def test_a_reader_that_left_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Failing(errno.EPIPE, 5, False))
    with pytest.raises(BrokenPipeError):
        play([Display()])


def one_node(first: EdgeChange, second: EdgeChange) -> tuple[Change, Pools]:
    change = Change(CellChange((first, second)), CellChange((EdgeChange(), EdgeChange())))
    return change, Pools(*[CellPools.initial(1, INITIAL_POOL)] * 2).apply(change)


def test_the_end_of_a_cycle_in_words() -> None:
    added = Added(Conv(5), Conv(3), "grow kernel", 0.5, 0.25)
    change, pools = one_node(
        EdgeChange((Pruned(Pool("avg"), 0.1), Pruned(Skip(), 0.1)), (added,)),
        EdgeChange((Pruned(Skip(), 0.1),)),
    )
    assert cycle_lines.ending(change, pools) == [
        (
            "normal",
            [
                "pruned 3: 2 skip, 1 avg 3x3",
                "new 1: 1 conv 5x5 (grow kernel)",
                "now 50 % conv, 50 % pool, 0 % skip; similarity 0.49",
            ],
        ),
        ("reduction", ["now 25 % conv, 50 % pool, 25 % skip; similarity 0.33"]),
    ]
    assert cycle_lines.pools_in_short(pools).startswith("4 pools of 3 to 4 (")


def test_long_lists_are_cut() -> None:
    for name, event in events(quick("space=unrestricted"), None, 4):
        if name == "on_cycle":
            for _, lines in cycle_lines.ending(Change.from_json(event[0].change), event[1]):
                assert all(line.count(",") <= 2 * cycle_lines.MOST_NAMED for line in lines)
