"""Configs by a name, a file or a value: as the command line and Python give them."""

from pathlib import Path

import pytest

from prnas.config import recipes
from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.config.sections import RunConfig
from prnas.io.errors import FormatError, UserError
from prnas.runs.named import config_of


def test_a_config_by_name_by_file_and_by_value(tmp_path: Path) -> None:
    overrides = ["seed=7", "weights.lr=0.5"]
    expected = SearchConfig.from_data(recipes.any_recipe("quick").to_data(), overrides)
    file = tmp_path / "own.yaml"
    file.write_text(recipes.text("quick"))
    for given in ("quick", file, str(file), recipes.any_recipe("quick")):
        for kind in (SearchConfig, RunConfig):
            assert config_of(given, overrides, kind) == expected
    assert config_of("retrain-quick", (), RetrainConfig) == recipes.any_recipe("retrain-quick")


def test_a_config_for_another_task(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("task: retrain\ntraining: {epochs: nonsense}\n")
    for given in ("retrain-quick", file, RetrainConfig()):
        with pytest.raises(UserError, match=r"is a recipe for retrain; .* search: .*quick"):
            config_of(given, (), SearchConfig)
    with pytest.raises(UserError, match="'quick' is a recipe for search"):
        config_of("quick", (), RetrainConfig)


def test_a_mistake_names_its_file_or_its_override(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("seed: -1\n")
    with pytest.raises(UserError, match=r"own\.yaml: seed: must be greater than or equal to 0"):
        config_of(file, ["seed=1"], SearchConfig)
    file.write_text("seed: 1\nnetwork: [1\n")
    with pytest.raises(UserError, match=r"own\.yaml: line 3, column 1: not valid YAML"):
        config_of(file, (), SearchConfig)
    with pytest.raises(FormatError, match=r"^seed: must be"):
        config_of("quick", ["seed=-1"], SearchConfig)
    with pytest.raises(UserError, match=r"no recipe and no file is called 'quik'.*Did you mean"):
        config_of("quik", (), SearchConfig)
