"""`network.shape`: by name, by value, with what goes with it."""

import json
from typing import Any

import pytest

from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.io.errors import FormatError
from prnas.space.shape import DARTS, NASBENCH201, shape_to_data
from tests.support.settings import GENOTYPE201

CELLS = ["network.cells=6"]


def test_a_name_brings_its_nodes_and_output_along() -> None:
    plain = SearchConfig.from_data({"network": {"shape": "nasbench201", "cells": 6}})
    override = SearchConfig().override(["network.shape=nasbench201", *CELLS])
    assert plain == override
    assert plain.network.shape == NASBENCH201
    assert (plain.network.nodes, plain.network.output) == (3, "last")
    assert SearchConfig.from_data(json.loads(json.dumps(plain.to_data()))) == plain
    more = plain.override(["network.nodes=4", "network.output=sum"])
    assert (more.network.nodes, more.network.output) == (4, "sum")
    said = {"shape": "nasbench201", "cells": 6, "nodes": 4, "output": "mean"}
    network = SearchConfig.from_data({"network": said}).network
    assert (network.nodes, network.output) == (4, "mean")
    back = plain.override(["network.shape=darts"]).network
    assert (back.shape, back.nodes, back.output) == (DARTS, 4, "concat")


def test_the_default_is_written_out_and_old_files_have_none() -> None:
    data = SearchConfig().to_data()
    assert data["network"].pop("shape") == shape_to_data(DARTS)
    assert SearchConfig.from_data(data) == SearchConfig()


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["network.shape=nasbench101"], "network.shape: no shape is called 'nasbench101'"),
        (["network.shape=nasbench201"], "network.cells must be a multiple of 3"),
        (
            ["network.shape=nasbench201", *CELLS, "network.output=concat"],
            "network.output must be mean, sum or last",
        ),
        (
            ["network.shape=nasbench201", *CELLS, "schedule.cycles.1.cells=5"],
            "schedule.cycles[1]: cells must be a multiple of 3",
        ),
        (
            ["network.shape=nasbench201", *CELLS, "derivation.max_skips_reduction=1"],
            "derivation.max_skips_reduction: this shape has no reduction cell",
        ),
        (["network.shape.inputs=3"], "network.shape: inputs must be a whole number from 1 to 2"),
        (["network.shape.reads=some"], "network.shape.reads: must be 'two' or 'all'"),
        (["network.shape.network=residual"], "the residual network has no reduction cells"),
        (["network.shape=3"], "network.shape"),
    ],
)
def test_what_cannot_be_is_refused(overrides: list[str], said: str) -> None:
    with pytest.raises(FormatError) as error:
        SearchConfig().override(overrides)
    assert said in str(error.value)


def test_a_training_takes_the_shape_of_its_genotype() -> None:
    data: dict[str, Any] = {"genotype": GENOTYPE201.to_json(), "network": {"cells": 15}}
    genotype = RetrainConfig.from_data(data).genotype
    assert genotype is not None
    assert genotype.shape == NASBENCH201
    data["network"] = {"cells": 20, "stem": "imagenet"}
    with pytest.raises(FormatError) as error:
        RetrainConfig.from_data(data)
    assert "network.cells must be a multiple of 3" in str(error.value)
    assert "network.stem must be cifar" in str(error.value)
