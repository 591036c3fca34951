"""The accuracies of all cells, in the file `table.bin`: read when first needed, and checked.

The file is compressed by zlib. In it is, for each of the `COLUMNS`, the lowest byte of every cell's
number, then the middle bytes, then the highest; cells are in the order of their indices. A number
is an accuracy in thousandths of a per cent. `python -m benchmarks.pack_nasbench201` writes it.
"""

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from prnas.io.errors import UserError
from prnas.space.nasbench201.cells import NUM_CELLS

UNITS = 1000  # units of a per cent
COLUMNS = (
    *("e200_test_c10", "e200_test_c100", "e200_test_in16"),
    *("e200_val_c10", "e200_val_c100", "e200_val_in16"),
    *("e12_val_c10", "e12_test_c10", "e12_val_c100"),
    *("e12_test_c100", "e12_val_in16", "e12_test_in16"),
)
# SHA-256 of the unpacked table.
CHECKSUM = "6e9c890b105a878027cc06d2f3f4cba802e37ef3a41b6e4b1d91fcd67db8c874"
_SIZE = 3 * NUM_CELLS * len(COLUMNS)


def packed(numbers: Mapping[str, Sequence[int]]) -> bytes:
    """The file's bytes, from a number for each cell in every column."""
    planes = (
        bytes(v >> bits & 255 for v in numbers[name]) for name in COLUMNS for bits in (0, 8, 16)
    )
    return zlib.compress(b"".join(planes), 9)


def checked(file: bytes) -> bytes:
    """The bytes within a file, if they are those of the table; else a `UserError`."""
    unzipper = zlib.decompressobj()
    try:
        data = unzipper.decompress(file, _SIZE + 1)
    except zlib.error:
        data = b""
    if hashlib.sha256(data).hexdigest() != CHECKSUM:
        raise UserError("the table of NAS-Bench-201 is damaged; install prnas again")
    return data


@cache
def column(name: str) -> tuple[int, ...]:
    """A number for each cell, by its index: accuracies in thousandths of a per cent."""
    start = 3 * NUM_CELLS * COLUMNS.index(name)
    low, middle, high = (
        _data()[start + plane * NUM_CELLS : start + (plane + 1) * NUM_CELLS] for plane in range(3)
    )
    return tuple(a + 256 * b + 65536 * c for a, b, c in zip(low, middle, high, strict=True))


@cache
def _data() -> bytes:
    return checked((files("prnas.space.nasbench201") / "table.bin").read_bytes())
