"""Searches for cells of other shapes than DARTS': they prune, replace, derive and resume."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import prnas
from prnas.config.search import SearchConfig
from prnas.runs.run import Stopped
from prnas.searching.api import resume, start
from prnas.space.operations import Zero
from prnas.space.shape import NASBENCH201, CellShape, shape_to_data
from tests.support.settings import small_config, small_training
from tests.support.watching import Watch, assert_same_run, folder_of

SPACE = {
    "name": "small",
    "limits": {"kernel_min": 1, "kernel_max": 3, "dilation_max": 1, "depth_max": 0},
    "initial_pool": ["zero", "skip", "avg 3x3", "conv 1x1"],
}
OWN = {"roles": ["normal"], "inputs": 1, "reads": "two", "network": "darts"}


def shaped_config(images: Path, /, shape: Any = "nasbench201", **changes: Any) -> SearchConfig:
    network = {"cells": 3, "channels": 4, "shape": shape}
    config = small_config(images, **{"space": SPACE, **changes}).to_data()
    return SearchConfig.from_data({**config, "network": network})


@pytest.mark.parametrize("at", [pytest.param(4, marks=pytest.mark.slow), 9])
def test_a_stopped_search_goes_on_bit_for_bit(images: Path, tmp_path: Path, at: int) -> None:
    config = shaped_config(images)
    whole = start(config, runs=tmp_path, name="whole")
    assert whole.genotype.shape == NASBENCH201
    assert len(whole.genotype.normal.edges) == 6
    first, *_, last = whole.cycles
    assert list(first.pools) == list(first.architecture_weights) == list(first.change) == ["normal"]
    labels = [[candidate["op"]["type"] for candidate in edge] for edge in _pruned(last)]
    assert len(labels) == 6
    added = [edge["added"] for edge in first.change["normal"]["edges"]]
    assert any(added), "a 1x1 convolution grows"
    stop = Watch(at, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped) as caught:
        start(config, runs=tmp_path, callbacks=[stop])
    folder = folder_of(caught.value)
    resume(folder)
    assert_same_run(folder, tmp_path / "whole")


def _pruned(record: Any) -> list[Any]:
    return [edge["pruned"] for edge in record.change["normal"]["edges"]]


def test_each_edge_keeps_its_best_operation_and_none_may_be_it(images: Path) -> None:
    space = {**SPACE, "initial_pool": ["zero"]}
    with pytest.raises(Exception, match="other than 'zero'"):
        shaped_config(images, space=space)
    result = prnas.search(shaped_config(images, architecture={"lr": 0.1}))
    last = result.cycles[-1]
    expected = [
        pool[row.index(max(row))]
        for pool, row in zip(last.pools["normal"], last.architecture_weights["normal"], strict=True)
    ]
    assert [op.label for op in result.genotype.normal.operations] == expected


def test_what_was_found_is_trained(images: Path) -> None:
    result = prnas.search(shaped_config(images, seed=3))
    network = {"cells": 3, "channels": 4, "auxiliary_weight": 0.0}
    trained = prnas.retrain(result.genotype, small_training(images, network=network))
    assert trained.model.card.genotype == result.genotype


@pytest.mark.parametrize("shape", [OWN, shape_to_data(CellShape(inputs=1, reads="all"))])
def test_a_shape_of_ones_own(images: Path, shape: dict[str, Any]) -> None:
    config = shaped_config(images, shape).override(["network.nodes=2", "network.output=sum"])
    result = prnas.search(config)
    assert shape_to_data(result.genotype.shape) == shape
    assert result.genotype.normal.concat == (1, 2)
    zeros = [isinstance(op, Zero) for op in result.genotype.normal.operations]
    assert not any(zeros) or shape["reads"] == "all"
