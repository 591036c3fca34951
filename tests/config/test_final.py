"""What a config says of the final network: its size, limits on it, what it is to cost."""

from pathlib import Path
from typing import Any

import pytest

from prnas.config import recipes
from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.io.errors import FormatError, UserError
from prnas.io.yaml_files import dump_yaml, parse_yaml
from prnas.space.final_network import FinalNetwork
from prnas.space.fitting import NetworkLimits
from prnas.space.latency import LatencyFile, LatencyTable, Measured, dumps, read_latency_file
from prnas.space.shape import NASBENCH201


def config(*overrides: str, **sections: Any) -> SearchConfig:
    return SearchConfig.from_data(sections, overrides)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A file as `prnas latency` writes it."""
    operations = {"skip @ 36x32x32 /1": 1_000, "conv 3x3 ×[1] @ 72x32x32 /2": 250_000}
    measured = {name: Measured(20, time, time - 5, time + 9) for name, time in operations.items()}
    whole = LatencyFile(
        LatencyTable(FinalNetwork(), 12, operations, "cpu"), {"threads": "1"}, measured
    )
    path = tmp_path / "latency.json"
    path.write_text(dumps(whole), encoding="utf-8")
    assert read_latency_file(path) == whole
    return path


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        *[("3M", 3_000_000), ("2.5m", 2_500_000), ("800k", 800_000), ("800 K", 800_000)],
        *[("1G", 10**9), ("1.2B", 1_200_000_000), ("3000000", 3_000_000), ("'42'", 42)],
    ],
)
def test_amounts_may_have_units(text: str, amount: int) -> None:
    found = config(f"final.max_params={text}", f"final.max_macs={text}")
    assert found.final.limits == NetworkLimits(amount, amount)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [("20ms", 20_000_000), ("0.5s", 5 * 10**8), ("800us", 800_000), ("1.5", 1_500_000)],
)
def test_times_may_have_units(table: Path, text: str, nanoseconds: int) -> None:
    found = config(f"final.latency={table}", f"final.max_latency={text}")
    assert found.final.limits == NetworkLimits(latency=nanoseconds)


MISTAKES = [
    ("final.max_params=3Q", "final.max_params: must be a number such as 3M, 2.5M, 800k"),
    ("final.max_params=-3M", "final.max_params: must be a number such as 3M"),
    ("final.max_params=0", "final.max_params"),
    ("final.max_params=2.5", "final.max_params"),
    ("final.max_macs=many", "final.max_macs: must be a number such as"),
    ("final.max_latency=20ms", "max_latency needs final.latency: a table that `prnas latency`"),
    ("final.max_latency=20min", "final.max_latency: must be a time such as 20ms, 0.02s or 800us"),
    ("final={cels: 3}", "final.cels: unknown key. Did you mean 'cells'?"),
    ("final={stem: imagenet, channels: 3}", "they must be even, got 3"),
    ("architecture.cost={of: flops}", "must be 'params', 'macs' or 'latency', got 'flops'"),
    ("architecture.cost={of: macs}", "needs a reference, such as 3M, or the limit final.max_macs"),
    ("architecture.cost={reference: 3X}", "architecture.cost: must be a number such as 3M"),
    ("architecture.cost={of: latency, reference: 9ms}", "cost of latency needs final.latency"),
    ("architecture.cost={reference: 2M, weight: 0}", "architecture.cost.weight"),
    ("architecture.cost={reference: 9k, form: log-power}", "needs a reference above 10,000"),
]


@pytest.mark.parametrize(("override", "said"), MISTAKES)
def test_mistakes(override: str, said: str) -> None:
    with pytest.raises(FormatError) as caught:
        config(override)
    assert said in str(caught.value)


def test_a_cost_needs_architecture_weights_that_are_trained() -> None:
    architecture = {"step": "none", "scoring": "removal", "cost": {"reference": "2M"}}
    with pytest.raises(FormatError, match="cost has no effect with step 'none'"):
        config(architecture=architecture)


def test_the_reference_of_a_cost_may_be_the_limit() -> None:
    found = config("final.max_macs=400M", "architecture.cost={of: macs}")
    cost = found.architecture.cost
    assert cost is not None
    assert cost.amount(found.final.limits) == 400_000_000
    assert (cost.weight, cost.form) == (0.2, "linear")
    assert found.counts_costs
    assert not config().counts_costs


def test_a_table_becomes_a_part_of_the_config(table: Path) -> None:
    """So that a run can be resumed or repeated without the file."""
    found = config(f"final.latency={table}", "final.max_latency=20ms")
    table.unlink()
    assert SearchConfig.from_data(parse_yaml(dump_yaml(found.to_data()))) == found
    assert found.final.latency is not None
    assert found.final.latency.operations["skip @ 36x32x32 /1"] == 1_000
    assert found.final.latency.network == FinalNetwork()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not valid JSON"),
        ("[]", "the file must hold an object"),
        ('{"format": "prnas-genotype", "version": 1}', "format: must be 'prnas-latency'"),
        ('{"format": "prnas-latency", "version": 9}', "version: 9 is not known"),
        ('{"format": "prnas-latency", "version": 1, "table": {"around": -1}}', "table.around"),
    ],
)
def test_a_file_that_is_no_table(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        config(f"final.latency={path}")
    assert said in str(caught.value)
    assert "other.json" in str(caught.value)


def test_the_network_is_the_paper_s_or_the_recipe_s() -> None:
    images = (3, 32, 32)
    assert config().final_network(10, images) == FinalNetwork()
    own = config("final.cells=8", "final.channels=20", "final.image_size=64")
    network = own.final_network(5, (1, 30, 40))
    assert network == FinalNetwork(
        channels=20, cells=8, classes=5, input_channels=1, height=64, width=64
    )
    shaped = config("network.shape=nasbench201", "network.cells=6")
    assert shaped.final_network(10, images) == FinalNetwork(
        channels=16, cells=15, output="last", nodes=3, states=1, shape=NASBENCH201
    )
    for name in ("quick", "cifar10-small"):
        search, training = recipes.any_recipe(name), recipes.any_recipe(f"retrain-{name}")
        assert isinstance(search, SearchConfig)
        assert isinstance(training, RetrainConfig)
        assert search.final.cells == training.network.cells
        assert search.final.channels == training.network.channels


def test_a_network_that_cannot_be_is_refused_only_where_it_matters() -> None:
    shape = ["network.shape=nasbench201", "network.cells=6", "final.cells=20"]
    assert not config(*shape).counts_costs
    with pytest.raises(FormatError, match=r"final\.cells must be a multiple of 3"):
        config(*shape, "final.max_params=1M")
