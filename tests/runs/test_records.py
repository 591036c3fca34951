import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.io.errors import FormatError
from prnas.runs.records import (
    BatchRecord,
    CycleRecord,
    EpochRecord,
    GenotypeRecord,
    Record,
    from_line,
    read_records,
    to_line,
)
from prnas.space import zoo
from prnas.space.change import Change
from prnas.space.genotype import Genotype
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
    path.write_text("".join(map(to_line, records)))
    assert list(read_records(path)) == records
    assert isinstance(last := records[-1], GenotypeRecord)
    assert Genotype.from_json(last.genotype) == zoo.get("darts-v1")
    cycle = next(one for one in records if isinstance(one, CycleRecord))
    Change.from_json(cycle.change)


def test_a_line_that_is_still_being_written_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    records = some_records()[:2]
    whole = "".join(map(to_line, records)).encode()
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
        b'{"type": "batch", "cycle": 0, "epoch": 0, "step": 0, "batch": "8", "reason": "start"}',
        b'{"type": "batch", "cycle": 0, "epoch": 0, "step": 0, "batch": 8, "reason": "whim"}',
        b'{"type": "batch", "cycle": 0, "epoch": 0, "step": 0, "batch": NaN, "reason": "start"}',
        b'{"type": "genotype", "genotype": {}, "more": 1}',
        b'{"type": "genotype", "genotype": {"a": 1, "a": 2}}',
        b'{"type": "genotype", "genotype": {"a": "\\ud800"}}',
        b'{"type": "genotype", "genotype": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"type": "genotype", "genotype": {"a": ' + b"9" * 10_000 + b"}}",
    ],
    ids=lambda line: line[:40].decode(errors="replace"),
)
def test_hostile_lines_are_named(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(to_line(some_records()[0]).encode() + line + b"\n")
    with pytest.raises(FormatError, match=r"records\.jsonl, line 2: "):
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
