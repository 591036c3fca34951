"""Keys that say `auto`: what they may be, and that a draft forgets nothing."""

from pathlib import Path
from typing import Any

import pytest

from prnas.config import recipes
from prnas.config.search import SearchConfig
from prnas.io.errors import FormatError, UserError
from prnas.runs.named import config_of, draft_of


@pytest.mark.parametrize("name", recipes.names())
def test_a_draft_is_what_its_data_say(name: str) -> None:
    draft = recipes.any_draft(name)
    assert draft.config.description
    assert recipes.draft_from_data(draft.to_data()) == draft
    assert bool(draft.open) == (name in ("pictures", "retrain-pictures"))
    if not draft.open:
        assert draft.config == recipes.any_recipe(name)


def test_any_config_may_say_auto() -> None:
    draft = SearchConfig.draft({"network": {"cells": "auto"}}, ["data.flip=auto", "seed=3"])
    assert draft.open == ("data.flip", "network.cells")
    config = draft.settled({"data.flip": False, "network.cells": 7})
    assert config == SearchConfig.from_data({}, ["seed=3", "data.flip=false", "network.cells=7"])
    assert SearchConfig.draft(draft.to_data(), ["network.cells=5", "data.flip=true"]).open == ()


def test_an_override_settles_one_cycle_or_all() -> None:
    draft = draft_of("pictures", ["schedule.cycles.1.epochs=7"], SearchConfig)
    assert "schedule.cycles.1.epochs" not in draft.open
    assert {"schedule.cycles.0.epochs", "schedule.cycles.1.grace_epochs"} < set(draft.open)
    one = "schedule={cycles: [{epochs: 2, grace_epochs: 1, morphisms: 0, candidates: 1}]}"
    draft = draft_of("pictures", [one], SearchConfig)
    assert not any(key.startswith("schedule") for key in draft.open)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["network.cels=3"], "no 'cels' in 'network'. Did you mean 'cells'?"),
        (["network.cells=none"], "network.cells: must be a valid integer, got 'none'"),
        (["network.nodes=auto"], "network.nodes: must be a valid integer, got 'auto'"),
        (["schedule.cycles=auto"], "schedule"),
        (["schedule.cycles.9.epochs=1"], "has the entries 0 to 1"),
        (["batch.min=0"], "batch.min: must be greater than or equal to 1"),
    ],
)
def test_mistakes_are_found_before_the_images(overrides: list[str], said: str) -> None:
    with pytest.raises(FormatError) as error:
        draft_of("pictures", [*overrides, "data.name=folder:nowhere"], SearchConfig)
    assert said in str(error.value)
    assert "auto" not in str(error.value) or "auto" in overrides[0]


@pytest.mark.parametrize(
    "data",
    [[], "auto", 3, {"network": "auto"}, {"schedule": {"cycles": ["auto", 1]}}, {"batch": [1]}],
)
def test_data_of_other_shapes(data: Any) -> None:
    with pytest.raises(FormatError):
        SearchConfig.draft(data)


def test_data_nested_too_deeply() -> None:
    deep: Any = "auto"
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(FormatError, match="nested too deeply"):
        SearchConfig.draft({"space": deep})


def test_a_config_has_no_auto(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"network\.cells: must be a valid integer, got 'auto'"):
        SearchConfig.from_data({"network": {"cells": "auto"}})
    with pytest.raises(UserError, match=r"folder:pictures: there is no such folder\. Say which"):
        config_of("pictures", (), SearchConfig)
    file = tmp_path / "own.yaml"
    file.write_text(recipes.text("pictures").replace("cells: auto", "cells: 6"))
    assert draft_of(file, ("seed=1",), SearchConfig).config.network.cells == 6
