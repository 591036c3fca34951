"""Small sets in real file formats, for tests."""

import gzip
import hashlib
import io
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from prnas.data.catalog import CifarSpec, Download, IdxSpec
from prnas.data.readers import LabelledImages
from prnas.data.storage import InMemory


def images(number: int, shape: tuple[int, int, int] = (3, 4, 5), classes: int = 3) -> InMemory:
    """Random images in memory; none is like another."""
    generator = torch.Generator().manual_seed(number)
    pixels = torch.randint(0, 256, (number, *shape), generator=generator, dtype=torch.uint8)
    return InMemory(pixels, torch.arange(number) % classes)


def md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def cifar_spec(label_bytes: int = 1, url: str = "http://127.0.0.1:9/tiny.tar.gz") -> CifarSpec:
    """CIFAR's layout with a few images: two training files of 6, a test file of 4."""
    archive = Download(url, md5(cifar_archive(label_bytes)), 1_000_000)
    return CifarSpec(
        archive, "tiny-bin", ("one.bin", "two.bin"), ("test.bin",), (6, 4), "names.txt",
        label_bytes, 3,
    )  # fmt: skip


def cifar_records(number: int, label_bytes: int, seed: int) -> np.ndarray:
    records = np.random.default_rng(seed).integers(0, 256, (number, label_bytes + 3072), np.uint8)
    records[:, label_bytes - 1] = np.arange(number) % 3
    return records


def cifar_files(label_bytes: int) -> dict[str, bytes]:
    records = {"one.bin": (6, 1), "two.bin": (6, 2), "test.bin": (4, 3)}
    files = {
        name: cifar_records(number, label_bytes, seed).tobytes()
        for name, (number, seed) in records.items()
    }
    return {**files, "names.txt": b"cat\ndog\nmoose\n\n"}


def cifar_archive(label_bytes: int = 1) -> bytes:
    files = {f"tiny-bin/{name}": data for name, data in cifar_files(label_bytes).items()}
    return tar({"tiny-bin/readme.html": b"hello", **files})


def tar(files: dict[str, bytes], *others: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for member in others:
            archive.addfile(member)
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return gzip.compress(buffer.getvalue(), mtime=0)


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def idx_files() -> dict[str, bytes]:
    random = np.random.default_rng(0)
    return {
        "a-images": idx(random.integers(0, 256, (5, 4, 6), np.uint8)),
        "a-labels": idx((np.arange(5) % 2).astype(np.uint8)),
        "b-images": idx(random.integers(0, 256, (3, 4, 6), np.uint8)),
        "b-labels": idx((np.arange(3) % 2).astype(np.uint8)),
    }


def idx_spec(base: str = "http://127.0.0.1:9") -> IdxSpec:
    a, al, b, bl = (
        Download(f"{base}/{name}.gz", md5(gzip.compress(data, mtime=0)), 10_000)
        for name, data in idx_files().items()
    )
    return IdxSpec("tiny-idx", (a, al), (b, bl), (5, 3), (4, 6), ("bag", "boot"))


def picture(path: Path, seed: int = 0, size: tuple[int, int] = (40, 30), mode: str = "RGB") -> Path:
    """A random image in the format that the path's ending names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    pixels = random.integers(0, 256, (size[1], size[0], 3), np.uint8)
    Image.fromarray(pixels).convert(mode).save(path)
    return path


def picture_folder(root: Path, per_class: int = 5, mode: str = "RGB") -> Path:
    for label, name in enumerate(("cat", "dog")):
        for number in range(per_class):
            picture(root / name / f"{number}.png", 10 * label + number, mode=mode)
    return root


def silent(message: str) -> None:
    pytest.fail(message)


def pixels(split: LabelledImages) -> np.ndarray:
    return split.reader.read(np.arange(len(split.reader)))
