"""safetensors files whose headers lie, and whose numbers are none."""

import json
import struct
from random import Random
from typing import Any

from torture.fuzzing import mutate, odd

DTYPES = (
    "F64",
    "F32",
    "F16",
    "BF16",
    "I64",
    "I8",
    "U8",
    "BOOL",
    "F8_E4M3",
    "F4",
    "C64",
    "U64",
    "?",
)


def spoilt_tensors(raw: bytes, random: Random) -> bytes:
    if random.random() < 0.3:
        return mutate.spoil(raw, random, mutate.BINARY, [])
    (length,) = struct.unpack("<Q", raw[:8])
    header: dict[str, Any] = json.loads(raw[8 : 8 + length])
    body = bytearray(raw[8 + length :])
    names = sorted(header)
    for _ in range(random.choice((1, 1, 2, 4))):
        name = random.choice(names)
        entry = header.get(name)
        match random.randrange(9):
            case 0:
                header.pop(name, None)
            case 1:
                header[random.choice(("", "x", name + "x", "\0", "../x"))] = header.pop(name, {})
            case 2 if isinstance(entry, dict):
                entry["dtype"] = random.choice(DTYPES)
            case 3 if isinstance(entry, dict):
                shape = entry.get("shape") or [1]
                entry["shape"] = random.choice(
                    (
                        [],
                        [0],
                        [2**40],
                        [2**63, 2],
                        [-1],
                        shape[::-1],
                        [1, *shape],
                        [*shape, 1],
                        None,
                    )
                )
            case 4 if isinstance(entry, dict):
                entry["data_offsets"] = random.choice(
                    ([0, 0], [0, 4], [4, 0], [0, 2**63], [-1, 4], 3)
                )
            case 5 if isinstance(entry, dict):
                header[random.choice(names)] = dict(entry)
            case 6:
                header = mutate.replace_values(header, random)
                header = header if isinstance(header, dict) else {}
            case _:  # not finite, or huge, somewhere
                value = random.choice((float("nan"), float("inf"), 1e38, -1e-45))
                start = random.randrange(max(1, len(body) // 4)) * 4
                body[start : start + 4] = struct.pack("<f", value)
    text = json.dumps(header).encode()
    size = len(text) if random.random() < 0.9 else random.choice((0, 2**31, 2**63, len(text) + 1))
    if random.random() < 0.05:
        text = random.choice(odd.WORDS) + text
    return struct.pack("<Q", size) + text + bytes(body)
