"""Where an export goes: formats by name, and what is refused before any work."""

from pathlib import Path

import pytest

from prnas.exporting import target
from prnas.exporting.target import Format, Target, check_free, find_target, write
from prnas.io.errors import UserError


@pytest.mark.parametrize(
    ("name", "file_format", "expected", "files", "entry"),
    [
        ("net.onnx", None, "onnx", ["net.onnx"], "net.onnx"),
        ("net.ONNX", None, "onnx", ["net.ONNX"], "net.ONNX"),
        ("net.pt2", None, "pt2", ["net.pt2"], "net.pt2"),
        ("net.py", None, "python", ["net.safetensors", "net.py"], "net.py"),
        ("net", None, "safetensors", ["net/model.safetensors", "net/model.json"], "net"),
        ("here", None, "safetensors", ["here/model.safetensors", "here/model.json"], "here"),
        ("n.safetensors", None, "safetensors", ["n.safetensors", "n.json"], "n.safetensors"),
        (
            *("a/model.safetensors", None, "safetensors"),
            *(["a/model.safetensors", "a/model.json"], "a"),
        ),
        ("net", "onnx", "onnx", ["net.onnx"], "net.onnx"),
        ("net.v2", "pt2", "pt2", ["net.v2.pt2"], "net.v2.pt2"),
        ("net", "python", "python", ["net.safetensors", "net.py"], "net.py"),
        ("here", "onnx", "onnx", ["here/model.onnx"], "here/model.onnx"),
        ("v.2", "safetensors", "safetensors", ["v.2/model.safetensors", "v.2/model.json"], "v.2"),
    ],
)
def test_formats_and_files(
    tmp_path: Path,
    name: str,
    file_format: Format | None,
    expected: str,
    files: list[str],
    entry: str,
) -> None:
    (tmp_path / "here").mkdir()
    found = find_target(tmp_path / name, file_format)
    assert found.file_format == expected
    assert found.files == tuple(tmp_path / file for file in files)
    assert found.entry == tmp_path / entry


@pytest.mark.parametrize(
    ("name", "file_format", "said"),
    [
        ("net.pth", None, r"no format has the ending '\.pth'.*\.onnx, \.pt2 or \.py"),
        ("net.onnx", "pt2", "has the ending of onnx, but --format is pt2"),
        ("net", "tflite", "choose safetensors, onnx, pt2, python"),
        ("my-net.py", None, "called like a variable"),
        ("net.PY", None, "ends in .py"),
        ("torch.py", None, "hide the module 'torch'"),
        ("json.py", None, "hide the module 'json'"),
    ],
)
def test_names_that_do_not_fit(name: str, file_format: Format | None, said: str) -> None:
    with pytest.raises(UserError, match=said):
        find_target(Path(name), file_format)


def test_existing_files_need_force(tmp_path: Path) -> None:
    python = find_target(tmp_path / "net.py", None)
    check_free(python, force=False)
    (tmp_path / "net.safetensors").touch()
    with pytest.raises(UserError, match=r"net\.safetensors is there already; --force"):
        check_free(python, force=False)
    check_free(python, force=True)
    (tmp_path / "net.py").mkdir()
    with pytest.raises(UserError, match="is a folder"):
        check_free(Target("python", (tmp_path / "net.py",)), force=True)


def test_folders_that_are_missing(tmp_path: Path) -> None:
    for name in ("a/b", "a/b/c.onnx"):
        check_free(find_target(tmp_path / name, None), force=False)
    (tmp_path / "file").touch()
    for name in ("file", "file/b", "file/b.onnx"):
        with pytest.raises(UserError, match="file is a file"):
            check_free(find_target(tmp_path / name, None), force=False)


@pytest.mark.parametrize("name", ["a/b", "net.py", "a/b/c/net.py"])
def test_a_failed_write_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "a").mkdir()
    wanted = find_target(tmp_path / name, None)
    real = target.write_output

    def full_after_one(file: Path, data: bytes) -> None:
        if file == wanted.files[1]:
            raise OSError(28, "No space left on device", str(file))
        real(file, data)

    monkeypatch.setattr(target, "write_output", full_after_one)
    with pytest.raises(UserError, match=r"cannot write .*: No space left"):
        write(wanted, (b"1", b"2"))
    assert [one.name for one in tmp_path.rglob("*")] == ["a"]
    monkeypatch.undo()
    write(wanted, (b"1", b"2"))
    assert [file.read_bytes() for file in wanted.files] == [b"1", b"2"]
