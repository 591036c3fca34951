"""How bytes and plain data are spoilt. All of it follows from the generator."""

import copy
import re
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, cast

from torture.fuzzing import odd

_NUMBER = re.compile(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?")
_EXTREMES = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0xFFFF,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**63 - 1,
    2**64 - 1,
)


def flip(data: bytes, random: Random) -> bytes:
    """Some bits turned."""
    spoilt = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8, 64))):
        if spoilt:
            spoilt[random.randrange(len(spoilt))] ^= 1 << random.randrange(8)
    return bytes(spoilt)


def cut(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def drop(data: bytes, random: Random) -> bytes:
    start = random.randrange(len(data) + 1)
    return data[:start] + data[start + random.choice((1, 2, 8, 100)) :]


def insert(data: bytes, random: Random) -> bytes:
    start = random.randrange(len(data) + 1)
    new = random.choice((random.choice(odd.WORDS), random.choice(odd.NUMBERS), random.randbytes(9)))
    return data[:start] + new * random.choice((1, 1, 1, 50)) + data[start:]


def repeat(data: bytes, random: Random) -> bytes:
    start = random.randrange(len(data) + 1)
    piece = data[start : start + random.choice((1, 10, 100))]
    return data[:start] + piece * random.choice((2, 20, 2000)) + data[start:]


def number(data: bytes, random: Random) -> bytes:
    """A number in a text, replaced by one that is out of the ordinary."""
    matches = list(_NUMBER.finditer(data[:200_000]))
    if not matches:
        return flip(data, random)
    match = random.choice(matches)
    return data[: match.start()] + random.choice(odd.NUMBERS) + data[match.end() :]


def word(data: bytes, random: Random) -> bytes:
    """A binary field of 1, 2, 4 or 8 bytes, set to an extreme."""
    size, code = random.choice(((1, "B"), (2, "H"), (4, "I"), (8, "Q")))
    if len(data) < size:
        return data
    start = random.randrange(len(data) - size + 1)
    value = random.choice(_EXTREMES) & (2 ** (8 * size) - 1)
    return data[:start] + struct.pack(random.choice("<>") + code, value) + data[start + size :]


Spoil = Callable[[bytes, Random], bytes]
TEXT: tuple[Spoil, ...] = (flip, cut, drop, insert, repeat, number)
BINARY: tuple[Spoil, ...] = (flip, flip, cut, drop, insert, repeat, word, word)


def spoil(data: bytes, random: Random, ways: Sequence[Spoil], others: Sequence[bytes]) -> bytes:
    """One to three ways after each other; now and then, one file's head, another's tail."""
    if others and random.random() < 0.1:
        other = random.choice(others)
        return data[: random.randrange(len(data) + 1)] + other[random.randrange(len(other) + 1) :]
    for _ in range(random.choice((1, 1, 2, 3))):
        data = random.choice(ways)(data, random)
    return data


def replace_values(data: Any, random: Random) -> Any:
    """A copy with odd values, absent keys, repeated entries here and there."""
    spoilt: Any = {"root": copy.deepcopy(data)}
    for _ in range(random.choice((1, 1, 2, 4))):
        entry: tuple[Any, Any] = random.choice(entries(spoilt))
        holder, key = entry
        match random.randrange(6):
            case 0 if isinstance(holder, dict) and key != "root":
                del holder[key]
            case 1 if isinstance(holder, dict) and key != "root":
                holder[random.choice(("", "x", "type", str(key) * 2, "\ud800"))] = holder.pop(key)
            case 2 if isinstance(holder, list):
                holder.extend([copy.deepcopy(cast(Any, holder)[key])] * random.choice((1, 5, 300)))
            case 3:  # what stands elsewhere
                other, where = random.choice(entries(spoilt))
                holder[key] = copy.deepcopy(other[where])
            case _:
                holder[key] = copy.deepcopy(random.choice(odd.VALUES))
    return spoilt["root"]


def entries(data: Any) -> list[tuple[Any, Any]]:
    """Every (holder, key) in nested lists and objects; of long lists, the first few."""
    result: list[tuple[Any, Any]] = []
    keys: Any = list(data) if isinstance(data, dict) else range(min(len(data), 20))
    for key in keys:
        result.append((data, key))
        if isinstance(data[key], dict | list):
            result += entries(data[key])
    return result
