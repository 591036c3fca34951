"""CIFAR and idx files: on disk, in archives, from a web server that runs here."""

import functools
import gzip
import http.server
import io
import os
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prnas.data.catalog import SPECS, CifarSpec, Download, find
from prnas.data.download import download
from prnas.data.formats.cifar import read_cifar
from prnas.data.formats.idx import read_idx
from prnas.data.readers import ImageSet
from prnas.data.unpack import gunzip, unpack_tar
from prnas.io.errors import UserError
from tests.support.made_data import (
    cifar_archive,
    cifar_files,
    cifar_records,
    cifar_spec,
    idx_files,
    idx_spec,
    md5,
    pixels,
    silent,
    tar,
)


def put(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.name != ".prnas.lock")


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A web server on this computer, and the folder that it serves."""
    served = tmp_path / "served"
    served.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(served))
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", served
    server.shutdown()
    server.server_close()
    thread.join()


def check_cifar(found: ImageSet, label_bytes: int) -> None:
    records = np.concatenate([cifar_records(6, label_bytes, seed) for seed in (1, 2)])
    assert np.array_equal(pixels(found.train).reshape(12, -1), records[:, label_bytes:])
    assert found.train.labels.tolist() == [0, 1, 2] * 4
    assert found.train.reader.shape == (3, 32, 32)
    assert pixels(found.test).shape == (4, 3, 32, 32)
    assert found.class_names == ("cat", "dog", "moose")
    mixed = np.array([11, 0, 6, 5, 5])
    assert np.array_equal(found.train.reader.read(mixed), pixels(found.train)[mixed])


@pytest.mark.parametrize("label_bytes", [1, 2])
@pytest.mark.parametrize("where", ["files", "folder", "archive"])
def test_cifar_on_disk(where: str, label_bytes: int, tmp_path: Path) -> None:
    spec = cifar_spec(label_bytes)
    if where == "archive":
        put(tmp_path, {spec.archive.name: cifar_archive(label_bytes)})
    else:
        put(tmp_path if where == "files" else tmp_path / spec.folder, cifar_files(label_bytes))
    for _ in range(2):  # the second time, what was unpacked is used
        check_cifar(read_cifar(spec, tmp_path, silent), label_bytes)
    assert find(spec, tmp_path) is not None
    if where == "archive":
        (tmp_path / spec.archive.name).unlink()
        check_cifar(read_cifar(spec, tmp_path, silent), label_bytes)


def test_cifar_is_downloaded_once(web: tuple[str, Path], tmp_path: Path) -> None:
    address, served = web
    put(served, {"tiny.tar.gz": cifar_archive()})
    spec, said = cifar_spec(url=f"{address}/tiny.tar.gz"), []
    root = tmp_path / "new" / "root"
    check_cifar(read_cifar(spec, root, said.append), 1)
    assert said == [f"downloading {spec.archive.url} to {root}"]
    (served / "tiny.tar.gz").unlink()
    check_cifar(read_cifar(spec, root, silent), 1)
    unpacked = ["names.txt", "one.bin", "test.bin", "two.bin"]
    assert left(root) == sorted([*unpacked, "tiny-bin", "tiny.tar.gz"])


def test_idx_is_downloaded_and_read_packed_or_plain(web: tuple[str, Path], tmp_path: Path) -> None:
    address, served = web
    files = idx_files()
    put(served, {f"{name}.gz": gzip.compress(data, mtime=0) for name, data in files.items()})
    spec, said = idx_spec(address), []
    fetched = read_idx(spec, tmp_path / "root", said.append)
    assert len(said) == 4
    plain = read_idx(spec, put(tmp_path / "plain", files), silent)
    nested = read_idx(spec, put(tmp_path / "n" / spec.folder, files).parent, silent)
    assert plain.train.reader.resident is False
    for found in (fetched, plain, nested):
        assert pixels(found.train).tobytes() == files["a-images"][16:]
        assert pixels(found.train).shape == (5, 1, 4, 6)
        assert pixels(found.test).tobytes() == files["b-images"][16:]
        assert found.train.labels.tolist() == [0, 1, 0, 1, 0]
        assert found.class_names == ("bag", "boot")


@pytest.mark.parametrize("fault", ["other", "too long", "missing"])
def test_a_bad_download_leaves_nothing(fault: str, web: tuple[str, Path], tmp_path: Path) -> None:
    address, served = web
    content = cifar_archive()
    wanted = Download(f"{address}/tiny.tar.gz", md5(content), 10_000_000)
    if fault == "too long":
        wanted = replace(wanted, most_bytes=len(content) - 1)
    if fault != "missing":
        put(served, {"tiny.tar.gz": content[:-1] if fault == "other" else content})
    root = tmp_path / "root"
    with pytest.raises(UserError) as caught:
        download(wanted, root, lambda message: None, "Do without.")
    words = {"other": "MD5", "too long": "sends more", "missing": "File not found"}
    assert words[fault] in str(caught.value)
    assert str(caught.value).endswith("Do without.")
    assert left(root) == []


def test_offline_says_what_to_put_where(tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(UserError) as caught:
        read_cifar(cifar_spec(), tmp_path, said.append)  # nobody listens on port 9
    message = str(caught.value)
    assert "cannot download http://127.0.0.1:9/tiny.tar.gz" in message
    assert "put tiny.tar.gz, or the folder tiny-bin from it (with one.bin, two.bin, " in message
    assert f"into {tmp_path}, or into another folder that --data-root" in message
    assert message.endswith("or PRNAS_DATA names")
    with pytest.raises(UserError) as caught:
        read_idx(idx_spec(), tmp_path, said.append)
    assert "a-images.gz, a-labels.gz, b-images.gz, b-labels.gz (or these" in str(caught.value)
    assert left(tmp_path) == ["tiny-idx"]


def test_a_folder_that_cannot_be_written_to_is_not_recommended(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError) as caught:
        read_cifar(cifar_spec(), tmp_path / "file" / "data", lambda message: None)
    assert str(caught.value).startswith(f"cannot write to {tmp_path / 'file' / 'data'}: ")
    assert str(caught.value).endswith(
        ". Choose another folder by --data-root (data.root) or PRNAS_DATA"
    )


def test_files_that_are_not_the_official_ones(tmp_path: Path) -> None:
    spec = cifar_spec()
    put(tmp_path, {**cifar_files(1), "two.bin": b"short"})
    with pytest.raises(UserError, match=r"two\.bin has 5 bytes; the official file has 18,438"):
        read_cifar(spec, tmp_path, silent)
    records = cifar_records(6, 1, 2)
    records[3, 0] = 77
    put(tmp_path, {"two.bin": records.tobytes()})
    with pytest.raises(UserError, match=r"two\.bin has label 77; the last class is 2"):
        read_cifar(spec, tmp_path, silent)
    archive = put(tmp_path / "a", {"tiny.tar.gz": cifar_archive()[:-9]})
    with pytest.raises(UserError, match=r"tiny\.tar\.gz is damaged, or is not the file of http"):
        read_cifar(spec, archive, silent)
    assert left(archive) == ["tiny.tar.gz"]
    names = put(tmp_path / "b", {**cifar_files(1), "names.txt": b"only one"})
    assert read_cifar(spec, names, silent).class_names == ("0", "1", "2")


@pytest.mark.parametrize("fault", ["short", "header", "label", "foreign"])
def test_idx_files_that_are_not_the_official_ones(fault: str, tmp_path: Path) -> None:
    files = idx_files()
    if fault == "short":
        files["a-images"] = files["a-images"][:-1]
    elif fault == "header":
        files["a-images"] = b"\0\0\x0d\x03" + files["a-images"][4:]
    elif fault == "label":
        files["b-labels"] = files["b-labels"][:-1] + b"\x07"
    else:
        files["a-images.gz"] = gzip.compress(files.pop("a-images"), mtime=0) + b"\0"
    put(tmp_path, files)
    words = {"label": "has label 7; the last class is 1", "foreign": "MD5"}
    with pytest.raises(UserError, match=words.get(fault, "is not the official file")):
        read_idx(idx_spec(), tmp_path, silent)


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = kind
    member.linkname = target
    return member


def bomb() -> bytes:
    """A header that promises a member of a terabyte."""
    member = tarfile.TarInfo("tiny-bin/one.bin")
    member.size = 2**40
    return gzip.compress(member.tobuf() + bytes(100_000))


def header_bomb() -> bytes:
    """An extended header, which a reader takes into memory whole, of 50 MB."""
    member = special("pax", tarfile.XHDTYPE)
    member.size = 50_000_000
    return gzip.compress(member.tobuf() + bytes(member.size))


def endless() -> bytes:
    """A member that is not wanted, and claims more than can be skipped in a lifetime."""
    member = special("tiny-bin/readme.html", tarfile.REGTYPE)
    member.size = 2**80
    return gzip.compress(member.tobuf(tarfile.GNU_FORMAT) + bytes(1024))


EVIL = {
    "endless": endless(),
    "parent": tar({"../evil.bin": b"x"}),
    "inner parent": tar({"tiny-bin/../../evil.bin": b"x"}),
    "absolute": tar({"/tmp/evil.bin": b"x"}),  # noqa: S108
    "drive": tar({"C:evil.bin": b"x"}),
    "backslash": tar({"..\\evil.bin": b"x"}),
    "symbolic link": tar({}, special("tiny-bin/one.bin", tarfile.SYMTYPE, "/etc/passwd")),
    "hard link": tar({}, special("tiny-bin/one.bin", tarfile.LNKTYPE, "../../secret")),
    "device": tar({}, special("tiny-bin/one.bin", tarfile.CHRTYPE)),
    "folder": tar({}, special("tiny-bin/one.bin", tarfile.DIRTYPE)),
    "too large": tar({"tiny-bin/one.bin": bytes(18_439)}),
    "bomb": bomb(),
    "header bomb": header_bomb(),
    "other bomb": tar({"tiny-bin/other.bin": bytes(3_000_000)}),
    "cut off": cifar_archive()[:-2000],
    "no archive": b"hello",
    "no tar": gzip.compress(b"hello" * 1000),
    "without files": tar({"tiny-bin/two.bin": bytes(18_438)}),
}


@pytest.mark.parametrize("kind", EVIL)
def test_evil_archives_are_refused_whole(kind: str, tmp_path: Path) -> None:
    root = put(tmp_path / "inner" / "root", {"tiny.tar.gz": EVIL[kind]})
    spec: CifarSpec = replace(
        cifar_spec(), archive=Download("http://127.0.0.1:9/tiny.tar.gz", md5(EVIL[kind]), 10**9)
    )
    with pytest.raises(UserError, match=r"tiny\.tar\.gz"):
        read_cifar(spec, root, silent)
    kept = {"tiny.tar.gz"} | ({"tiny-bin", "two.bin"} if kind == "without files" else set())
    assert set(left(tmp_path / "inner")) == {"root", *kept}
    assert left(tmp_path) == sorted(["inner", "root", *kept])


def test_unpacking_takes_only_what_is_wanted(tmp_path: Path) -> None:
    path = put(tmp_path, {"a.tar.gz": tar({"in/a": b"1", "in/b": b"2", "a": b"3", "./in/c": b"4"})})
    unpack_tar(path / "a.tar.gz", "in", {"a": 1, "c": 5}, tmp_path / "out")
    assert left(tmp_path / "out") == ["a", "c"]
    assert (tmp_path / "out" / "a").read_bytes() == b"1"


def test_gunzip_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"x" * 1000))
    assert gunzip(path, 1000) == b"x" * 1000
    with pytest.raises(UserError, match="more than expected"):
        gunzip(path, 999)
    path.write_bytes(gzip.compress(b"x" * 1000)[:-5])
    with pytest.raises(UserError, match="damaged"):
        gunzip(path, 1000)


def test_the_known_sets() -> None:
    """Facts of the official files: sizes of CIFAR's are on its page."""
    ten, hundred = SPECS["cifar10"], SPECS["cifar100"]
    assert isinstance(ten, CifarSpec)
    assert isinstance(hundred, CifarSpec)
    assert set(ten.files.values()) == {30_730_000}
    assert hundred.files == {"train.bin": 153_700_000, "test.bin": 30_740_000}


def test_a_pipe_in_the_place_of_names(tmp_path: Path) -> None:
    root = put(tmp_path / "tiny-bin", cifar_files(1)).parent
    (root / "tiny-bin" / "names.txt").unlink()
    os.mkfifo(root / "tiny-bin" / "names.txt")
    assert read_cifar(cifar_spec(), root, silent).class_names == ("0", "1", "2")


def test_numbers_that_tarfile_stumbles_over(tmp_path: Path) -> None:
    member = tarfile.TarInfo("tiny-bin/one.bin")
    member.pax_headers = {"GNU.sparse.map": "x", "GNU.sparse.size": "1"}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(member)
    path = put(tmp_path, {"a.tar.gz": gzip.compress(buffer.getvalue())})
    with pytest.raises(UserError, match="is damaged"):
        unpack_tar(path / "a.tar.gz", "tiny-bin", {"one.bin": 9}, tmp_path / "out")
