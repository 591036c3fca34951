"""Exports, loaded in processes without prnas by the very lines of the docs; and failed checks."""

import inspect
import json
import re
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

import prnas
from prnas.cli import main
from prnas.exporting import onnx as onnx_file
from prnas.exporting import verify as checking
from prnas.exporting.export import export
from prnas.io.errors import UserError
from prnas.io.extras import EXTRAS
from prnas.models.card import ModelCard
from prnas.models.model import Model, load, network_of, save_model
from prnas.nets import plain
from prnas.nets.network import build
from tests.support.command_line import prnas as run
from tests.support.exported import DOCS, elsewhere
from tests.support.settings import GENOTYPE201
from tests.support.small_models import ROWS, card, colour_card, logits_of, some_pixels, trained

# Each of the docs' programs in a process of its own, forked when PyTorch is there.
PROGRAM = """
import sys
sys.modules["prnas"] = None
import json, os, torch
torch.set_num_threads(1)
numbers = torch.frombuffer(bytearray(open("pixels", "rb").read()), dtype=torch.float32)
for program in sys.argv[2:]:
    child = os.fork()
    if child == 0:
        for pixels in numbers.view(-1, *json.loads(sys.argv[1])).split([1, 4]):
            exec(program)
            print(json.dumps([logits.tolist(), list(class_names)]), flush=True)
        sys.exit()
    status = os.waitpid(child, 0)[1]
    assert status == 0, program
"""


@pytest.fixture(scope="module")
def model() -> Model:
    return trained(card())


class Exports:
    """A folder with the model in the formats of the docs, each made when it is first needed."""

    def __init__(self, folder: Path, model: Model) -> None:
        self.folder, self.model, self.run = folder, model, folder / "run"
        save_model(self.run / "model", model.network, model.card)

    def file(self, name: str) -> Path:
        if not (self.folder / name).exists():
            if name == "net.onnx":
                self._onnx_by_the_command_line()
            else:
                export(self.run, self.folder / name, normalize=name == "net.pt2")
        return self.folder / name

    def _onnx_by_the_command_line(self) -> None:
        done = run("export", "run", "-o", "net.onnx", "--normalize", cwd=self.folder)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""  # the exporters' chatter is nobody's concern
        said = done.stdout.splitlines()
        assert said[0].startswith("wrote    net.onnx (")
        assert "pixels from 0 to 1" in said[1]
        assert "onnxruntime, on random images in batches of 1 and 3" in said[2]
        assert re.search(r"largest difference \d\.\de-\d\d, of logits up to \d", said[3])
        assert re.search(r"own rounding: \d\.\de-\d\d", said[4])
        assert "onnxruntime.InferenceSession('net.onnx')" in said[5]


@pytest.fixture(scope="module")
def exports(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Exports:
    return Exports(tmp_path_factory.mktemp("exports"), model)


HEADINGS = ("ONNX", "A torch.export program", "A Python file", "Safetensors and JSON")


def test_the_docs_load_it_elsewhere(exports: Exports, model: Model, tmp_path: Path) -> None:
    for name in ("net.onnx", "net.pt2", "net.py", "net"):
        source = exports.file(name)
        if source.is_dir():
            shutil.copytree(source, tmp_path / name)
        else:
            shutil.copy(source, tmp_path)
        if name == "net.py":
            shutil.copy(source.with_suffix(".safetensors"), tmp_path)
    programs: list[str] = []
    for heading in HEADINGS:
        section = DOCS.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
        programs += re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    pixels = some_pixels(model.card, 5)
    (tmp_path / "pixels").write_bytes(pixels.numpy().tobytes())
    shape = json.dumps(model.card.input_shape)
    answers = [*map(json.loads, elsewhere(PROGRAM, tmp_path, shape, *programs).splitlines())]
    assert [len(logits) for logits, _ in answers] == [1, 4] * len(HEADINGS)
    batches = pixels.split([1, 4]) * len(HEADINGS)
    for (logits, class_names), images in zip(answers, batches, strict=True):
        assert class_names == list(model.class_names)
        expected = logits_of(model, images)
        torch.testing.assert_close(torch.tensor(logits), expected, rtol=0, atol=1e-5)


def test_the_python_file_tries_itself(exports: Exports, model: Model) -> None:
    folder = exports.file("net.py").parent
    said = elsewhere("import runpy; runpy.run_path('net.py', run_name='__main__')", folder)
    parameters = sum(one.numel() for one in model.network.parameters())
    assert said.startswith(f"{parameters:,} parameters\n")
    assert float(said.split()[-1]) < 1e-5


def test_prnas_reads_its_own(exports: Exports, model: Model, tmp_path: Path) -> None:
    pixels = some_pixels(model.card)
    done = export(model, tmp_path / "other.safetensors")
    assert [file.name for file in done.files] == ["other.safetensors", "other.json"]
    assert done.largest_difference == 0
    for path in (exports.file("net"), *done.files):
        again = prnas.load(path)
        assert again.card == model.card
        assert torch.equal(logits_of(again, pixels), logits_of(model, pixels))


def test_nothing_of_this_machine_is_handed_over(exports: Exports) -> None:
    with zipfile.ZipFile(exports.file("net.pt2")) as archive:
        program = b"".join(archive.read(name) for name in archive.namelist())
    source = str(Path(prnas.__file__).parent).encode()
    for data in (program, exports.file("net.onnx").read_bytes()):
        assert source not in data
        assert b"site-packages" not in data


@pytest.mark.parametrize(
    "known",
    [
        colour_card(genotype=ROWS, stem="imagenet", output="mean"),
        pytest.param(colour_card(genotype=GENOTYPE201, cells=3), marks=pytest.mark.slow),
    ],
)
def test_onnx_without_normalisation_for_other_networks(known: ModelCard, tmp_path: Path) -> None:
    model = trained(known)
    done = export(model, tmp_path / "net.onnx")
    assert done.takes.startswith("normalised images")
    import onnxruntime

    session = onnxruntime.InferenceSession(tmp_path / "net.onnx")
    (images,), (logits,) = session.get_inputs(), session.get_outputs()
    assert (images.name, images.shape) == ("images", ["batch", 3, 16, 16])
    assert (logits.name, logits.shape) == ("logits", ["batch", 3])
    pixels = some_pixels(known, 5)
    found = session.run(None, {"images": ((pixels - model.mean) / model.std).numpy()})[0]
    expected = logits_of(model, pixels)
    torch.testing.assert_close(torch.from_numpy(found), expected, rtol=0, atol=1e-5)
    metadata = session.get_modelmeta().custom_metadata_map
    assert metadata["input"] == done.takes
    assert known.genotype is not None
    assert json.loads(metadata["model.json"])["genotype"] == known.genotype.to_json()


def test_a_model_in_training_is_exported_and_left_as_it_was(tmp_path: Path) -> None:
    known = card()
    ready = trained(known)
    assert known.genotype is not None
    network = build(known.genotype, 4, 3, 3, input_channels=1, auxiliary=True)
    network.load_state_dict(ready.network.state_dict(), strict=False)
    model = Model(network.double(), known).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    export(model, tmp_path / "net")
    assert model.training
    assert all(torch.equal(before[name], one) for name, one in model.state_dict().items())
    pixels = some_pixels(known)
    again = load(tmp_path / "net")
    assert torch.equal(logits_of(again, pixels), logits_of(ready, pixels))


@pytest.mark.parametrize("name", ["net", "net.pt2"])
def test_a_failed_check_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Model, name: str
) -> None:
    monkeypatch.setattr(checking.ReferenceBatch, "allowed", -1.0)
    with pytest.raises(UserError, match="the check failed, nothing was written"):
        export(model, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_onnx_file_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exports: Exports
) -> None:
    """The ONNX file of another network, one weight of which differs."""
    other = trained(card())
    other.network.classifier.bias.data[1] += 1e-3
    wrong = exports.file("net.onnx").read_bytes()
    monkeypatch.setattr(onnx_file, "_to_onnx", lambda *_: wrong)
    target = tmp_path / "net.onnx"
    target.write_bytes(b"an older one")
    with pytest.raises(UserError, match=r"logits of onnxruntime differ by up to 0\.001"):
        export(other, target, normalize=True, force=True)
    assert target.read_bytes() == b"an older one"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("count_include_pad=False", "count_include_pad=True"), "up to"),
        (("x = F.relu(x)", "x = plan_cells(x)"), "ends with NameError: .*plan_cells"),
    ],
)
def test_a_wrong_python_file_is_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: Model,
    change: tuple[str, str],
    said: str,
) -> None:
    read = inspect.findsource

    def changed(made: Any) -> tuple[list[str], int]:
        lines, number = read(made)
        return [line.replace(*change) for line in lines], number

    assert change[0] in inspect.getsource(plain)
    monkeypatch.setattr(inspect, "findsource", changed)
    with pytest.raises(UserError, match=f"the check failed, nothing was written: .*{said}"):
        export(model, tmp_path / "net.py")
    assert list(tmp_path.iterdir()) == []


def test_the_source_code_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Model
) -> None:
    code = plain.conv.__code__.replace(co_filename=str(tmp_path / "gone.pyc"))
    monkeypatch.setattr(plain.conv, "__code__", code)
    monkeypatch.setattr(plain, "__file__", code.co_filename)
    monkeypatch.setattr(plain, "__spec__", None)
    monkeypatch.setattr(plain, "__loader__", None)
    with pytest.raises(UserError, match=r"source code of prnas\.nets\.plain, which is missing"):
        export(model, tmp_path / "net.py")
    assert list(tmp_path.iterdir()) == []


def test_a_broken_model_is_told(tmp_path: Path) -> None:
    known = card()
    broken = Model(network_of(known), known).eval()
    broken.network.classifier.bias.data[0] = torch.nan
    with pytest.raises(UserError, match="not finite"):
        export(broken, tmp_path / "net.py")


@pytest.mark.parametrize("name", EXTRAS["onnx"].packages)
def test_the_extra_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Model, name: str
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        UserError, match=rf"^ONNX needs {name}, which cannot be imported: pip install"
    ):
        export(model, tmp_path / "net.onnx")


def test_json_of_the_command_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    model: Model,
) -> None:
    save_model(tmp_path, model.network, model.card)
    monkeypatch.chdir(tmp_path)
    main(["export", ".", "-o", "new/net.py", "--json"])
    data = json.loads(capsys.readouterr().out)
    assert data["format"] == "python"
    assert data["files"] == ["new/net.safetensors", "new/net.py"]
    assert data["largest_difference"] <= 1e-5 * max(1, data["largest_logit"])
    assert (tmp_path / "new" / "net.py").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([".", "-o", "model.safetensors"], "model.safetensors is there already; --force"),
        ([".", "-o", "net.py", "--normalize"], "a Python file has a function for it"),
        (["nowhere", "-o", "net.py"], "nowhere is not a trained model"),
        ([".", "-o", "net.pth"], "no format has the ending '.pth'"),
        (
            [".", "-o", "model.json/net.pt2"],
            "cannot write model.json/net.pt2: model.json is a file",
        ),
        (
            [".", "-o", "net.onnx"],
            "cannot be imported: pip install onnxscript (the extra 'onnx' of prnas)",
        ),
        ([".", "-o", "net", "--format", "tflite"], "tflite"),
        (["."], "--out"),
    ],
)
def test_mistakes_on_the_command_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    model: Model,
    arguments: list[str],
    said: str,
) -> None:
    save_model(tmp_path, model.network, model.card)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(SystemExit) as ended:
        main(["export", *arguments])
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before
