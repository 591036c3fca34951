"""The generated pages of the reference are complete and true; so are the lists that are not."""

import dataclasses
import inspect
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal, cast

import pytest
from cyclopts import App
from pydantic import Field

import prnas
from docs.tools import command_pages
from docs.tools.config_pages import BOUNDS, Key, sections_of
from docs.tools.meanings import meanings
from docs.tools.pages import pages, write_pages
from docs.tools.values import default, in_words, number
from prnas.cli import app
from prnas.cli.commands import COMMANDS
from prnas.config import recipes
from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.fitting.events import Listener
from prnas.io.yaml_files import parse_yaml
from prnas.retraining.seeds import SeedsResult
from prnas.runs.events import RunStart, StepEvent, Validating
from prnas.space.final_network import FinalNetwork
from prnas.space.latency import Check, LatencyFile, LatencyTable, Measured
from prnas.space.schedule import Cycle
from prnas.space.shape import CellShape
from prnas.studies.config import StudyConfig
from tests.support.described_fields import assert_described
from tests.support.fences import ROOT

CONFIGS = [SearchConfig, RetrainConfig, StudyConfig]


def keys_of(kind: type[Any]) -> dict[str, Key]:
    return {key.name: key for section in sections_of(kind) for key in section.keys}


def flat(data: Any, path: str = "") -> dict[str, Any]:
    """All values by dotted key; entries of lists of sections as `N`."""
    if isinstance(data, list) and data and isinstance(data[0], dict) and "type" not in data[0]:
        return {key: value for each in data for key, value in flat(each, f"{path}N.").items()}
    if not isinstance(data, dict) or path == "genotype.":
        return {path.removesuffix("."): data}
    found = {}
    for name, value in data.items():
        found |= flat(value, f"{path}{name}.")
    return found


# ---------------------------------------------------------------- config keys


@pytest.mark.parametrize("kind", CONFIGS)
def test_every_key_has_a_meaning(kind: type[Any]) -> None:
    for section in sections_of(kind):
        assert section.meaning, section.name
        for key in section.keys:
            assert key.values, key.name
            assert re.fullmatch(r"[A-Z0-9`].*\.", key.meaning), key


@pytest.mark.parametrize("kind", [SearchConfig, RetrainConfig])
def test_every_key_of_a_written_config_is_there(kind: type[Any]) -> None:
    written = flat(kind().to_data())
    assert len(written) > 40
    assert set(written) <= set(keys_of(kind))


@pytest.mark.parametrize("kind", [SearchConfig, RetrainConfig])
def test_defaults_are_those_that_are_written(kind: type[Any]) -> None:
    written, compared = flat(kind().to_data()), 0
    for name, key in keys_of(kind).items():
        if name in written and ".N." not in name and re.fullmatch("`.*`", key.default):
            shown = parse_yaml(f"value: {key.default.strip('`')}")
            if name not in ("space.name", "space.initial_pool", "genotype"):
                assert shown == {"value": written[name]}, name
                compared += 1
    assert compared > 40


@pytest.mark.parametrize(("kind", "name"), BOUNDS, ids=lambda one: getattr(one, "__name__", one))
def test_bounds_of_values_that_check_themselves(kind: type[Any], name: str) -> None:
    def problems(value: int) -> list[str]:
        try:
            if kind is CellShape:
                CellShape(**cast(Any, {name: value}))
                return []
            whole = {"epochs": 100_000, "grace_epochs": 0, "morphisms": 0, "candidates": 1_000}
            return [
                one for one in Cycle(**cast(Any, whole | {name: value})).problems() if name in one
            ]
        except ValueError as error:
            return [str(error)]

    least, most = BOUNDS[kind, name]
    for value in (least, most):
        found = [one for one in problems(value) if "fewer than" not in one]
        assert not found, found
    assert problems(least - 1)
    assert problems(most + 1)


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (bool, "`true` or `false`"),
        (int, "whole number"),
        (
            cast(Any, Annotated[int, Field(ge=1, le=64)]) | None,
            "whole number, at least 1 and at most 64",
        ),
        (Annotated[float, Field(gt=0, lt=1)], "number, above 0 and below 1"),
        (Literal["a", "b", "c"], "`a`, `b` or `c`"),
        (tuple[float, float], "list of 2: number each"),
        (str | None, "text, or `null`"),
    ],
)
def test_values_in_words(annotation: Any, words: str) -> None:
    assert in_words(annotation).removesuffix(", or `null`") == words.removesuffix(", or `null`")
    assert in_words(annotation).endswith(", or `null`") == (type(None) in _arguments(annotation))


def _arguments(annotation: Any) -> tuple[Any, ...]:
    return getattr(annotation, "__args__", ())


def test_numbers_and_defaults_as_files_have_them() -> None:
    assert [number(value) for value in (1_000, 0.5, 2**63, 10**15)] == [
        *("1,000", "0.5", "2^63", "10^15")
    ]
    values = [True, None, 0.0006, "auto", "", {}, (0.5, 0.9)]
    assert [default(value) for value in values] == [
        *("`true`", "`null`", "`0.0006`", "`auto`", "empty", "none", "`[0.5, 0.9]`")
    ]


def test_a_type_without_words_is_an_error() -> None:
    with pytest.raises(TypeError, match="no words"):
        in_words(Path)


def test_keys_that_images_may_choose_say_so() -> None:
    chosen = {name for name, key in keys_of(SearchConfig).items() if "`auto`" in key.values}
    assert {"data.image_size", "schedule.cycles.N.epochs", "architecture.lr"} <= chosen
    assert "weights.lr" not in chosen


# ---------------------------------------------------------------- commands


@pytest.mark.parametrize("command", [command.__name__ for command in COMMANDS])
def test_every_option_of_a_command_is_there(command: str) -> None:
    """The help itself is the measure: each option that it lists, with what it says."""
    entries = command_pages.entries()[command]
    page = pages()[f"commands/{command}"]
    arguments = cast(App, app[command]).assemble_argument_collection()
    for argument in arguments:
        names = [name for name in argument.names if not name.startswith(("--no-", "--empty-"))]
        if names and names != ["*"]:
            assert re.search(rf"^```{{option}} .*{re.escape(names[0])}\b", page, re.MULTILINE)
    assert all(entry.meaning.endswith((".", "…")) for entry in entries), entries
    assert f"({command}.md)" in pages()["commands/index"]


def test_notes_of_an_option_are_told_from_its_meaning() -> None:
    (entry,) = [one for one in command_pages.entries()["latency"] if "--device" in one.typed]
    assert entry.typed == "--accelerator, --device CHOICE"
    assert (entry.choices, entry.default) == ("auto, cpu, cuda, mps", "auto")
    assert entry.meaning == "The device to compute on."
    (out,) = [one for one in command_pages.entries()["export"] if "--out" in one.typed]
    assert out.required


# ---------------------------------------------------------------- pages


def test_pages_are_written_once_and_old_ones_go(tmp_path: Path) -> None:
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands" / "gone.md").write_text("# Gone\n")
    write_pages(tmp_path)
    assert not (tmp_path / "commands" / "gone.md").exists()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.md")}
    assert len(before) == len(COMMANDS) + 5
    write_pages(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.md")} == before


def test_no_page_has_the_name_of_one_that_sphinx_makes() -> None:
    names = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert not names & {"search", "genindex", "py-modindex"}


def test_every_recipe_is_there() -> None:
    text = pages()["recipes"]
    assert all(f"\n### `{name}`\n" in text for name in recipes.names())


# ---------------------------------------------------------------- Python


API = (ROOT / "docs" / "python-api.md").read_text(encoding="utf-8")


def test_the_api_page_has_every_public_name_and_no_other() -> None:
    directive = r"^\.\. auto(?:function|class|exception|data|module):: prnas\.(\w+)(?:\(\))?$"
    names = set(re.findall(directive, API, re.MULTILINE))
    assert names == set(prnas.__all__) - {"__version__"}
    assert "`prnas.__version__`" in API


def test_hooks_and_what_they_receive_are_described() -> None:
    for kind in (prnas.Callback, Listener):
        hooks = {name: one for name, one in vars(kind).items() if callable(one)}
        assert hooks
        assert all(inspect.getdoc(hook) for hook in hooks.values()), kind
    for kind in (RunStart, StepEvent, Validating, prnas.SearchResult, prnas.RetrainResult):
        fields = {field.name for field in dataclasses.fields(cast(Any, kind))}
        assert fields == set(meanings(kind))
    given = {
        name
        for hook in vars(prnas.Callback).values()
        if callable(hook)
        for parameter in list(inspect.signature(hook).parameters.values())[1:]
        for name in re.findall(r"\w+(?:Record|Event|Start|ating)\b", str(parameter.annotation))
    }
    assert len(given) == 7
    assert all(re.search(rf"autoclass:: prnas\.runs\.\w+\.{name}\(\)", API) for name in given)


# ---------------------------------------------------------------- files


def test_fields_of_results_of_several_seeds_are_described() -> None:
    run = {"seed": 0, "test_error": 0.1, "averaged_epochs": 5, "seconds": 1.0}
    result: Any = SimpleNamespace(**run, parameters=1, macs=2, folder=None)
    data = SeedsResult(cast(Any, None), (result, result)).to_json()
    assert_described("Results of several seeds", data)


def test_fields_of_latencies_are_described() -> None:
    table = LatencyTable(FinalNetwork(), 5, {"skip @ 36x32x32 /1": 7}, "cpu")
    measured = {"skip @ 36x32x32 /1": Measured(2, 7, 6, 8)}
    file = LatencyFile(table, {"torch": "2"}, measured, (Check(1, 2),))
    assert_described("Latencies", file.to_json())
