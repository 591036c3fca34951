"""NumPy's files: every layout, and nothing that runs."""

import contextlib
import io
import os
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from prnas.data.formats import npz as module
from prnas.data.formats.npz import read_npz
from prnas.data.readers import ImageSet, MappedReader
from prnas.io.errors import UserError
from tests.support.made_data import pixels, silent

LABELS = np.arange(12) % 3


def pixels_of(shape: tuple[int, ...], number: int = 12) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (number, *shape), np.uint8)


def read(path: Path, free: int = 10**9) -> ImageSet:
    return read_npz(path, 0.25, free, silent)


def refusal(path: Path, free: int = 10**9, **arrays: object) -> str:
    if arrays:
        np.savez_compressed(path, **arrays)  # pyright: ignore
    with pytest.raises(UserError) as caught:
        read(path, free)
    return str(caught.value)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "set.npz"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("shape", [(7, 5), (7, 5, 1), (7, 5, 3), (3, 7, 5), (7, 5, 4), (1, 7, 5)])
def test_layouts(shape: tuple[int, ...], packed: bool, path: Path) -> None:
    given, test = pixels_of(shape), pixels_of(shape, 5)
    save = np.savez_compressed if packed else np.savez
    save(path, x_train=given, y_train=LABELS, x_test=test, y_test=LABELS[:5, None])
    found = read(path)
    if len(shape) == 2:
        given, test = given[:, None], test[:, None]
    elif shape[0] == 7:
        given, test = given.transpose(0, 3, 1, 2), test.transpose(0, 3, 1, 2)
    assert np.array_equal(pixels(found.train), given)
    assert np.array_equal(pixels(found.test), test)
    assert found.train.labels.tolist() == LABELS.tolist()
    assert found.test.labels.tolist() == LABELS[:5].tolist()
    assert found.class_names == ("0", "1", "2")
    assert isinstance(found.train.reader, MappedReader) != packed


@pytest.mark.parametrize("packed", [False, True])
def test_a_test_part_is_split_off(packed: bool, path: Path) -> None:
    given = pixels_of((4, 4))
    given[:, 0, 0] = np.arange(12)
    save = np.savez_compressed if packed else np.savez
    save(path, x_train=given, y_train=LABELS, class_names=np.array(["a", "b", "ç\n"]))
    found = read(path)
    numbers = [pixels(part)[:, 0, 0, 0] for part in (found.train, found.test)]
    assert sorted(np.concatenate(numbers)) == list(range(12))
    assert np.bincount(found.test.labels).tolist() == [1, 1, 1]
    for part, places in zip((found.train, found.test), numbers, strict=True):
        assert np.array_equal(part.labels, LABELS[places])
        assert np.array_equal(pixels(part)[:, 0], given[places])
    assert found.class_names == ("a", "b", "ç\n")


def test_medmnist_names_and_column_order(path: Path) -> None:
    given = pixels_of((4, 6))
    parts = {"train_images": np.asfortranarray(given), "train_labels": LABELS[:, None]}
    np.savez(path, **parts, val_images=given[:2], val_labels=LABELS[:2])
    found = read(path)
    assert np.array_equal(pixels(found.train)[:, 0], given)
    assert len(found.test.labels) == 2  # for want of a test part
    np.savez(path, **parts, val_images=given[:2], val_labels=LABELS[:2], test_images=given[:3],
             test_labels=LABELS[:3])  # fmt: skip
    said: list[str] = []
    assert len(read_npz(path, 0.2, 10**9, said.append).test.labels) == 3
    assert "val_images and val_labels are not used" in said[0]


class Trap:
    """Unpickled, it leaves a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("name", ["x_train", "y_train", "class_names"])
def test_pickles_are_refused_and_never_run(name: str, path: Path, tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    evil = np.array([Trap(sprung)] * 12, dtype=object)
    pickle.loads(pickle.dumps(evil))  # noqa: S301 - the trap works
    assert sprung.is_dir()
    sprung.rmdir()
    arrays = {"x_train": pixels_of((4, 4)), "y_train": LABELS, name: evil}
    assert f"'{name}' holds pickled Python objects" in refusal(path, **arrays)
    assert not sprung.exists()


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"x": LABELS}, "it needs the arrays x_train and y_train"),
        ({"x_train": pixels_of((4, 4))}, "has 'x_train' but not 'y_train'"),
        ({"x_train": pixels_of((4, 4)) / 255, "y_train": LABELS}, "must be uint8 images"),
        ({"x_train": pixels_of((4,)), "y_train": LABELS}, "must be uint8 images"),
        ({"x_train": pixels_of((5, 5, 2)), "y_train": LABELS}, "must be uint8 images"),
        ({"x_train": pixels_of((3, 9, 3)), "y_train": LABELS}, "either end could be"),
        ({"x_train": pixels_of((0, 4)), "y_train": LABELS}, "must be uint8 images"),
        ({"x_train": pixels_of((4, 4)), "y_train": LABELS[1:]}, "a label for each"),
        ({"x_train": pixels_of((4, 4), 0), "y_train": LABELS[:0]}, "a label for each"),
        ({"x_train": pixels_of((4, 4)), "y_train": LABELS * 1.0}, "must be whole numbers"),
        ({"x_train": pixels_of((4, 4)), "y_train": np.array(3)}, "a label for each"),
        ({"x_train": pixels_of((4, 4)), "y_train": np.eye(12, dtype=int)}, "must be whole numbers"),
        ({"x_train": pixels_of((4, 4)), "y_train": LABELS - 1}, "got -1"),
        ({"x_train": pixels_of((4, 4)), "y_train": LABELS + 10**6}, "got 1000002"),
        ({"x_train": pixels_of((4, 4)), "y_train": LABELS * 2}, "no training image is of class 1"),
        ({"x_train": pixels_of((4, 4)), "y_train": LABELS * 0}, "one class only"),
        (
            {"x_train": pixels_of((4, 4)), "y_train": LABELS, "class_names": np.array(["a", "b"])},
            "there is a label 2, but 'class_names' has 2",
        ),
        (
            {"x_train": pixels_of((4, 4)), "y_train": LABELS, "class_names": LABELS},
            "must be a list of texts",
        ),
        (
            {"x_train": pixels_of((4, 4)), "y_train": LABELS, "x_test": pixels_of((5, 4)),
             "y_test": LABELS},
            "training images are (1, 4, 4)",
        ),
    ],
)  # fmt: skip
def test_mistakes(arrays: dict[str, object], said: str, path: Path) -> None:
    message = refusal(path, 10**9, **arrays)
    assert said in message
    assert str(path) in message


def test_what_does_not_fit_is_refused_before_it_is_loaded(path: Path) -> None:
    message = refusal(path, 100, x_train=pixels_of((4, 4)), y_train=LABELS)
    assert "numpy.savez, uncompressed" in message


def test_lies_about_sizes(path: Path) -> None:
    """A header that promises more than the archive holds, and an archive that promises bombs."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|u1", "fortran_order": False, "shape": (2**40, 32, 32)}
    )
    for data in (header.getvalue(), b"\x93NUMPY\x01\x00", b"", b"hello" * 99):
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("x_train.npy", data)
            file.writestr("y_train.npy", data)
        assert "'x_train'" in refusal(path)


def test_damage(path: Path) -> None:
    np.savez(path, x_train=pixels_of((4, 4)), y_train=LABELS)
    whole = path.read_bytes()
    for damaged in (b"", b"hello", whole[:-50], whole[:300]):
        path.write_bytes(damaged)
        assert str(path) in refusal(path)
    np.savez_compressed(path, x_train=pixels_of((40, 40)), y_train=LABELS)
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    path.write_bytes(raw)
    assert "not a readable .npz file" in refusal(path)


def npy(header: bytes, body: bytes = b"") -> bytes:
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + body


def described(descr: str, shape: tuple[int, ...]) -> bytes:
    return repr({"descr": descr, "fortran_order": False, "shape": shape}).encode() + b"\n"


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '|u1', 'fortran_order': False, 'shape': (1",  # a tokenizer's own error
        b"{[]: 1}",
        b"{'a': 1, 2: 3}",
        b"-" * 9000 + b"1",
        b"(" * 9000,
        described("|u1", (10**2000,)),
    ],
    ids=range(6),
)
def test_headers_that_numpy_stumbles_over(header: bytes, path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("x_train.npy", npy(header))
    assert str(path) in refusal(path)


def test_numbers_instead_of_arrays(path: Path) -> None:
    assert "a label for each" in refusal(path, x_train=np.uint8(1), y_train=np.int64(1))


def test_names_of_no_bytes_may_be_a_billion(path: Path) -> None:
    """They take no room in the file, and all of the memory."""
    np.savez(path, x_train=pixels_of((4, 4)), y_train=LABELS)
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("class_names.npy", npy(described("<U0", (10**9,))))
    assert "'class_names' must be a list of texts, at most" in refusal(path)


def test_a_bomb_of_labels(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_IMAGES", 11)
    assert "more than 11 entries" in refusal(path, x_train=pixels_of((4, 4)), y_train=LABELS)


@pytest.mark.parametrize("packing", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED])
def test_damage_in_every_kind_of_packing(packing: int, path: Path) -> None:
    data = io.BytesIO()
    np.save(data, pixels_of((40, 40)))
    with zipfile.ZipFile(path, "w", packing) as file:
        file.writestr("x_train.npy", data.getvalue())
    whole = path.read_bytes()
    for place in range(30, 200, 5):
        raw = bytearray(whole)
        raw[place] ^= 0xFF
        path.write_bytes(raw)
        assert str(path) in refusal(path)


def test_damage_in_the_directory(path: Path) -> None:
    np.savez(path, x_train=pixels_of((4, 4)), y_train=LABELS)
    whole = path.read_bytes()
    for place in range(whole.index(b"PK\1\2"), len(whole)):
        raw = bytearray(whole)
        raw[place] ^= 0xFF
        path.write_bytes(raw)
        with contextlib.suppress(UserError):  # some bytes mean nothing
            read(path)


def test_devices_and_pipes_are_not_read(path: Path) -> None:
    """zipfile would look for the end of /dev/zero."""
    path.symlink_to("/dev/zero")
    assert "not a plain file" in refusal(path)
    path.unlink()
    os.mkfifo(path)
    assert "not a plain file" in refusal(path)
