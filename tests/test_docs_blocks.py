"""What readers copy from the docs works: commands are understood, programs run, files are valid.

Tutorials are followed step by step in test_tutorials.py; docs/export.md has its own tests in
tests/exporting.
"""

import ast
import inspect
import json
import re
import shlex
import shutil
import tomllib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from cyclopts import MissingArgumentError
from PIL import Image

import prnas
from docs.tools.config_pages import sections_of
from prnas.cli import app
from prnas.config import recipes
from prnas.config.files import BASE, read_draft
from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.fitting.api import FitResult
from prnas.io.yaml_files import parse_yaml
from prnas.models import speed
from prnas.models.card import ModelCard
from prnas.models.model import network_of, save_model
from prnas.report import tidy
from prnas.runs.named import draft_of
from prnas.runs.record_versions import header_line
from prnas.space.genotype import Genotype
from prnas.space.setting import setting_from_data
from prnas.studies.config import StudyConfig
from tests.support.described_fields import assert_described
from tests.support.fences import ROOT, Block, assert_shown, blocks_of
from tests.support.in_process import Cli
from tests.support.made_models import save_tiny
from tests.support.old_runs import OLD_RUNS

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "studies/README.md")),
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if "generated" not in path.parts),
]
BLOCKS = [block for page in PAGES for block in blocks_of(page)]
# Languages that are tested, illustrations in plain text, and directives, which Sphinx checks.
LANGUAGES = {"python", "sh", "console", "yaml", "json", "r", "text", "bibtex", ""}
SEARCH_KEYS, RETRAIN_KEYS = (
    {key.name for section in sections_of(kind) for key in section.keys}
    for kind in (SearchConfig, RetrainConfig)
)
KEYS = SEARCH_KEYS | RETRAIN_KEYS
SECTIONS = {section.name for kind in (SearchConfig, RetrainConfig) for section in sections_of(kind)}
TINY = ROOT / "examples" / "tiny.yaml"


def of(*languages: str) -> list[Block]:
    return [block for block in BLOCKS if block.language in languages]


def test_every_block_says_its_language() -> None:
    others = {block.language for block in BLOCKS} - LANGUAGES
    assert all(re.match(r"\{[\w-]+\}", language) for language in others), others


# Words that stand for something still to be written.
PLACEHOLDER = re.compile(r"\b(TODO|TBD|FIXME|TIMED|XXX+|\?\?\?)\b")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: page.name)
def test_nothing_is_left_to_be_filled_in(page: Path) -> None:
    assert PLACEHOLDER.findall(page.read_text(encoding="utf-8")) == []


# ---------------------------------------------------------------- commands


def parse(words: list[str]) -> tuple[Callable[..., Any], inspect.BoundArguments]:
    """As the command line understands it; nothing runs."""
    command, bound, _ = app.parse_args(words, print_error=False, exit_on_error=False)
    return command, bound


def prnas_words(line: str) -> list[str] | None:
    """The arguments of `prnas` in a shell's line, up to a redirection; `None` if it has none."""
    words = shlex.split(re.sub(r"\$\w+", "1", line), comments=True)
    for number, word in enumerate(words):
        if word == "prnas" and (number == 0 or words[number - 1] in ("-m", "exec", "--")):
            rest = words[number + 1 :]
            ends = [rest.index(mark) for mark in (">", "|", "&&") if mark in rest]
            return rest[: min(ends, default=len(rest))]
    return None


def config_problem(words: list[str]) -> str | None:
    """What is wrong with the recipe and the overrides of a command that has both."""
    command, bound = parse(words)
    kinds = {"search": SearchConfig, "config": None, "latency": SearchConfig}
    recipe, given = bound.arguments.get("recipe"), bound.arguments.get("given")
    if command.__name__ not in kinds or given is None or recipe is None:
        return None
    if not re.fullmatch(r"[a-z0-9-]+", recipe):
        return None  # a file, or a word for one
    if recipe not in recipes.names():
        return f"no recipe {recipe}"
    draft_of(recipe, list(given.overrides), kinds[command.__name__] or SearchConfig)
    return None


LINES = [(str(block), line) for block in of("sh", "console") for line, _ in block.commands]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_are_understood(page: Path) -> None:
    for block in blocks_of(page):
        for line, _ in block.commands if block.language in ("sh", "console") else []:
            words = prnas_words(line)
            if words is not None:
                parse(words)
                assert config_problem(words) is None, line


def test_a_command_that_is_not_understood_is_noticed() -> None:
    for line in ("prnas serach quick", "prnas search --sed 1", "prnas predict MODEL a.png --top x"):
        words = prnas_words(line)
        assert words
        with pytest.raises(Exception, match=r"\w"):
            parse(words)
    assert config_problem(["search", "quik", "--seed", "1"]) == "no recipe quik"
    with pytest.raises(ValueError, match="no 'rl' in 'weights'"):
        config_problem(["search", "quick", "--set", "weights.rl=1"])
    assert prnas_words("torchrun --nnodes 2 -m prnas search x  # here") == ["search", "x"]


# Commands of others, which the pages only mention.
EXTERNAL = {"torchrun", "srun", "sbatch", "cp", "cmp", "pip", "make", "python", "prnas", "exec"}


def test_other_commands_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for where, line in LINES:
        words = shlex.split(re.sub(r"^\w+=\$\((.*)\)$", r"\1", line), comments=True)
        program, *arguments = words
        assert program in EXTERNAL, (where, line)
        if program == "make":
            assert arguments[0] in targets, (where, line)
        if program == "python" and arguments[0] == "-m" and arguments[1] != "prnas":
            assert find_spec(arguments[1]) is not None, (where, line)
        for names in re.findall(r"\[([\w,]+)\]", line) if program == "pip" else []:
            assert set(names.split(",")) <= set(project["optional-dependencies"]), (where, line)


INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_keys_and_commands_within_the_text_exist(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for code in INLINE.findall(text):
        key, _, _ = code.partition("=")
        if is_key(key):
            name = re.sub(r"\.\d+(?=\.|$)", ".N", key)
            assert name in KEYS | SECTIONS, code
        if code.startswith("prnas ") and not re.search(r"…|\.\.\.|COMMAND|KEY=VALUE", code):
            words = prnas_words(code)
            assert words
            if len(words) == 1:
                assert words[0] in app, code
            else:  # Where an option is only mentioned, its value is left out.
                parse([*words, "1"] if takes_a_value(words) else words)


def takes_a_value(words: list[str]) -> bool:
    try:
        parse(words)
    except MissingArgumentError:
        return words[-1].startswith("--")
    return False


ENDINGS = (".yaml", ".json", ".jsonl", ".py", ".pt", ".md", ".safetensors")


def is_key(code: str) -> bool:
    """Whether it looks like a dotted key of a config, and not like a file or a program's name."""
    if not re.fullmatch(r"[a-z_]+(\.[a-z0-9_]+)+", code) or code.endswith(ENDINGS):
        return False
    # Variables in programs that the pages show.
    return code.split(".")[0] in SECTIONS and code not in ("network.drop_path_probability",)


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("block", of("yaml"), ids=str)
def test_files_are_valid(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for other in blocks_of(block.page):  # those that it may name
        if other.file is not None:
            (tmp_path / other.file).write_text(other.text, encoding="utf-8")
    (tmp_path / "space.yaml").write_text("name: own\n")  # docs/configuration.md names one
    data = parse_yaml(block.text)
    assert isinstance(data, dict)
    if "rows" in data:
        StudyConfig.from_data(data)
    elif BASE in data:
        file = tmp_path / "block.yaml"
        file.write_text(block.text, encoding="utf-8")
        if "blend" in block.text:
            return  # of a program's own operation; test_tutorials.py runs it
        assert read_draft(str(file)).config.task == "search"
    elif set(data) == {"name", "limits", "initial_pool"}:
        setting_from_data(data)
    else:
        SearchConfig.from_data(data)


@pytest.mark.parametrize("block", of("json"), ids=str)
def test_json_is_what_we_write(block: Block) -> None:
    if "prnas-genotype" in block.text:
        assert Genotype.loads(block.text)
    else:
        assert block.text == header_line()


# ---------------------------------------------------------------- programs


@pytest.mark.parametrize("block", of("python"), ids=str)
def test_programs_compile(block: Block) -> None:
    ast.parse(block.text)


class Workshop:
    """A folder with what the pages' programs name; searches and trainings are made small."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        patch.chdir(folder)
        shutil.copytree(OLD_RUNS / "training-finished", folder / "runs" / "RUN")
        save_tiny(folder / "runs" / "digits-dl2")
        (folder / "scans").mkdir()
        for name in ("scans/1.png", "picture.jpg"):
            Image.new("L", (9, 9), 77).save(folder / name)
        patch.setattr(prnas, "search", self.search, raising=False)
        patch.setattr(prnas, "retrain", self.retrain, raising=False)
        patch.setattr(prnas, "fit", self.fit, raising=False)
        self.folder = folder
        self.found: prnas.SearchResult | None = None

    def search(self, *given: Any, **options: Any) -> Any:
        from prnas.searching.api import search

        asked = inspect.signature(search).bind(*given, **options).arguments
        config = asked.pop("config", None)
        assert config in recipes.names("search")
        callbacks = asked.pop("callbacks", [])
        if self.found is None:
            self.found = search(TINY, **asked)
        for callback in callbacks:  # of one search, told again
            for record in self.found.epochs:
                callback.on_epoch(record)
        return self.found

    def retrain(self, *given: Any, **options: Any) -> Any:
        from prnas.retraining.api import retrain

        asked = inspect.signature(retrain).bind(*given, **options).arguments
        assert asked.pop("config", "retrain-quick") in recipes.names("retrain")
        small = ["training.epochs=1", "network.cells=3", "network.channels=2", "data.images=64"]
        return retrain(**asked, overrides=small)

    def fit(self, *given: Any, **options: Any) -> FitResult:
        from prnas.fitting.api import fit

        inspect.signature(fit).bind(*given, **options)
        save_tiny(self.folder / "fit" / "model")
        results = {"sentences": ["It is."], "networks": [{"name": "found"}], "best": "found"}
        return FitResult(self.folder / "fit", results)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        yield Workshop(tmp_path_factory.mktemp("workshop"), patch)


GIVEN = {
    "docs/networks.md": {"images": torch.zeros(2, 3, 8, 8), "labels": torch.tensor([1, 2])},
}
# Run elsewhere, or (pandas) not at all.
ELSEWHERE = ("docs/export.md", "docs/tutorials", "docs/records.md")


@pytest.mark.parametrize(
    "block", [block for block in of("python") if not str(block).startswith(ELSEWHERE)], ids=str
)
def test_programs_run(block: Block, workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    page = block.page.relative_to(ROOT).as_posix()
    names: dict[str, Any] = {"__name__": "__main__", **GIVEN.get(page, {})}
    exec(compile(block.text, str(block), "exec"), names)  # noqa: S102 - the docs' own
    printed = capsys.readouterr().out
    assert bool(printed) == ("print" in block.text)
    if page == "docs/coming-from.md":
        assert names["genotype"] == prnas.zoo.get("darts-v2")


def test_tables_in_pandas_and_r_name_columns() -> None:
    (page,) = (page for page in PAGES if page.name == "records.md")
    programs = [block.text for block in blocks_of(page) if block.language in ("python", "r")]
    assert len(programs) == 2
    for text in programs:
        words = re.findall(r"epochs\.(?!csv)(\w+)|\w+=\"(\w+)\"|\b(\w+) (?===|~)|~ (\w+)", text)
        named = {word for match in words for word in match if word}
        assert len(named) >= 4
        assert named <= set(tidy.COLUMNS), named


# ---------------------------------------------------------------- what commands print


def test_the_table_of_nasbench201_is_as_shown(here: Cli) -> None:
    page = ROOT / "docs" / "nasbench201.md"
    console, shown = blocks_of(page)[:2]
    (command,) = (line for line, _ in console.commands if "'|" in line)
    words = prnas_words(command)
    assert words
    assert " ".join(shown.text.split()) in " ".join(here.good(*words).split())


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_models_are_evaluated_as_shown(
    command: str, here: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "SECONDS", 0.01)
    card = ModelCard(
        genotype=prnas.zoo.get("pr-darts-dl2"),
        channels=8,
        cells=5,
        input_shape=(1, 8, 8),
        class_names=tuple(map(str, range(10))),
        mean=(0.3,),
        std=(0.4,),
        config={"data": {"name": "digits"}},
    )
    save_model(tmp_path / "runs" / "digits-dl2" / "model", network_of(card), card)
    blocks = [one for one in blocks_of(ROOT / "docs" / "evaluate.md") if one.language == "console"]
    ((line, shown),) = blocks[0 if command == "evaluate" else 1].commands
    for name in re.findall(r"^(scans/\S+\.\w+)", shown, re.MULTILINE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), 99).save(tmp_path / name)
    if command == "predict":
        (tmp_path / "scans" / "broken.png").write_bytes(b"no image")
        (tmp_path / "scans" / "notes.txt").write_text("a file of another kind")
    _, out, err = here.run(*shlex.split(line)[1:])
    if command == "evaluate":
        text = (tmp_path / "evaluation" / "evaluation.json").read_text(encoding="utf-8")
        assert_described("Evaluation", json.loads(text))
    for shown_line in shown.splitlines():
        assert_shown(shown_line.removesuffix("..."), out + err)
