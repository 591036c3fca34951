"""Config files that extend others and name spaces: what they give stands by itself."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prnas
from prnas.config import recipes
from prnas.config.files import MOST_BASES, merged, read_draft
from prnas.io.errors import FormatError, UserError
from prnas.io.yaml_files import dump_yaml
from prnas.runs.named import config_of

LIMITS = "name: mine\nlimits: {kernel_min: 3, kernel_max: 9}\n"
SPACE = LIMITS + 'initial_pool: [max 3x3, avg 3x3, skip, "conv 3x3 ×[1]"]\n'


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_extends_a_recipe(tmp_path: Path) -> None:
    file = written(tmp_path / "own.yaml", "base: quick\nseed: 7\nweights: {lr: 0.5}\n")
    config = prnas.SearchConfig.from_file(file)
    quick = recipes.any_recipe("quick")
    assert quick.description
    assert config == quick.override(["seed=7", "weights.lr=0.5", "description=''"])
    assert "base" not in config.to_data()
    again = written(tmp_path / "again.yaml", dump_yaml(config.to_data()))
    assert prnas.SearchConfig.from_file(str(again)) == config
    assert prnas.SearchConfig.from_file("quick", ["seed=3"]) == quick.override(["seed=3"])


def test_files_extend_each_other_wherever_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "study"
    folder.mkdir()
    written(folder / "common.yaml", "base: retrain-quick\ntraining: {epochs: 3, lr: 0.1}\n")
    written(folder / "own.yaml", "base: common.yaml\ntask: retrain\ntraining: {epochs: 4}\n")
    monkeypatch.chdir(tmp_path)
    config = prnas.RetrainConfig.from_file("study/own.yaml")
    assert (config.training.epochs, config.training.lr) == (4, 0.1)
    assert config.network == prnas.RetrainConfig.from_file("retrain-quick").network
    written(tmp_path / "here.yaml", "seed: 5\n")  # Not beside the file, but where one is.
    written(folder / "other.yaml", "base: here.yaml\n")
    assert config_of("study/other.yaml", (), prnas.SearchConfig).seed == 5


def test_a_base_may_leave_values_to_the_images(tmp_path: Path) -> None:
    file = written(tmp_path / "own.yaml", "base: pictures\ndata: {image_size: 16}\n")
    theirs = set(recipes.any_draft("pictures").open)
    assert set(read_draft(str(file)).open) == theirs - {"data.image_size"}
    with pytest.raises(UserError, match=r"own\.yaml leaves data\.\w+, .* to the images"):
        prnas.SearchConfig.from_file(file)


def test_a_space_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space = written(tmp_path / "space.yaml", SPACE)
    file = written(tmp_path / "own.yaml", "base: quick\nspace: space.yaml\n")
    config = prnas.SearchConfig.from_file(file)
    assert (config.space.name, config.space.limits.kernel_max) == ("mine", 9)
    assert [op.label for op in config.space.initial_pool][2:] == ["skip", "conv 3x3 ×[1]"]
    assert config_of("quick", [f"space={space}", "description=''"], prnas.SearchConfig) == config
    monkeypatch.chdir(tmp_path)
    assert config_of("quick", ["space=space.yaml"], prnas.SearchConfig).space == config.space
    named = written(tmp_path / "named.yaml", "space: unrestricted\n")
    assert prnas.SearchConfig.from_file(named).space.name == "unrestricted"
    # A space of one's own is never mixed with that of the base.
    whole = written(tmp_path / "whole.yaml", "base: own.yaml\nspace: {name: other}\n")
    assert prnas.SearchConfig.from_file(whole).space.limits.kernel_max != 9


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("base: quik", r"own\.yaml: base 'quik': no recipe and no file .* Did you mean 'quick'"),
        ("base: 7", r"own\.yaml: base: must be the name of a recipe or a file, got 7"),
        ("base: own.yaml", r"base 'own\.yaml': own\.yaml extends own\.yaml: a circle"),
        ("base: broken.yaml", r"base 'broken\.yaml': line 2, column 1: not valid YAML"),
        ("base: list.yaml", r"base 'list\.yaml' holds no config"),
        ("base: nothing", r"base 'nothing': no recipe .* Recipes for search: asap, .*quick, "),
        ("base: retrain-quick", r"own\.yaml: base 'retrain-quick' is .* for retrain; .*, quick, "),
        ("base: quick\ntask: retrain", r"base 'quick' is a recipe for search; .*retrain-quick"),
        ("base: quick\nbase: darts", "the key 'base' is given twice"),
        ("base: quick\nsed: 1", r"own\.yaml: sed: unknown key\. Did you mean 'seed'"),
        ("task: [1]", r"task: must be 'search'"),
        ("space: none.yaml", r"space: no setting and no file is called 'none\.yaml'.*darts-like"),
        ("space: broken.yaml", r"broken\.yaml: line 2, column 1: not valid YAML"),
        ("base: .", r"base '\.': .* is a folder"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, words: str, tmp_path: Path) -> None:
    written(tmp_path / "broken.yaml", "a: [1\n")
    written(tmp_path / "list.yaml", "[1, 2]\n")
    file = written(tmp_path / "own.yaml", text + "\n")
    with pytest.raises(UserError, match=words):
        prnas.SearchConfig.from_file(file)


def test_endless_chains_end(tmp_path: Path) -> None:
    for number in range(MOST_BASES + 1):
        written(tmp_path / f"{number}.yaml", f"base: {number + 1}.yaml\n")
    with pytest.raises(UserError, match=f"more than {MOST_BASES} files extend each other"):
        read_draft(str(tmp_path / "0.yaml"))


def test_a_config_of_another_task_is_named_as_that(tmp_path: Path) -> None:
    file = written(tmp_path / "own.yaml", "task: retrain\n")
    with pytest.raises(UserError, match=r"own\.yaml' is a recipe for retrain; .* search: .*quick"):
        prnas.SearchConfig.from_file(file)
    with pytest.raises(UserError, match="'quick' is a recipe for search"):
        prnas.RetrainConfig.from_file("quick")
    with pytest.raises(FormatError, match="seed"):
        prnas.RetrainConfig.from_file("retrain-quick", ["seed=-1"])


keys = st.sampled_from(["a", "b", "space"])
single = st.integers() | st.lists(st.integers())
values = st.recursive(single, lambda inner: st.dictionaries(keys, inner), max_leaves=9)
sections = st.dictionaries(keys, values)


def at(data: Any, path: list[str]) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data


@given(sections, sections)
def test_what_a_file_says_wins_and_the_rest_is_the_base(base: Any, own: Any) -> None:
    both = merged(base, own)
    assert merged(base, {}) == base
    assert merged({}, own) == own
    assert merged(both, own) == both
    if "space" in own:
        assert both["space"] == own["space"]
    for path in (["a"], ["a", "b"], ["b", "a", "b"]):
        said = at(own, path)
        if said is not None and not isinstance(said, dict):
            assert at(both, path) == said
        shadowed = any(not isinstance(at(own, path[:n]), dict | None) for n in range(1, len(path)))
        if said is None and not shadowed:
            assert at(both, path) == at(base, path)
