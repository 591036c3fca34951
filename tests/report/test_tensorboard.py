import struct
from pathlib import Path
from typing import Any

import pytest

from prnas.report import tensorboard
from prnas.report.default_callbacks import TensorboardCallback, with_default_callbacks
from prnas.report.tensorboard import TensorboardWriter, cycle_scalars
from prnas.runs.record_lines import to_line
from prnas.runs.record_versions import header_line
from prnas.runs.records import CycleRecord
from tests.support.synthetic_search import epoch_record, events, play, quick, start_of

proto = pytest.importorskip("tensorboardX.proto.event_pb2")
Points = dict[str, list[tuple[int, float]]]


def read_events(path: Path) -> list[Any]:
    """The events of a file in TFRecord framing: length, checksum, data, checksum."""
    raw, found, place = path.read_bytes(), [], 0
    while place < len(raw):
        (length,) = struct.unpack_from("<Q", raw, place)
        start = place + 12
        found.append(proto.Event.FromString(raw[start : start + length]))
        place = start + length + 4
    assert place == len(raw)
    return found


def read_points(folder: Path) -> Points:
    """What TensorBoard shows of a folder: files by name, each session dropping what it redoes."""
    points: Points = {}
    for path in sorted(folder.iterdir()):
        for event in read_events(path):
            if event.HasField("session_log"):
                for tag, known in points.items():
                    points[tag] = [one for one in known if one[0] < event.step]
            for value in event.summary.value:
                points.setdefault(value.tag, []).append((event.step, value.simple_value))
    return {tag: known for tag, known in points.items() if known}


def test_a_whole_search(tmp_path: Path) -> None:
    config = quick()
    play([TensorboardCallback()], config, tmp_path)
    points = read_points(tmp_path / "tensorboard")
    epochs = list(range(1, config.schedule.num_epochs + 1))
    for tag in (
        *("loss/weights", "accuracy/weights", "loss/validation", "accuracy/validation"),
        *("schedule/lr", "batch/size", "speed/seconds", "speed/images_per_second"),
        *("speed/memory", "seconds/architecture"),
    ):
        assert [step for step, _ in points[tag]] == epochs, tag
    assert [step for step, _ in points["accuracy/architecture"]][:3] == [2, 3, 5]  # no grace
    assert points["schedule/lr"][0][1] == pytest.approx(0.025)
    ends = [3, 6, 8, 10, 12, 14, 16, 18, 20]
    for place in ("average", "normal", "reduction", "normal_edges/00", "reduction_edges/13"):
        for name in ("types/conv", "types/skip", "num_discovered", "num_candidates"):
            assert [step for step, _ in points[f"{place}/{name}"]] == ends
        assert len(points[f"{place}/parent_probability"]) == 5  # of the cycles that add children
        assert len(points[f"{place}/similarity"]) == 9
        assert points[f"{place}/kernels/3"]
    assert points["average/discoverable"][0] == (3, 15.0)
    assert [step for step, _ in points["batch/changed"]] == [1, *(end + 1 for end in ends[:-1])]
    assert not any(" " in tag for tag in points)


def test_a_resumed_run_has_no_point_twice(tmp_path: Path) -> None:
    config = quick()
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    play([TensorboardCallback()], config, whole)
    play([TensorboardCallback()], config, torn, cycles=3)  # killed here, saved before:
    resumed = TensorboardCallback()
    with (torn / "records.jsonl").open("w") as records:
        records.write(header_line())
        on = False
        for name, event in events(config, torn):
            if name == "on_start":
                continue
            if on:
                getattr(resumed, name)(*event)
            elif name in ("on_epoch", "on_batch", "on_cycle"):
                records.write(to_line(event[0]))
                if name == "on_cycle" and event[0].cycle == 2:
                    records.flush()
                    resumed.on_start(start_of(config, torn, resumed=True, cycle=3))
                    on = True
    resumed.close()
    resumed.close()  # twice does no harm
    assert len(list((torn / "tensorboard").iterdir())) == 2
    assert read_points(torn / "tensorboard") == read_points(whole / "tensorboard")


def test_what_was_told_is_on_disk_at_once(tmp_path: Path) -> None:
    callback = TensorboardCallback()
    callback.on_start(start_of(quick(), tmp_path))
    callback.on_epoch(epoch_record(quick(), 0, 0))
    assert read_points(tmp_path / "tensorboard")["loss/weights"] == [(1, pytest.approx(2.3))]
    callback.close()


def test_files_of_one_second_do_not_overwrite_each_other(tmp_path: Path) -> None:
    for _ in range(3):
        TensorboardWriter(tmp_path).close()
    names = [path.name for path in sorted(tmp_path.iterdir())]
    assert len(names) == 3


def test_numbers_that_are_missing(tmp_path: Path) -> None:
    writer = TensorboardWriter(tmp_path)
    statistics = {"average": {"similarity": None, "num_discovered": 3.0}, "discoverable": None}
    record = CycleRecord(
        cycle=1, pools={}, architecture_weights={}, change={}, statistics=statistics
    )
    writer.write(cycle_scalars(record), 3)
    writer.close()
    assert read_points(tmp_path) == {"average/num_discovered": [(3, 3.0)]}


def test_without_tensorboardx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorboard.importlib.util, "find_spec", lambda name: None)
    callbacks = with_default_callbacks([])
    assert not any(isinstance(one, TensorboardCallback) for one in callbacks)


def test_a_search_without_a_folder_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    play([TensorboardCallback()], cycles=1)
    assert list(tmp_path.iterdir()) == []
