"""`prnas data`: what it prints, what it writes, what it refuses."""

import io
import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.support.command_line import modules_after
from tests.support.in_process import Cli
from tests.support.made_data import picture_folder


@pytest.fixture
def cli(here: Cli) -> Cli:
    return here.command("data")


def test_the_list(cli: Cli, tmp_path: Path) -> None:
    text = cli.good()
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}
    assert "folder:PATH" in rows
    assert "CC BY 4.0" in text
    assert str(tmp_path / "kept") in text
    assert "\x1b" not in text
    listed = {one["name"]: one for one in json.loads(cli.good("--json"))}
    assert list(listed) == ["digits", "cifar10", "cifar100", "fashion-mnist"]
    assert listed["digits"]["where"] == "in the package"
    assert listed["cifar10"]["where"] == "downloaded on first use"
    names = [f"data_batch_{number}.bin" for number in range(1, 6)] + ["test_batch.bin"]
    for name in names:
        path = tmp_path / "kept" / "cifar-10-batches-bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    listed = {one["name"]: one for one in json.loads(cli.good("--json"))}
    assert listed["cifar10"]["where"] == str(tmp_path / "kept" / "cifar-10-batches-bin")


def test_the_list_loads_nothing_heavy() -> None:
    assert not modules_after("data") & {"torch", "numpy", "PIL"}


def test_digits_and_their_sample(cli: Cli, tmp_path: Path) -> None:
    text = cli.good("digits", "--sample", "out.png", "--cutout", "3")
    for words in (
        "1,438 for training",
        "359 for testing",
        "8x8 grey",
        "139 to 146",
        "CC BY 4.0",
        "in memory",
    ):
        assert words in text
    assert text.endswith("wrote out.png\n")
    with Image.open(tmp_path / "out.png") as sheet:
        assert sheet.width > 800
        assert sheet.height > 400
        sheet.load()
    again = ["digits", "--sample", "two.png", "--cutout", "3", "--json"]
    facts = json.loads(cli.good(*again))
    assert (facts["train"], facts["shape"], len(facts["classes"])) == (1438, [1, 8, 8], 10)
    assert facts["classes"][3] == {"name": "3", "train": 146, "test": 37}
    assert abs(facts["mean"][0] - 0.3052) < 1e-4
    first = (tmp_path / "out.png").read_bytes()
    assert first == (tmp_path / "two.png").read_bytes()
    cli.good("digits", "--sample", "two.png", "--cutout", "3", "--seed", "1")
    assert first != (tmp_path / "two.png").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.png", "two.png"]


def test_a_folder_with_odd_classes_and_a_broken_image(cli: Cli, tmp_path: Path) -> None:
    root = picture_folder(tmp_path / "my images", 3)
    (root / "dog").rename(root / "do\x1b[31mg")
    (root / "cat" / "broken.png").write_bytes(b"x")
    name = "folder:my images"
    code, out, err = cli.run(name)
    assert (code, out) == (2, "")
    assert "broken.png cannot be read as an image" in err
    text = cli.good(name, "--skip-broken", "--image-size", "20", "--sample", "out.png")
    assert "skipped 1 broken image" in text
    assert "20x20 colour" in text
    assert "do\\x1b[31mg" in text
    assert "\x1b" not in text
    facts = json.loads(cli.good(name, "--skip-broken", "--json"))
    assert facts["shape"] == [3, 30, 30]
    assert [one["name"] for one in facts["classes"]] == ["cat", "do\x1b[31mg"]


def test_a_sheet_of_many_classes_and_four_channels(cli: Cli, tmp_path: Path) -> None:
    labels = np.arange(60) % 30
    pixels = np.zeros((60, 400, 6, 4), np.uint8)
    np.savez(tmp_path / "set.npz", x_train=pixels, y_train=labels)
    text = cli.good("npz:set.npz", "--sample", "out.png", "--no-flip")
    assert "6x400 4 channels" in text
    assert "30, of 1 training images each" in text
    with Image.open(io.BytesIO((tmp_path / "out.png").read_bytes())) as sheet:
        assert max(sheet.size) < 3000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["digts"], "Did you mean 'digits'?"),
        (["--sample", "out.png"], "--sample needs the name of a set"),
        (["digits", "--sample", "out.jpg"], "must end in .png"),
        (["digits", "--sample", "no/such/out.png"], "there is no folder no/such"),
        (["digits", "--sample", "folder.png"], "folder.png is a folder"),
        (["digits", "--image-size", "0"], "image_size"),
        (["digits", "--image-size", "1.5"], "1.5"),
        (["digits", "--cutout", "-1"], "cutout"),
        (["digits", "--seed", "-1"], "seed"),
        (["cifar10", "--root", "nowhere"], "there is no folder 'nowhere'"),
        (["folder:"], "Choose from"),
        (["npz:folder.png"], "cannot read folder.png"),
        (["digits", "more"], "more"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes(arguments: list[str], said: str, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    assert said in cli.bad(*arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.png"]


def test_what_to_do_next(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a terminal, the next command is one that can be typed."""
    picture_folder(tmp_path / "a b", 2)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    for arguments, wanted in (
        ([], ["prnas", "data", "digits", "--sample", "digits.png"]),
        (["folder:a b"], ["prnas", "data", "folder:a b", "--sample", "sample.png"]),
        (["folder:a b", "--sample", "x.png"], ["prnas", "search", "--data", "folder:a b"]),
    ):
        last = cli.good(*arguments).split("next: ")[-1]
        assert shlex.split(last) == wanted


def test_as_a_process(tmp_path: Path) -> None:
    for arguments, code in ((["digits", "--sample", "out.png"], 0), (["digts"], 2)):
        done = subprocess.run(
            [sys.executable, "-m", "prnas", "data", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert done.returncode == code, done.stderr
        assert bool(done.stdout) != bool(done.stderr)
