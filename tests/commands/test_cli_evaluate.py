"""`prnas evaluate` and `prnas predict`: what they print and write, and what they refuse."""

import csv
import io
import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from prnas.models.names import CARD
from tests.support.command_line import bad, good, in_terminal, prnas, uncoloured
from tests.support.in_process import Cli
from tests.support.made_data import picture, picture_folder
from tests.support.made_models import save_tiny


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_tiny(tmp_path_factory.mktemp("run") / "model").parent)


@pytest.fixture(scope="module")
def pets(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("pets") / "my model"
    names = ("cat", "dog")
    return str(save_tiny(folder, class_names=names, input_shape=(3, 8, 8), config={}))


@pytest.fixture
def here(here: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setattr("prnas.models.speed.SECONDS", 0.0)
    monkeypatch.setattr("prnas.models.speed.WARM_UP_SECONDS", 0.0)
    return here


def test_a_real_process_tests_a_model(digits: str, tmp_path: Path) -> None:
    arguments = ["evaluate", digits, "--batch", "64", "--out", "results", "--threads", "1"]
    text = good(*arguments, cwd=tmp_path)
    facts = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert text.startswith("digits, test part\n")
    assert "359 in 10 classes" in facts["images"]
    data = json.loads((tmp_path / "results" / "evaluation.json").read_text(encoding="utf-8"))
    assert f"{100 * data['top1']:.1f} %" in facts["top-1"]
    assert f"{100 * data['top5']:.1f} %" in facts["top-5"]
    assert f"{data['loss']:.4f}" in facts["loss"]
    assert "cpu, 1 thread" in facts["device"]
    assert re.search(r"batch of 1 +latency [\d.]+ ms .* calls\), throughput [\d,.]+ images/s", text)
    assert re.search(r"batch of 64 +latency", text)
    # Classes, the worst first.
    start = text.index("accuracy\n") + len("accuracy\n")
    shares = re.findall(r"^\d +\d+ +\d+ +([\d.]+) %$", text[start:], re.MULTILINE)
    assert len(shares) == 10
    assert [float(one) for one in shares] == sorted(float(one) for one in shares)
    counts = np.array(data["confusion"])
    assert counts.shape == (10, 10)
    assert counts.sum() == data["images"] == 359
    counts[np.diag_indices(10)] = 0
    true, taken = np.unravel_index(counts.argmax(), counts.shape)
    assert f"'{true}' was taken for '{taken}': {counts.max()} of " in text
    assert text.endswith("wrote results/evaluation.json\nwrote results/confusion.svg\n")
    svg = (tmp_path / "results" / "confusion.svg").read_text(encoding="utf-8")
    title = ElementTree.fromstring(svg.encode()).findtext("{http://www.w3.org/2000/svg}title")  # noqa: S314
    assert title is not None
    assert title.startswith(f"{Path(digits).name} on digits, test part: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results"]


def test_json_is_all_there_is(here: Cli, digits: str, tmp_path: Path) -> None:
    out = here.good("evaluate", digits, "--json", "--picture", "c.svg", "-o", "a/b")
    data = json.loads(out)
    assert [one["batch"] for one in data["speed"]] == [1, 128]
    assert data["model"] == digits
    assert (tmp_path / "a" / "b" / "evaluation.json").read_text(encoding="utf-8") == out
    assert (tmp_path / "c.svg").read_bytes() == (tmp_path / "a/b/confusion.svg").read_bytes()
    assert len([line for line in out.splitlines() if re.match(r"  \[\d", line)]) == 10
    quick = json.loads(here.good("evaluate", digits, "--json", "--skip-speed", "--part", "train"))
    assert (quick["speed"], quick["images"], quick["part"]) == ([], 1438, "train")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "c.svg"]


def test_other_pictures(here: Cli, digits: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    text = here.good("evaluate", digits, "--skip-speed", "--picture", "c.png")
    assert text.endswith("wrote c.png\n")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_a_folder_of_new_images(here: Cli, pets: str, tmp_path: Path) -> None:
    root = picture_folder(tmp_path / "new", 5)
    arguments = ["evaluate", pets, "--data", "folder:new", "--skip-speed"]
    text = here.good(*arguments, "--part", "all")
    assert text.startswith("folder:new, both parts\n")
    assert "10 in 2 classes" in text
    assert "top-5" not in text
    (root / "cat" / "broken.png").write_text("x")
    assert "data.broken=skip" in here.bad(*arguments)
    code, out, err = here.run(*arguments, "--part", "all", "--set", "data.broken=skip")
    assert code == 0
    assert "10 in 2 classes" in out
    assert err.startswith("note: skipped 1 broken image")


def test_many_classes_are_cut_short(here: Cli, tmp_path: Path) -> None:
    names = tuple(f"c{one:02}" for one in range(25))
    pixels = np.random.default_rng(0).integers(0, 256, (100, 6, 6), np.uint8)
    labels = np.arange(100) % 25
    np.savez(
        tmp_path / "x.npz",
        x_train=pixels,
        y_train=labels,
        x_test=pixels[:72],
        y_test=labels[:72] % 24,
        class_names=np.array(names),
    )
    model = save_tiny(tmp_path / "m", class_names=names, input_shape=(1, 6, 6), config={})
    text = here.good("evaluate", str(model), "--data", "npz:x.npz", "--skip-speed")
    assert len(re.findall(r"^c\d\d ", text, re.MULTILINE)) == 20
    assert "... and 4 classes that are recognised more often" in text
    assert "1 class has no images" in text


def test_in_a_terminal_it_ends_with_what_to_do_next(digits: str) -> None:
    text = uncoloured(in_terminal(200, "evaluate", digits, "--skip-speed"))
    assert f"next: prnas evaluate {digits} -o evaluation" in text
    assert f"next: prnas predict {digits} IMAGE" in text


MISTAKES = [
    (["nowhere"], "nowhere is not a trained model. Expected a folder with"),
    (["MODEL", "--data", "digts"], "Did you mean 'digits'?"),
    (["MODEL", "--data", "cifar10"], "cifar10 has colour images, the model takes grey images"),
    (["MODEL", "--data", "folder:pictures"], "has colour images of 8x8, the model takes grey"),
    (["MODEL", "--data", "folder:nothing"], "there is no such folder"),
    (["MODEL", "--data", "npz:other.npz"], "only the model has '2', '3', '4', '5', '6' and 3 more"),
    (["MODEL", "--data", "fashion-mnist", "--data-root", "no"], "there is no folder 'no'"),
    (["MODEL", "--part", "valid"], "valid"),
    (["MODEL", "--batch", "0"], "--batch: must be from 1 to 1,000,000, got 0"),
    (["MODEL", "--batch", "1.5"], "a whole number is needed"),
    (["MODEL", "--threads", "0"], "threads must be from 1 to 1024"),
    (["MODEL", "--device", "tpu"], "tpu"),
    (["MODEL", "--set", "data.flip=true"], "no 'flip' in 'data'"),
    (["MODEL", "--set", "data.image_size=4"], "has grey images of 4x4, the model takes grey"),
    (["MODEL", "--set", "data.test_share=2"], "test_share"),
    (["MODEL", "--out", "file"], "file is not a folder"),
    (["MODEL", "--out", "file/inner"], "cannot make the folder"),
    (["MODEL", "--picture", "a.jpg"], "--picture must end in .svg, .png, .pdf"),
    (["MODEL", "--picture", "no/a.svg"], "there is no folder"),
]


@pytest.mark.parametrize(("arguments", "said"), MISTAKES, ids=lambda one: " ".join(one)[:40])
def test_mistakes(here: Cli, digits: str, tmp_path: Path, arguments: list[str], said: str) -> None:
    picture_folder(tmp_path / "pictures", 2)
    (tmp_path / "file").write_text("x")
    pixels = np.zeros((4, 8, 8), np.uint8)
    np.savez(tmp_path / "other.npz", x_train=pixels, y_train=np.arange(4) % 2)
    before = sorted(tmp_path.rglob("*"))
    words = [digits if one == "MODEL" else one for one in arguments]
    assert said in here.bad("evaluate", *words)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_mistake_in_a_real_process_is_one_message(digits: str, tmp_path: Path) -> None:
    said = bad("evaluate", digits, "--data", "cifar10", cwd=tmp_path)
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_model_is_refused(here: Cli, digits: str, tmp_path: Path) -> None:
    shutil.copytree(digits, tmp_path / "copy")
    card = tmp_path / "copy" / "model" / CARD
    card.write_text(card.read_text(encoding="utf-8").replace('"cells": 3', '"cells": "x"'))
    for command in (["evaluate", "copy"], ["predict", "copy", "a.png"]):
        assert "cells" in here.bad(*command)


def test_a_refusal_leaves_no_folder_behind(here: Cli, tmp_path: Path) -> None:
    model = save_tiny(tmp_path / "model")
    data = json.loads((model / CARD).read_text(encoding="utf-8"))
    del data["card_sha256"]
    (model / CARD).write_text(json.dumps(data | {"std": [1e-40]}), encoding="utf-8")
    said = here.bad("evaluate", str(model), "--skip-speed", "-o", str(tmp_path / "out"))
    assert "not finite" in said
    assert not (tmp_path / "out").exists()


def test_help() -> None:
    text = good("evaluate", "--help")
    assert "[choices: test, train, all]" in " ".join(text.replace("│", " ").split())
    assert "--no-" not in text
    assert "Usage: prnas evaluate [OPTIONS] MODEL\n" in text


@pytest.mark.parametrize("command", ["evaluate", "predict", "export"])
def test_a_run_without_a_trained_model(here: Cli, tmp_path: Path, command: str) -> None:
    arguments = {"evaluate": [], "predict": ["a.png"], "export": ["-o", "net.onnx"]}[command]
    run = tmp_path / "first"
    run.mkdir()
    (run / "config.yaml").write_text("task: search\n")
    assert "go on with `prnas search --resume first`" in here.bad(command, "first", *arguments)
    (run / "genotype.json").write_text("{}")
    assert "first: `prnas retrain first`" in here.bad(command, "first", *arguments)
    (run / "config.yaml").write_text("task: retrain\n")
    assert "go on with `prnas retrain --resume first`" in here.bad(command, "first", *arguments)


# ----------------------------------------------------------------------------------- predict


def test_predictions_of_files_and_folders(here: Cli, pets: str, tmp_path: Path) -> None:
    picture_folder(tmp_path / "new", 2)
    odd = picture(tmp_path / "a\x1b[31m\nb.png", 9)
    text = here.good("predict", pets, "new", odd.name, "new/dog/1.png")
    lines = text.splitlines()
    assert "\x1b" not in text
    paths = ["new/cat/0.png", "new/cat/1.png", "new/dog/0.png", "new/dog/1.png"]
    shown = [*paths, "a\\x1b[31m\\nb.png", "new/dog/1.png"]
    assert [line.split("  ")[0] for line in lines] == shown
    pattern = r" +(cat|dog) +([\d.]+) %  (cat|dog) +([\d.]+) %$"
    shown_classes = [re.search(pattern, line) for line in lines]
    data = json.loads(here.good("predict", pets, "new", "--json", "--top", "1"))
    assert [one["path"] for one in data] == paths
    for found, one in zip(shown_classes[:4], data, strict=True):
        assert found is not None
        assert {found[1], found[3]} == {"cat", "dog"}
        (first,) = one["classes"]
        assert found[1] == first["name"]
        assert float(found[2]) == pytest.approx(100 * first["probability"], abs=0.06)


def test_predictions_as_csv(here: Cli, pets: str, tmp_path: Path) -> None:
    picture_folder(tmp_path / "a, b", 1)
    odd = picture(tmp_path / "two\nlines.png", 9)
    rows = list(csv.DictReader(io.StringIO(here.good("predict", pets, "a, b", odd.name, "--csv"))))
    data = json.loads(here.good("predict", pets, "a, b", odd.name, "--json"))
    assert [row["image"] for row in rows] == [one["path"] for one in data]
    assert "two\nlines.png" in {row["image"] for row in rows}
    for row, one in zip(rows, data, strict=True):
        first, second = one["classes"]
        assert (row["class"], float(row["probability"])) == (first["name"], first["probability"])
        assert (row["class_2"], float(row["probability_2"])) == tuple(second.values())
        assert len(row) == 5
    single = here.good("predict", pets, odd.name, "--csv", "--top", "1")
    assert single.startswith('image,class,probability\n"two\nlines.png",')
    assert "choose one of --csv and --json" in here.bad("predict", pets, "x", "--csv", "--json")


def test_a_broken_image_in_a_real_process(pets: str, tmp_path: Path) -> None:
    picture_folder(tmp_path, 2)
    (tmp_path / "cat" / "broken.png").write_text("x")
    (tmp_path / "cat" / "notes.txt").write_text("x")
    done = prnas("predict", pets, ".", "--top", "1", cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stdout.splitlines()) == 4
    assert done.stderr.splitlines() == [
        "prnas: cat/broken.png cannot be read as an image: it is in no known image format",
        "note: ignored 1 file of other kinds",
    ]
    done = prnas("predict", pets, "cat/broken.png", "--json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)) == (2, [])
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name image files, or folders of them"),
        (["empty"], "there are no images in empty (1 file of other kinds)"),
        (["gone.png"], "gone.png cannot be read as an image: No such file"),
        (["a.png", "--top", "0"], "--top: must be 1 or more, got 0"),
        (["a.png", "--batch", "0"], "--batch: must be"),
        (["a.png", "--top", "two"], "a whole number is needed"),
        (["a\0.png"], "cannot be read as an image"),
        (["https://example.org/a.png"], "https://example.org/a.png is a web address"),
    ],
)
def test_mistakes_of_predict(
    here: Cli, pets: str, tmp_path: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notes.txt").write_text("x")
    assert said in here.bad("predict", pets, *arguments)


def test_models_that_image_files_cannot_feed(here: Cli, tmp_path: Path) -> None:
    save_tiny(tmp_path / "m", input_shape=(4, 8, 8))
    assert "4 channels" in here.bad("predict", "m", "a.png")


def test_predictions_in_a_terminal(pets: str, tmp_path: Path) -> None:
    root = picture_folder(tmp_path, 1)
    text = uncoloured(in_terminal(300, "predict", pets, str(root)))
    assert text.count(" %") == 4
    assert f"next: prnas evaluate '{pets}'" in text
