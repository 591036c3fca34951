"""Data files: CIFAR's and idx's, npz files, folders of images."""

import dataclasses
import gzip
import io
import os
import struct
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image

from prnas.data import catalog
from tests.support.made_data import cifar_files, cifar_spec, idx_files, idx_spec, md5
from torture.fuzzing import archives, mutate, odd
from torture.fuzzing.kinds import Arena, Kind, Maker


@cache
def _zeros(number: int) -> bytes:
    return gzip.compress(bytes(number), mtime=0)


def _packed(raw: bytes, random: Random) -> bytes:
    """As gzip: whole, spoilt, several in a row, or a bomb."""
    match random.randrange(8):
        case 0:
            return mutate.spoil(gzip.compress(raw, mtime=0), random, mutate.BINARY, [])
        case 1:
            return gzip.compress(raw, mtime=0) + random.choice((b"rest", _zeros(3 * 10**7)))
        case 2:
            return _zeros(random.choice((10**6, 3 * 10**7)))
        case _:
            return gzip.compress(raw, mtime=0)


def _cifar(arena: Arena) -> Maker:
    def make(random: Random, case: Path) -> list[str]:
        label_bytes = random.choice((1, 2))
        files, spec = cifar_files(label_bytes), cifar_spec(label_bytes)
        if random.random() < 0.6:  # an archive that has just the checksum it should have
            inside = {f"{spec.folder}/{name}": data for name, data in files.items()}
            raw = _packed(archives.tar(random, inside, arena.pristine.parent), random)
            (case / spec.archive.name).write_bytes(raw)
            checksum = md5(raw) if random.random() < 0.9 else spec.archive.md5
            spec = dataclasses.replace(
                spec, archive=dataclasses.replace(spec.archive, md5=checksum)
            )
        else:
            _write_spoilt(case / spec.folder, files, random)
        catalog.SPECS["cifar10"] = spec
        return ["data", "cifar10", "--root", str(case), *_sometimes(random)]

    return make


def _idx(arena: Arena) -> Maker:
    def make(random: Random, case: Path) -> list[str]:
        spec = idx_spec()
        files = idx_files()
        if random.random() < 0.5:
            _write_spoilt(case / spec.folder, files, random)
        else:
            checksums: dict[str, str] = {}
            for name, data in files.items():
                spoilt = (
                    mutate.spoil(data, random, mutate.BINARY, []) if random.random() < 0.3 else data
                )
                packed = _packed(spoilt, random) if random.random() < 0.5 else gzip.compress(spoilt)
                (case / f"{name}.gz").write_bytes(packed)
                checksums[f"{name}.gz"] = md5(packed)
            pairs = [
                tuple(dataclasses.replace(file, md5=checksums[file.name]) for file in pair)
                for pair in (spec.train, spec.test)
            ]
            spec = dataclasses.replace(spec, train=pairs[0], test=pairs[1])
        catalog.SPECS["fashion-mnist"] = spec
        return ["data", "fashion-mnist", "--root", str(case), *_sometimes(random)]

    return make


def _write_spoilt(folder: Path, files: dict[str, bytes], random: Random) -> None:
    """The files, one or two of them spoilt, gone, or something else than a file."""
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    for name in random.sample(sorted(files), random.choice((1, 1, 2))):
        path = folder / name
        match random.randrange(6):
            case 0:
                path.unlink()
            case 1:
                odd_file(path, random)
            case 2:  # as long as it should be, but of other bytes
                path.write_bytes(random.randbytes(len(files[path.name])))
            case _:
                path.write_bytes(mutate.spoil(files[path.name], random, mutate.BINARY, []))


def odd_file(path: Path, random: Random) -> None:
    """Instead of a file: a folder, a pipe, a link to nowhere, to itself, to a device."""
    path.unlink(missing_ok=True)
    match random.randrange(6):
        case 0:
            path.mkdir()
        case 1:
            os.mkfifo(path)
        case 2:
            path.symlink_to("nowhere")
        case 3:
            path.symlink_to(path.name)
        case 4:
            path.symlink_to(random.choice(("/dev/zero", "/dev/null", "/")))
        case _:
            with path.open("wb") as file:
                file.truncate(random.choice((0, 1, 2**31)))


def _npz(arena: Arena) -> Maker:
    def make(random: Random, case: Path) -> list[str]:
        path = case / "set.npz"
        if random.random() < 0.02:
            odd_file(path, random)
        else:
            path.write_bytes(archives.npz(random, arena.canary))
        return ["data", f"npz:{path}", *_sometimes(random)]

    return make


def _sometimes(random: Random) -> list[str]:
    """Now and then, images are also looked at, or made larger."""
    wanted = ["--sample", "sample.png"] if random.random() < 0.3 else []
    return wanted + (
        ["--image-size", random.choice(("1", "9", "64"))] if random.random() < 0.2 else []
    )


FORMATS = (
    "PNG",
    "JPEG",
    "GIF",
    "BMP",
    "TIFF",
    "WEBP",
    "PPM",
    "ICO",
    "TGA",
    "JPEG2000",
    "PCX",
    "SGI",
)


def _pictures() -> dict[str, bytes]:
    pixels = np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)
    images: dict[str, bytes] = {}
    for name in FORMATS:
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, name)
        images[name] = buffer.getvalue()
    return images


def png(width: int, height: int, body: bytes, *more: bytes) -> bytes:
    """A PNG file whose header may say anything; `more` chunks come before the pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    extra = b"".join(chunk(part[:4], part[4:]) for part in more)
    pixels = chunk(b"IDAT", zlib.compress(body, 9))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + pixels + chunk(b"IEND", b"")


def _bombs() -> list[bytes]:
    zeros = zlib.compress(bytes(50_000_000), 9)
    return [
        png(60_000, 60_000, bytes(100)),
        png(2**31 - 1, 2**31 - 1, b""),
        png(8000, 8000, bytes(1_000_000)),
        png(16, 16, bytes(60_000_000)),
        png(16, 16, bytes(16 * 49), b"zTXta\0\0" + zeros),
        png(16, 16, bytes(16 * 49), b"iCCPa\0\0" + zeros),
        png(16, 16, bytes(16 * 49), *[b"tEXt" + b"a" * 20_000] * 200),
    ]


def _folder(arena: Arena) -> Maker:
    pictures = _pictures()
    picture, bombs = pictures["PNG"], _bombs()

    def make(random: Random, case: Path) -> list[str]:
        names = random.choice((["cat", "dog"], ["train", "test"], ["a", os.fsdecode(b"\xff\x1b")]))
        for name in names:
            for number in range(3):
                path = case / "set" / name / f"{number}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(picture)
        for name in random.sample(names, random.choice((1, 1, 2))):
            _add_spoilt(case / "set" / name, random, pictures, bombs)
        skip = ["--skip-broken"] if random.random() < 0.5 else []
        return ["data", f"folder:{case / 'set'}", *skip, *_sometimes(random)]

    return make


def _add_spoilt(
    folder: Path, random: Random, pictures: dict[str, bytes], bombs: list[bytes]
) -> None:
    name = random.choice(sorted(pictures))
    ending = {"JPEG": "jpg", "JPEG2000": "jp2"}.get(name, name.lower())
    path = folder / random.choice((f"x.{ending}", "x.png", "\x1b[2J.png", "y" * 200 + ".png"))
    match random.randrange(12):
        case 0:
            path.write_bytes(random.choice(bombs))
        case 1:
            odd_file(path, random)
        case 2:
            path.write_bytes(odd.pickled(folder / "executed"))
        case 3:
            path.write_bytes(random.randbytes(random.choice((0, 1, 10, 1000))))
        case 4:
            (folder / "circle").symlink_to(folder)
        case _:
            path.write_bytes(
                mutate.spoil(pictures[name], random, mutate.BINARY, list(pictures.values()))
            )


def _kind(name: str, prepare: Callable[[Arena], Maker], share: float, alone: bool = True) -> Kind:
    # A data folder may get a lock and what was unpacked, even if it is refused later.
    return Kind(name, prepare, share, pure=name in ("npz", "folder"), alone=alone)


KINDS = (
    _kind("cifar", _cifar, 1.0, alone=False),  # with small specifications instead of the official
    _kind("idx", _idx, 1.0, alone=False),
    _kind("npz", _npz, 1.0),
    _kind("folder", _folder, 1.0),
)
