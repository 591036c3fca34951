"""Broken files of every kind: a message and exit code 2, never anything else."""

import contextlib
import copy
import functools
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prnas.cli import main
from prnas.config import recipes
from prnas.io.yaml_files import dump_yaml, parse_yaml
from prnas.space import zoo
from prnas.space.setting import SETTINGS, setting_to_data

GENOTYPES = [zoo.get(name).dumps() for name in ("pr-darts-dl2", "amoebanet-a")]
# Without those that leave something open: they need images, to choose by.
CONFIGS = [recipes.text(name) for name in recipes.names() if not name.endswith("pictures")]
CONFIGS.append(dump_yaml(recipes.any_recipe("p-darts").to_data()))
OWN = ["limits: {kernel_min: 1, kernel_max: 3}\ninitial_pool: [conv 1x1]\n"]
OWN += [dump_yaml(setting_to_data(SETTINGS["unrestricted"]))]
ODD_VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    2,
    10**30,
    1.5,
    1e308,
    "",
    "conv",
    "zero",
    "conv 9999x9999",
    [],
    {},
    [[[[]]]],
    {"type": "conv"},
    "<script>\N{RIGHT-TO-LEFT OVERRIDE}",
    "x" * 10_000,
]


def outcome(*arguments: str) -> tuple[int, str]:
    """The exit code and what was said on standard error; any other exception fails the test."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            main(arguments)
        except SystemExit as exit_:
            return int(exit_.code or 0), said.getvalue()
    return 0, said.getvalue()


def check(text: str | bytes, *command: str) -> int:
    """Write the text to a file, run the command on it, and expect order."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "input.file", Path(folder) / "out.svg"
        path.write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
        extra = ["-o", str(out)] if command[0] == "draw" else []
        code, said = outcome(*command, str(path), *extra)
        assert code in (0, 2)
        assert (code == 2) == bool(said)
        assert code == 0 or said.startswith("prnas: ")
        assert len(said) < 20_000
        assert "Traceback" not in said
        assert out.exists() == (code == 0 and bool(extra))
        return code


KINDS: list[tuple[list[str], str]] = [(GENOTYPES, "draw"), (CONFIGS, "config"), (OWN, "space")]
kinds = pytest.mark.parametrize(("texts", "command"), KINDS, ids=["genotype", "config", "setting"])


@kinds
def test_the_unbroken_files_are_fine(texts: list[str], command: str) -> None:
    assert [check(text, command) for text in texts] == [0] * len(texts)


@kinds
@settings(max_examples=40)
@given(data=st.data())
def test_cut_off_and_scribbled_over(texts: list[str], command: str, data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(texts))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 40)) | st.just(len(text)))
        text = text[:start] + data.draw(st.text(max_size=6)) + text[end:]
    check(text, command)


@kinds
@settings(max_examples=40)
@given(data=st.data())
def test_wrong_values_in_any_place(texts: list[str], command: str, data: st.DataObject) -> None:
    parsed = copy.deepcopy(parsed_once(data.draw(st.sampled_from(texts))))
    for _ in range(data.draw(st.integers(1, 2))):
        replace = data.draw(st.sampled_from(list(places(parsed))))
        replace(copy.deepcopy(data.draw(st.sampled_from(ODD_VALUES))))
    check(json.dumps(parsed), command)  # YAML reads JSON too


@functools.cache
def parsed_once(text: str) -> Any:
    return parse_yaml(text)


def places(data: Any) -> list[Callable[[Any], None]]:
    """A setter for every place in nested lists and objects."""

    def setter(holder: Any, key: Any) -> Callable[[Any], None]:
        return lambda value: holder.__setitem__(key, value)

    keys = data.keys() if isinstance(data, dict) else range(len(data))
    found: list[Callable[[Any], None]] = []
    for key in list(keys):
        found.append(setter(data, key))
        if isinstance(data[key], dict | list):
            found += places(data[key])
    return found


@kinds
@settings(max_examples=30)
@given(raw=st.binary(max_size=200))
def test_any_bytes(texts: list[str], command: str, raw: bytes) -> None:
    check(raw, command)


@kinds
@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        '{"a":' * 50_000,
        "- " * 5_000,
        "a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]",
        "9" * 100_000,
        "seed: " + "9" * 5_000,
        "seed: 0x" + "f" * 5_000,  # Python writes no number of so many digits
        "seed: " + "1:" * 300_000 + "1",  # base 60: hours
        "{" + ",".join(f'"k{place}":0' for place in range(300_000)) + ',"z":1,"z":2}',
        "{" + ",".join(f'"k{place}":0' for place in range(2_000)) + "}",
        "[" + "1e999," * 3_000 + "1]",
        "seed: !!bool x",
        "seed: !!int ''",
        "seed: !!timestamp x",
        "1e999999999",
        "\ufeff{}",
        "%YAML 9.9\n---\n",
        "--- a\n--- b\n",
        "!!binary xxx",
        "!!python/object/new:os.system [echo]",
        " " * 5_000_000,
        "a" * 17_000_000,
    ],
    ids=lambda text: text[:12],
)
def test_hostile_files(texts: list[str], command: str, text: str) -> None:
    if text == "\ufeff{}" and command != "draw":
        assert check(text, command) == 0  # a byte order mark and defaults: an editor's habit
    else:
        assert check(text, command) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "--resume", "x" * 5000],
        ["evaluate", "model", "-o", "x" * 5000],
        ["data", "digits", "--sample", "x" * 5000 + ".png"],
        ["export", "model", "-o", "x" * 5000],
        ["report", "x/" * 4000],
        ["data", "npz:~nobody-is-called-so/x.npz"],
        ["data", "cifar10", "--root", "~nobody-is-called-so"],
        ["space", "\x1b[2J\u202e", "too", "many"],
        ["y" * 100_000],
        ["config", "--set", "seed=0x" + "f" * 5000],
    ],
    ids=lambda words: " ".join(words)[:30].encode("unicode_escape").decode(),
)
def test_hostile_words(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, message = outcome(*arguments)
    assert code == 2
    assert message.startswith("prnas: ")
    assert "cannot write the output" not in message
    assert message.replace("\n", "").isprintable()
    assert len(message) < 20_000
    assert not list(tmp_path.iterdir())
