"""Options that make no sense together are refused, with the reason."""

import pytest

from prnas.config.search import SearchConfig
from prnas.io.errors import FormatError

ANNEAL = "{start: 0, end: 0.5}"


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (["zero_one=10"], "zero_one has no effect with relaxation 'softmax'"),
        (["dirichlet_kl=1"], "it belongs to relaxation dirichlet"),
        (["temperature={start: 1, end: 2}"], "temperature has no effect with relaxation 'softmax'"),
        (["relaxation=sigmoid", f"beta_decay={ANNEAL}"], "relaxation 'sigmoid' has none"),
        (["relaxation=gdas", f"random_smoothing={ANNEAL}"], "use softmax"),
        (["relaxation=gdas", "scoring=removal"], "set scoring to weights or paths"),
        (
            ["step=none", "scoring=removal", f"beta_decay={ANNEAL}", "edge_weights=true"],
            "so that beta_decay and edge_weights have no effect",
        ),
        (
            ["step=sampled", "scoring=paths", f"random_smoothing={ANNEAL}"],
            "use first-order or none",
        ),
        (["relaxation=proximal", "edge_weights=true"], "which chooses edges by itself"),
        (["auxiliary_skip={start: 2, end: 0}"], "start and end are at most 1"),
        (["beta_decay={start: -1, end: 0}"], "architecture.beta_decay.start"),
    ],
)
def test_of_the_architecture(overrides: list[str], reason: str) -> None:
    with pytest.raises(FormatError) as caught:
        SearchConfig.from_data({}, [f"architecture.{one}" for one in overrides])
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (["network.partial_channels=3"], "16 channels cannot be parted into 3"),
        (["network.partial_channels=0"], "network.partial_channels"),
        (
            ["schedule.cycles.2.partial_channels=5"],
            "schedule.cycles[2]: 16 channels cannot be parted into 5",
        ),
        (
            ["network.partial_channels=4", f"architecture.auxiliary_skip={ANNEAL}"],
            "are a skip of every edge already",
        ),
    ],
)
def test_of_the_network(overrides: list[str], reason: str) -> None:
    with pytest.raises(FormatError) as caught:
        SearchConfig.from_data({}, overrides)
    assert reason in str(caught.value)


def test_what_makes_sense_together() -> None:
    SearchConfig.from_data(
        {},
        [
            "network.partial_channels=4",
            "architecture.edge_weights=true",
            f"architecture.beta_decay={ANNEAL}",
            f"architecture.random_smoothing={ANNEAL}",
        ],
    )
