"""npy, npz and tar files with every kind of lie in them."""

import io
import struct
import tarfile
import warnings
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from torture.fuzzing import mutate, odd

DTYPES = [
    *("|u1", "|i1", "<i2", ">i4", "<i8", "<u8", "<f4", "<f8", "|b1", "<c8", "<U0", "<U3", "|S0"),
    *("|S4", "|V0", "|V8", "|O", "<M8[s]", "<m8", "<f2", "nonsense", "<U99999999", "3u1"),
]
SIZES = [-1, 0, 1, 2, 12, 96, 255, 2**16, 2**31, 2**40, 2**62, 2**63, 2**64, 10**30, 10**2000]


def npy(random: Random, array: Any) -> bytes:
    """An array as a .npy file, perhaps with another header than it should have."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=True)
    raw = buffer.getvalue()
    if random.random() < 0.5:
        return raw
    body = raw[10 + struct.unpack("<H", raw[8:10])[0] :]
    fields: dict[str, Any] = {
        "descr": array.dtype.str,
        "fortran_order": False,
        "shape": array.shape,
    }
    for _ in range(random.choice((1, 1, 2))):
        match random.randrange(6):
            case 0:
                fields["descr"] = random.choice(DTYPES)
            case 1:
                fields["descr"] = [("a", random.choice(DTYPES)), ("b", "|u1", (3, 3))]
            case 2:
                fields["fortran_order"] = random.choice((True, None, 1, "x"))
            case 3:
                size = random.choice(SIZES)
                fields["shape"] = random.choice(
                    ((), (size,), (size, 8, 8), (12, size, 3), [1], size)
                )
            case 4:
                fields[random.choice(("descr", "shape", "more"))] = random.choice(odd.VALUES)
            case _:
                del fields[random.choice(sorted(fields))]
    text = repr(fields).encode("utf-8", "replace")
    if random.random() < 0.3:
        text = random.choice(
            (
                mutate.spoil(text, random, mutate.TEXT, []),
                b"(" * 9000,
                b"-" * 9000 + b"1",
                b"{[]: 1}",
                b"{'a': 1, 2: 3}",
                b"__import__('os').mkdir('x')",
                b"9" * 9000,
                b"'" + b"x" * 60_000,
            )
        )
    text = text[:65_000] + b"\n"
    version = random.choice((b"\1\0", b"\1\0", b"\2\0", b"\3\0", b"\xff\xff"))
    length = struct.pack("<H" if version[0] == 1 else "<I", len(text))
    return b"\x93NUMPY" + version + length + text + body


def npz(random: Random, canary: Path) -> bytes:
    """Images and labels, or what goes for them, in a zip file, or what goes for one."""
    images = np.arange(24 * 8 * 8 * 3, dtype=np.uint8).reshape(24, 8, 8, 3)
    labels = np.arange(24) % 3
    names = np.array(["a", "b", "c"])
    bomb = np.array([_Bomb(canary)], dtype=object)
    arrays: dict[str, Any] = {"x_train": images, "y_train": labels, "class_names": names}
    if random.random() < 0.5:
        arrays |= {"x_test": images[:6], "y_test": labels[:6]}
    for _ in range(random.choice((0, 1, 1, 2))):
        name = random.choice(sorted(arrays))
        arrays[name] = random.choice(
            (
                bomb,
                images.astype(np.float32) * np.nan,
                labels.astype(np.float64) + np.inf,
                labels - 5,
                labels.astype(np.uint64) + 2**63,
                np.asfortranarray(images),
                images[:, :, :, 0],
                images.transpose(0, 3, 1, 2),
                np.zeros((24, 0, 8, 3), np.uint8),
                np.array(3),
                np.zeros(0, np.int64),
                names,
                labels,
                images,
                np.zeros((24, 1), np.int8),
                np.array(["\x1b[2J", "\ud800", "x" * 5000]),
            )
        )
    if random.random() < 0.1:
        arrays = {name: np.array(3) for name in arrays}
    buffer = io.BytesIO()
    packing = random.choice(
        (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    )
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", packing) as file:
        warnings.simplefilter("ignore")  # of names that are there already
        for name, array in arrays.items():
            if random.random() < 0.03:
                continue
            prefix = random.choice(("",) * 30 + ("../", "/", "a\\", "C:"))
            content = npy(random, array) if random.random() < 0.3 else _plain(array)
            if random.random() < 0.03:
                content = odd.pickled(canary)
            for _ in range(random.choice((1,) * 20 + (2,))):
                info = zipfile.ZipInfo(f"{prefix}{name}.npy")
                info.compress_type = packing
                file.writestr(info, content)
        if random.random() < 0.05:
            file.writestr("bomb.npy", bytes(3_000_000))
    raw = buffer.getvalue()
    if random.random() < 0.5:
        # Most of the file is pixels; the lies that matter are in its end and its heads.
        if random.random() < 0.5:
            at = raw.rfind(b"PK\1\2")
            at = random.choice((at, raw.find(b"PK\1\2"), raw.rfind(b"PK\5\6")))
            return raw[:at] + mutate.spoil(raw[at:], random, mutate.BINARY, [])
        return mutate.spoil(raw, random, mutate.BINARY, [])
    return raw


class _Bomb:
    def __init__(self, canary: Path) -> None:
        self._canary = canary

    def __reduce__(self) -> Any:
        import os

        return os.mkdir, (str(self._canary),)


def _plain(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def tar(random: Random, files: dict[str, bytes], outside: Path) -> bytes:
    """The files in a tar file, among members that reach out, link, or lie about their size."""
    buffer = io.BytesIO()
    form = random.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT))
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            if random.random() < 0.1:
                evil = (
                    "../" * 3 + "x",
                    str(outside / "x"),
                    "a/../../x",
                    "C:x",
                    "a\\b",
                    "x" * 90,
                    ".",
                )
                member.name = random.choice(evil)
            if random.random() < 0.1:
                kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE)
                member.type = random.choice((*kinds, tarfile.DIRTYPE, tarfile.GNUTYPE_SPARSE, b"Z"))
                member.linkname = random.choice(("/etc/passwd", "../../x", name, ""))
                member.mode = 0o777
            if form == tarfile.PAX_FORMAT and random.random() < 0.1:
                key = random.choice(("size", "path", "mtime", "GNU.sparse.size", "GNU.sparse.map"))
                member.pax_headers = {key: random.choice(("-1", "x", "1" * 30, "../x", "0,9,9"))}
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
            if random.random() < 0.05:
                archive.addfile(member, io.BytesIO(data))
    raw = buffer.getvalue()
    if random.random() < 0.5:
        heads = [
            start for start in range(0, len(raw), 512) if raw[start + 257 : start + 262] == b"ustar"
        ]
        at = random.choice(heads or [0])
        field = random.choice(
            ((0, 100), (100, 8), (124, 12), (156, 1), (157, 100), (148, 8), (345, 155))
        )
        start = at + field[0]
        new = random.choice((random.randbytes(field[1]), b"\xff" * field[1], b"7" * field[1]))
        raw = raw[:start] + new + raw[start + field[1] :]
        if random.random() < 0.7:  # with the checksum that fits
            head = raw[at : at + 148] + b" " * 8 + raw[at + 156 : at + 512]
            raw = raw[: at + 148] + b"%06o\0 " % sum(head) + raw[at + 156 :]
    return raw
