import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.io.errors import FormatError
from prnas.runs.record_lines import from_line, read_records, to_line
from prnas.runs.record_versions import header_line
from prnas.runs.records import BatchRecord, CycleRecord, EpochRecord, GenotypeRecord, Record
from prnas.space import zoo
from prnas.space.change import Change
from prnas.space.genotype import Genotype
from tests.support.old_runs import as_version_1
from tests.support.synthetic_search import epoch_record, events, quick
from tests.support.watching import without_varying


def some_records() -> list[Record]:
    found = [event[0] for _, event in events(quick(), None, 2)]
    records: list[Record] = [
        one for one in found if isinstance(one, EpochRecord | CycleRecord | BatchRecord)
    ]
    genotype = zoo.get("darts-v1").to_json()
    return [*records, GenotypeRecord(genotype=genotype)]


def test_records_come_back(tmp_path: Path) -> None:
    records = some_records()
    assert {one.type for one in records} == {"epoch", "batch", "cycle", "genotype"}
    for record in records:
        line = to_line(record)
        assert line.count("\n") == 1
        assert from_line(line) == record
    path = tmp_path / "records.jsonl"
    path.write_text(header_line() + "".join(map(to_line, records)))
    assert list(read_records(path)) == records
    path.write_text("".join(to_line(record, 1) for record in records))
    assert list(read_records(path)) == records
    assert isinstance(last := records[-1], GenotypeRecord)
    assert Genotype.from_json(last.genotype) == zoo.get("darts-v1")
    cycle = next(one for one in records if isinstance(one, CycleRecord))
    Change.from_json(cycle.change)


def real_lines() -> list[str]:
    """Records as a search and a training wrote them in version 1 of the format."""
    path = Path(__file__).with_name("records_of_real_runs.jsonl")
    return path.read_text(encoding="utf-8").splitlines(keepends=True)


def test_lines_of_real_runs_come_back_to_the_byte() -> None:
    lines = real_lines()
    records = [from_line(line, 1) for line in lines]
    assert [to_line(record, 1) for record in records] == lines
    newer = [to_line(record) for record in records]
    assert [from_line(line) for line in newer] == records
    assert [as_version_1(json.loads(line)) for line in newer] == [json.loads(x) for x in lines]
    types = ("epoch", "batch", "cycle", "genotype", "training", "trained")
    assert {record.type for record in records} == set(types)
    epochs = [record for record in records if isinstance(record, EpochRecord)]
    assert {(record.type, *record.scores) for record in epochs} == {
        ("epoch", "weights"),  # a grace epoch without validation
        ("epoch", "weights", "architecture", "validation"),
        ("training", "training"),
        ("training", "training", "test"),
    }
    for record in epochs:
        assert sum(record.seconds_for.values()) == pytest.approx(record.seconds)


@pytest.mark.parametrize("kind", ["epoch", "training"])
def test_an_epoch_has_all_fields_of_its_kind_and_no_other(kind: str) -> None:
    lines = [to_line(from_line(line, 1)) for line in real_lines()]
    fields = next(data for line in lines if (data := json.loads(line))["type"] == kind)
    other = {"epoch": "training", "training": "weights"}[kind]
    score = {"loss": 1.0, "accuracy": 0.5, "images": 2}
    wrong = [{**fields, name: score} for name in (other, "scores", "parts")]
    wrong += [{**fields, name: "1"} for name in fields]
    for place in (fields, fields["seconds_for"]):
        for name in list(place):
            value = place.pop(name)
            wrong.append(json.loads(json.dumps(fields)))
            place[name] = value
    for data in wrong:
        with pytest.raises(FormatError):
            from_line(json.dumps(data))
    assert from_line(json.dumps(fields))


def test_counts_start_at_1() -> None:
    old, new = [json.loads(line) for line in real_lines()], []
    for line in real_lines():
        new.append(json.loads(to_line(from_line(line, 1))))
    counts = [
        (then[name], now[name])
        for then, now in zip(old, new, strict=True)
        for name in ("cycle", "epoch", "total_epoch", "step")
        if name in then
    ]
    assert len(counts) > 20
    assert min(counts) == (0, 1)
    assert all(now == then + 1 for then, now in counts)
    batch = {"type": "batch", "cycle": 1, "epoch": 1, "step": 1, "batch": 8, "reason": "start"}
    assert from_line(json.dumps(batch))
    for name in ("cycle", "epoch", "step"):
        with pytest.raises(FormatError, match=name):
            from_line(json.dumps({**batch, name: 0}))
        with pytest.raises(FormatError, match=name):
            from_line(json.dumps({**batch, name: -1}), 1)
        with pytest.raises(FormatError, match=name):
            from_line(json.dumps({**batch, name: True}), 1)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ({"version": 3}, r"line 1: version: 3 is not known; this release reads version 2"),
        ({"version": True}, r"line 1: version: True is not known"),
        ({"version": None}, r"line 1: version: None is not known"),
        ({"format": "other"}, r"line 1: format: must be 'prnas-records', got 'other'"),
    ],
)
def test_another_version_is_called_that(header: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps({**json.loads(header_line()), **header}) + "\n")
    with pytest.raises(FormatError, match=said):
        read_records(path)


def test_a_file_is_of_one_version(tmp_path: Path) -> None:
    path, records = tmp_path / "records.jsonl", some_records()
    lines = [to_line(record) for record in records]
    path.write_text("".join([lines[0], header_line(), *lines[1:]]))
    with pytest.raises(FormatError, match=r"line 2: .*header"):
        read_records(path)
    path.write_text("".join(lines))  # without its header it is of version 1
    with pytest.raises(FormatError, match="seconds_for: unknown key in records of version 1"):
        read_records(path)


def test_a_line_that_is_still_being_written_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    records = some_records()[:2]
    whole = (header_line() + "".join(map(to_line, records))).encode()
    for cut in range(1, len(to_line(records[1]))):
        path.write_bytes(whole[:-cut])
        assert list(read_records(path)) == records[:1]
    path.write_bytes(b"")
    assert list(read_records(path)) == []


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff\xfe",
        b'{"type": "epoch"}',
        b'{"type": "unheard-of"}',
        b'{"type": "batch", "cycle": 1, "epoch": 1, "step": 1, "batch": "8", "reason": "start"}',
        b'{"type": "batch", "cycle": 1, "epoch": 1, "step": 1, "batch": 8, "reason": "whim"}',
        b'{"type": "batch", "cycle": 1, "epoch": 1, "step": 1, "batch": NaN, "reason": "start"}',
        b'{"type": "genotype", "genotype": {}, "more": 1}',
        b'{"type": "genotype", "genotype": {"a": 1, "a": 2}}',
        b'{"type": "genotype", "genotype": {"a": "\\ud800"}}',
        b'{"type": "genotype", "genotype": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"type": "genotype", "genotype": {"a": ' + b"9" * 10_000 + b"}}",
    ],
    ids=lambda line: line[:40].decode(errors="replace"),
)
@pytest.mark.parametrize("version", [1, 2])
def test_hostile_lines_are_named(line: bytes, version: int, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    first = to_line(some_records()[0], version)
    header = header_line() if version == 2 else ""
    path.write_bytes((header + first).encode() + line + b"\n")
    with pytest.raises(FormatError, match=rf"records\.jsonl, line {version + 1}: "):
        list(read_records(path))


@given(st.binary(max_size=200))
def test_no_bytes_give_another_error(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.mktemp("records") / "records.jsonl"
    path.write_bytes(raw + b"\n")
    with pytest.raises(FormatError):
        list(read_records(path))


def test_what_varies_is_left_out() -> None:
    config = quick()
    one = epoch_record(config, 1, 1)
    other = epoch_record(config, 1, 1, seconds=9.0, images_per_second=1.0, memory=2.0)
    assert one != other
    assert without_varying(one) == without_varying(other)
    assert without_varying(one) != without_varying(epoch_record(config, 1, 0))
    assert json.dumps(without_varying(one))
