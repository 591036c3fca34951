import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.config import recipes
from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.io.errors import FormatError, UserError
from prnas.io.yaml_files import dump_yaml, parse_yaml
from prnas.runs.named import config_of
from prnas.space.operations import Conv, Skip, Zero
from prnas.space.schedule import paper_schedule
from prnas.space.setting import SETTINGS

RATE = "must be above 0 and at most 1000, or 'auto'"


def test_defaults_are_the_papers() -> None:
    config = SearchConfig()
    assert config.schedule == paper_schedule()
    assert config.space == SETTINGS["darts-like"]
    assert (config.network.cells, config.network.channels, config.network.nodes) == (8, 16, 4)
    assert config.network.output == "concat"
    weights, architecture, batch = config.weights, config.architecture, config.batch
    assert (weights.lr, weights.lr_min, weights.momentum) == (0.025, 0.01, 0.9)
    assert (weights.weight_decay, weights.gradient_norm) == (3e-4, 5.0)
    assert (architecture.lr, architecture.betas) == (6e-4, (0.5, 0.999))
    assert (architecture.weight_decay, architecture.gradient_norm) == (1e-3, 5.0)
    assert (batch.min, batch.multiple, batch.max) == (24, 8, 128)
    assert (batch.memory_share, batch.every) == (0.95, 5)
    assert (config.data.name, config.data.architecture_share) == ("cifar10", 0.5)
    assert (config.data.flip, config.data.crop_padding, config.data.cutout) == (True, 4, 0)


# Without those that leave something open, as tests/config/test_undecided.py says of them.
FIXED = [name for name in recipes.names() if not name.endswith("pictures")]


@pytest.mark.parametrize("name", FIXED)
def test_every_recipe_can_be_repeated_from_its_written_config(name: str) -> None:
    config = recipes.any_recipe(name)
    assert config.description
    assert type(config).from_data(parse_yaml(dump_yaml(config.to_data()))) == config
    assert recipes.config_from_data(config.to_data()) == config


def test_the_training_is_the_papers_by_default() -> None:
    config = RetrainConfig.from_data(None)
    network, training = config.network, config.training
    assert config == recipes.any_recipe("retrain-cifar10").model_copy(update={"description": ""})
    assert (network.cells, network.channels, network.auxiliary_weight) == (20, 36, 0.4)
    assert (network.drop_path, config.data.cutout) == (0.3, 16)
    assert (training.epochs, training.lr, training.lr_min) == (600, 0.025, 0.0)
    assert (training.momentum, training.weight_decay, training.gradient_norm) == (0.9, 3e-4, 5.0)
    assert (config.batch.min, config.batch.max) == (96, 96)
    imagenet = config_of("retrain-imagenet", (), RetrainConfig)
    assert (imagenet.network.cells, imagenet.network.channels) == (14, 48)
    assert (imagenet.network.stem, imagenet.data.image_size) == ("imagenet", 224)
    assert imagenet.data.storage == "stream"


def test_the_recipes_of_other_methods() -> None:
    darts, p_darts = config_of("darts", (), SearchConfig), config_of("p-darts", (), SearchConfig)
    assert len(darts.space.initial_pool) == len(p_darts.space.initial_pool) == 8
    assert {Zero(), Conv(3, 1, (1,)), Conv(5, 2)} < set(darts.space.initial_pool)
    assert [cycle.cells for cycle in p_darts.schedule.cycles] == [5, 11, 17]
    assert [cycle.candidates for cycle in p_darts.schedule.cycles] == [5, 3, 1]
    assert [cycle.skip_dropout for cycle in p_darts.schedule.cycles] == [0.0, 0.4, 0.7]
    assert p_darts.derivation.max_skips_normal == 2


def test_overrides() -> None:
    config = SearchConfig.from_data(
        {},
        [
            "schedule.cycles.0.epochs=5",
            "weights.lr=3e-2",
            "space=unrestricted",
            "space.limits.kernel_max=9",
            "architecture.betas=[0.9, 0.99]",
            "data.name=folder:my pictures",
            "schedule.cycles.1.cells=null",
        ],
    )
    assert config.schedule.cycles[0].epochs == 5
    assert config.weights.lr == 0.03
    assert (config.space.limits.kernel_max, config.space.limits.depth_max) == (9, None)
    assert config.architecture.betas == (0.9, 0.99)
    assert SearchConfig.from_data({}, ["architecture.lr=auto"]).architecture.lr == "auto"
    assert type(SearchConfig.from_data({}, ["architecture.lr=1"]).architecture.lr) is float
    assert config.data.name == "folder:my pictures"


def test_a_space_in_a_file(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("limits: {kernel_max: 5}\ninitial_pool: [skip, conv 3x3, 'conv 3x3 ×[1]']\n")
    overrides = [f"space={own}", "space.limits.dilation_max=3"]
    small = ["schedule.cycles=[{epochs: 1, grace_epochs: 0, morphisms: 0, candidates: 1}]"]
    config = SearchConfig.from_data({}, [*overrides, *small])
    assert config.space.limits.kernel_max == 5
    assert config.space.limits.dilation_max == 3
    assert config.space.initial_pool == (Skip(), Conv(3), Conv(3, 1, (1,)))
    assert SearchConfig.from_data(config.to_data()) == config
    own.write_text("limits: {kernel_max: 6}\n")
    with pytest.raises(UserError, match=r"own\.yaml: limits: kernel must be odd, got 6"):
        SearchConfig.from_data({}, overrides)
    with pytest.raises(FormatError, match="no setting is called"):  # Only overrides name files.
        SearchConfig.from_data({"space": str(own)})


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["schedle.cycles.0.epochs=5"], "no 'schedle'. Did you mean 'schedule'?"),
        (["schedule.cycles.9.epochs=5"], "'schedule.cycles' has the entries 0 to 8, not '9'"),
        (["schedule.cycles.x=5"], "'schedule.cycles' has the entries 0 to 8, not 'x'"),
        (
            ["schedule.cycles.0.epoch=5"],
            "no 'epoch' in 'schedule.cycles.0'. Did you mean 'epochs'?",
        ),
        (["seed.x=5"], "'seed' is a single value; it has no 'x'"),
        (["seed"], "write it as path=value"),
        (["seed=abc"], "seed: must be a valid integer, got 'abc'"),
        (["seed=1.5"], "seed: must be a valid integer"),
        (["seed=[1"], "not valid YAML"),
        (["space=restricted"], "no setting is called 'restricted'"),
        (["space.limits.kernel_max=4"], "kernel must be odd, got 4"),
        (["batch.min=200"], "batch: min (200) must not exceed max (128)"),
        (["weights.lr=.inf"], "weights.lr: must be a finite number, got inf"),
        (["seed=2020-01-01"], "seed: must be plain data, got date 2020-01-01"),
        (["weights.lr=0"], "weights.lr: must be greater than 0, got 0"),
        (["data.flip=maybe"], "data.flip: must be a valid boolean"),
        (["schedule.cycles.0.grace_epochs=16"], "cycles[0]: grace_epochs (16) exceed"),
        (["space.initial_pool=[skip, conv 3x3]"], "3 candidates are to stay, but the pools hold 2"),
        *(
            ([f"architecture.lr={bad}"], f"architecture.lr: {RATE}, got {shown}")
            for bad, shown in (("fast", "'fast'"), ("0", "0"), ("true", "True"), ("2e3", "2000.0"))
        ),
        (["architecture.travel=0"], "architecture.travel: must be greater than 0, got 0"),
        (["network.output=max"], "must be 'concat', 'mean', 'sum' or 'last', got 'max'"),
    ],
)
def test_bad_overrides(overrides: list[str], said: str) -> None:
    with pytest.raises(FormatError) as error:
        SearchConfig.from_data({}, overrides)
    assert said in str(error.value)
    assert len(error.value.problems) == 1


def test_all_bad_overrides_at_once() -> None:
    with pytest.raises(FormatError) as error:
        SearchConfig.from_data({}, ["a=1", "seed.b=2", "c"])
    assert len(error.value.problems) == 3


def test_keys_that_are_no_strings() -> None:
    with pytest.raises(FormatError, match="network: keys must be strings, got 1"):
        SearchConfig.from_data({"network": {1: 2}})


def test_unknown_keys_get_the_nearest() -> None:
    with pytest.raises(FormatError) as error:
        SearchConfig.from_data({"wieghts": {}, "network": {"chanels": 3}})
    assert "wieghts: unknown key. Did you mean 'weights'?" in str(error.value)
    assert "network.chanels: unknown key. Did you mean 'channels'?" in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "a: &x [1]\nb: *x",
            "line 2, column 4: not valid YAML (aliases (*name) are not supported)",
        ),
        ("seed: 1\nseed: 2", "line 2, column 1: not valid YAML (the key 'seed' is given twice)"),
        ("a: [1", "line 1, column 6: not valid YAML"),
        ("a: [b, c [1]]", "line 1, column 10: not valid YAML (expected ',' or ']', but got '[')"),
        ("a: [b, c [1]]", "quote text that has brackets of its own"),
        ("a: {b: c {1}}", "quote text that has brackets of its own"),
        ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("a: !!python/name:os.system", "could not determine a constructor"),
        ("[" * 20_000, "nested too deeply"),
        ("a: 2026-99-99", "not valid YAML"),
        ("a: \x00", "not valid YAML"),
        ("a: " + "9" * 6_000, "not valid YAML"),
        ("? [1, 2]\n: 3", "not valid YAML"),
    ],
)
def test_yaml_that_is_refused(text: str, said: str) -> None:
    with pytest.raises(FormatError) as error:
        parse_yaml(text)
    assert said in str(error.value)


@pytest.mark.parametrize("data", [[], "text", 3, {1: 2}, {"seed": {"a": []}}, {"a": {1, 2}}])
def test_data_of_other_shapes(data: Any) -> None:
    with pytest.raises(FormatError):
        SearchConfig.from_data(data)


def test_an_empty_file_is_the_papers_config() -> None:
    assert SearchConfig.from_data(parse_yaml("")) == SearchConfig()


def test_numbers_as_people_write_them() -> None:
    assert parse_yaml("[3e-4, 1E5, -2e+3, 1.5e2, 3, x1e5]") == [3e-4, 1e5, -2e3, 150, 3, "x1e5"]


scalars = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=20)
scalars = scalars | st.floats(allow_nan=False).filter(math.isfinite)
plain = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


@given(plain)
def test_yaml_goes_both_ways(data: Any) -> None:
    assert parse_yaml(dump_yaml(data)) == data
