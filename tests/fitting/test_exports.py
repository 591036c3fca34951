"""What is exported at the end of a fit, and what is said where ONNX cannot be written."""

from pathlib import Path
from typing import Any

import pytest

from prnas.exporting.export import Exported
from prnas.fitting import exports
from prnas.io.errors import UserError


class Exporter:
    """Stands for the export itself, which has tests of its own and takes its time."""

    def __init__(self) -> None:
        self.asked: dict[str, bool] = {}

    def __call__(self, model: Any, path: Path, *, normalize: bool, force: bool) -> Exported:
        assert force
        self.asked[path.name] = normalize
        path.parent.mkdir(exist_ok=True)
        path.write_text("made")
        return Exported("python", (path,), "", "", 0.0, 0.0, 0.0, ())


def test_both_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = Exporter()
    monkeypatch.setattr(exports, "export", exporter)
    monkeypatch.setattr(exports, "check_onnx", lambda: None)
    model: Any = None
    names = ["net.py", "net.onnx"]
    assert list(exports.write_exports(model, tmp_path, pytest.fail)) == names
    assert exporter.asked == {"net.py": False, "net.onnx": True}
    exporter.asked.clear()
    assert list(exports.write_exports(model, tmp_path, pytest.fail)) == names
    assert exporter.asked == {}


def test_without_onnx_there_is_a_python_file_and_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise UserError("ONNX needs onnx: pip install onnx")

    monkeypatch.setattr(exports, "export", Exporter())
    monkeypatch.setattr(exports, "check_onnx", missing)
    said: list[str] = []
    model: Any = None
    assert list(exports.write_exports(model, tmp_path, said.append)) == ["net.py"]
    assert said == ["net.onnx is not written: ONNX needs onnx: pip install onnx"]
