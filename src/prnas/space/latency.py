"""A table of measured latencies: what each operation takes on a device, in a final network.

`prnas latency` measures it. The latency of a network by the table is the sum over its operations,
and what stands around them; no more than an approximation, since a device may overlap work, and
caches know what came before.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, TypeAdapter

from prnas.io.errors import reading
from prnas.io.reading import check_header, parse_json, validated
from prnas.io.text import read_text
from prnas.space.checks import STRICT
from prnas.space.final_network import FinalNetwork
from prnas.space.layer_size import Pixels
from prnas.space.operations import Operation, Zero

FORMAT, VERSION = "prnas-latency", 1
Nanoseconds = Annotated[int, Field(ge=0, le=10**15)]


def key(op: Operation, channels: int, pixels: Pixels, stride: int) -> str:
    """An operation in its place, as tables name it: 'conv 3x3 @ 36x32x32 /2'."""
    height, width = pixels
    return f"{op.label} @ {channels}x{height}x{width} /{stride}"


@dataclass(frozen=True, slots=True)
class LatencyTable:
    """Nanoseconds of operations by `key`, and of what is around them in a network of this size."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    network: FinalNetwork
    around: Nanoseconds
    operations: dict[str, Nanoseconds]
    device: str = ""

    def of(self, op: Operation, channels: int, pixels: Pixels, stride: int) -> int:
        """The latency of an operation that reads `pixels`; a `KeyError` if it was not measured."""
        return 0 if isinstance(op, Zero) else self.operations[key(op, channels, pixels, stride)]

    def to_json(self) -> dict[str, Any]:
        return _ADAPTER.dump_python(self, mode="json")


@dataclass(frozen=True, slots=True)
class Measured:
    """A measurement behind a table's number: median and quartiles in nanoseconds, for people."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    repeats: int
    median: Nanoseconds
    lower_quartile: Nanoseconds
    upper_quartile: Nanoseconds


@dataclass(frozen=True, slots=True)
class Check:
    """A whole network, measured, and what the table says of it, in nanoseconds."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    measured: Nanoseconds
    by_table: Nanoseconds


@dataclass(frozen=True, slots=True)
class LatencyFile:
    """A table as `prnas latency` writes it, with how it was measured."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    table: LatencyTable
    environment: dict[str, str]
    measured: dict[str, Measured]
    checks: Annotated[tuple[Check, ...], Field(strict=False)] = ()

    def to_json(self) -> dict[str, Any]:
        data = _FILE_ADAPTER.dump_python(self, mode="json")
        return {"format": FORMAT, "version": VERSION, **data}


_ADAPTER: TypeAdapter[LatencyTable] = TypeAdapter(LatencyTable)
_FILE_ADAPTER: TypeAdapter[LatencyFile] = TypeAdapter(LatencyFile)


def dumps(file: LatencyFile) -> str:
    """JSON text, with a line for each operation."""
    data = file.to_json()
    measured, table = data.pop("measured"), data["table"]
    operations = table.pop("operations")
    lines = ",\n".join(f"   {json.dumps(name)}: {time}" for name, time in operations.items())
    rows = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(timing)}" for name, timing in measured.items()
    )
    head = json.dumps(table, ensure_ascii=False).removesuffix("}")
    rest = "".join(
        f" {json.dumps(name)}: {json.dumps(data[name], ensure_ascii=False)},\n"
        for name in data
        if name != "table"
    )
    return (
        f'{{\n{rest} "table": {head}, "operations": {{\n{lines}\n  }}}},\n'
        f' "measured": {{\n{rows}\n }}\n}}\n'
    )


def read_latency_file(path: Path) -> LatencyFile:
    """A file that `prnas latency` wrote; a `UserError` names what is wrong with it."""
    with reading(path):
        data = check_header(parse_json(read_text(path)), FORMAT, VERSION)
        return validated(_FILE_ADAPTER, data, "latencies")


def _table(value: Any) -> Any:
    """A table may be given as the file that holds it."""
    if isinstance(value, str):
        return read_latency_file(Path(value)).table
    return value


# A table as a field of another value: plain data, or the path of a file.
LatencyField = Annotated[
    LatencyTable, BeforeValidator(_table), PlainSerializer(LatencyTable.to_json)
]
