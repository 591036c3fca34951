"""From a file to probabilities: an exported model reads pictures as `prnas predict` does."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from prnas.exporting.export import export
from prnas.models.model import Model
from prnas.models.predict import predict
from tests.support.exported import DOCS, elsewhere
from tests.support.small_models import card, colour_card, trained

NETS = """
import sys
sys.modules["prnas"] = sys.modules["safetensors"] = None
import json, torch
torch.set_num_threads(1)
import colours, grey
found = {}
for name in sys.argv[1:]:
    found[name] = [module.predict(name, module.load()) for module in (colours, grey)]
found["alone"] = colours.predict(sys.argv[1])
print(json.dumps(found))
"""
WITH_ONNX = """
import sys
sys.modules["prnas"] = sys.modules["torch"] = None
import json
for path in sys.argv[2:]:
    exec(sys.argv[1])
    print(json.dumps([dict(zip(class_names, probabilities.tolist())), reading]))
"""


def write_pictures(folder: Path) -> list[str]:
    """Of many kinds, and all of other sizes than a model takes."""
    source = np.random.default_rng(0)

    def noise(*shape: int) -> np.ndarray:
        coarse = source.integers(0, 256, shape).astype(np.uint8)
        return coarse.repeat(4, 0).repeat(4, 1)

    colour, grey = Image.fromarray(noise(30, 41, 3)), Image.fromarray(noise(9, 7))
    turned = Image.Exif()
    turned[0x0112] = 6
    colour.save(folder / "turned.jpg", exif=turned, quality=90)
    colour.resize((640, 500)).save(folder / "large.jpeg", quality=95)
    colour.save(folder / "wide.png")
    colour.resize((16, 16)).save(folder / "as it is.bmp")
    colour.quantize(20).save(folder / "palette.gif")
    grey.save(folder / "grey.png")
    grey.save(folder / "grey with a hole.png", transparency=int(np.asarray(grey)[0, 0]))
    Image.fromarray(noise(8, 9, 4)).save(folder / "hole.png")
    deep = (np.asarray(grey).astype(np.uint16) * 257) ^ 99
    Image.fromarray(deep).save(folder / "deep.png")
    Image.fromarray(noise(6, 5) > 100).save(folder / "bits.tiff")
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def models() -> tuple[Model, Model]:
    """One for colours, and one for grey images that are not square."""
    return trained(colour_card()), trained(card(input_shape=(1, 6, 9)))


def test_the_python_file_predicts_the_same(models: tuple[Model, Model], tmp_path: Path) -> None:
    names = write_pictures(tmp_path)
    for model, name in zip(models, ("colours", "grey"), strict=True):
        export(model, tmp_path / f"{name}.py")
    found = json.loads(elsewhere(NETS, tmp_path, *names))
    assert len(names) == 10
    for name in names:
        for model, theirs in zip(models, found[name], strict=True):
            (ours,) = predict(model, tmp_path / name, top=3).predictions
            assert [score.name for score in ours.classes] == [one for one, _ in theirs]
            probabilities = [score.probability for score in ours.classes]
            assert probabilities == pytest.approx([one for _, one in theirs], abs=1e-5), name
    assert found["alone"] == found[names[0]][0]
    # They are not all alike: a picture that is read otherwise would be noticed.
    assert len({round(found[name][0][0][1], 3) for name in names}) > 5


def test_the_docs_read_a_picture_for_onnx(models: tuple[Model, Model], tmp_path: Path) -> None:
    """The lines of the docs, with Pillow and numpy alone."""
    model, _ = models
    names = write_pictures(tmp_path)
    export(model, tmp_path / "net.onnx", normalize=True)
    section = DOCS.read_text(encoding="utf-8").split("\n## From a file to pixels\n")[1]
    program = section.split("```python\n")[1].split("```")[0]
    some = ("large.jpeg", "turned.jpg", "wide.png")
    answers = elsewhere(WITH_ONNX, tmp_path, program, *some).splitlines()
    for name, answer in zip(some, answers, strict=True):
        assert name in names
        theirs, reading = json.loads(answer)
        (ours,) = predict(model, tmp_path / name, top=3).predictions
        expected = {score.name: score.probability for score in ours.classes}
        assert theirs == pytest.approx(expected, abs=1e-5)
        assert reading == model.card.reading
        assert "16 x 16" in reading["size"]


def test_cards_say_it_too(tmp_path: Path) -> None:
    export(trained(card()), tmp_path / "net")
    told = json.loads((tmp_path / "net" / "model.json").read_text())["reading"]
    assert told["color"].startswith("grey")
    export(trained(card(input_shape=(2, 5, 5), mean=(0.1, 0.2), std=(1.0, 2.0))), tmp_path / "two")
    assert "reading" not in json.loads((tmp_path / "two" / "model.json").read_text())
