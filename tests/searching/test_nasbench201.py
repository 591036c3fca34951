"""A search in the space of NAS-Bench-201 ends with the truth, and never sees it before."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

import prnas
from prnas.config.search import SearchConfig
from prnas.report.read_run import read_view
from prnas.runs.named import config_of as config_of_name
from prnas.runs.record_lines import read_records
from prnas.runs.records import GenotypeRecord, TruthRecord
from prnas.searching.api import resume, start
from prnas.space.analysis.sampling import random_genotype
from prnas.space.nasbench201 import table
from prnas.space.nasbench201.truth import truth_of
from prnas.space.operations import PlainConv
from tests.support.command_line import good
from tests.support.settings import small_config
from tests.support.watching import Watch


def config_of(images: Path, space: str = "nasbench201", **cycle: Any) -> SearchConfig:
    """Two cycles: the first prunes to three candidates."""
    first = {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 3, **cycle}
    last = {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1}
    config = small_config(images, space=space, schedule={"cycles": [first, last]}).to_data()
    config["network"] = {"cells": 3, "channels": 4, "shape": "nasbench201"}
    return SearchConfig.from_data(config)


def test_it_ends_with_the_truth(images: Path, tmp_path: Path) -> None:
    result = start(config_of(images), runs=tmp_path, name="run")
    folder = tmp_path / "run"
    truth = truth_of(result.genotype)
    assert truth is not None
    *_, found, last = read_records(folder / "records.jsonl")
    assert isinstance(found, GenotypeRecord)
    assert isinstance(last, TruthRecord)
    assert last.truth == truth.to_json()
    looked_up = json.loads(good("truth", str(folder), "--json"))
    assert looked_up == {"cell": str(folder), **last.truth}
    shown = read_view(folder).data()["truth"]
    assert [one["title"] for one in shown] == ["CIFAR-10", "CIFAR-100", "ImageNet16-120"]
    assert shown[0]["test"] == truth.data_sets["cifar10"].test
    assert resume(folder).genotype == result.genotype
    assert read_records(folder / "records.jsonl")[-1] == last


def test_no_search_reads_the_table_before_it_has_ended(
    images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, column = Watch(), table.column
    read: list[int] = []

    def watched(name: str) -> tuple[int, ...]:
        read.append(watch.events.count("cycle"))
        return column(name)

    monkeypatch.setattr(table, "column", watched)
    prnas.search(config_of(images), callbacks=[watch])
    assert set(read) == {2}, "the last cycle is over"


def test_small_convolutions_grow(images: Path) -> None:
    growing = config_of(images, "nasbench201-growing", morphisms=1, candidates=4)
    first, last = prnas.search(growing).cycles
    assert all(pool == ["skip", "plain 1x1", "avg 3x3"] for pool in first.pools["normal"])
    assert all("plain 3x3" in pool for pool in last.pools["normal"])


def test_other_searches_have_no_truth(images: Path, tmp_path: Path) -> None:
    start(small_config(images), runs=tmp_path, name="run")
    assert isinstance(read_records(tmp_path / "run" / "records.jsonl")[-1], GenotypeRecord)
    assert read_view(tmp_path / "run").data()["truth"] is None


@pytest.mark.parametrize("name", ["nasbench201", "nasbench201-small"])
def test_recipes_search_in_that_space(name: str) -> None:
    config = config_of_name(name, (), SearchConfig)
    drawn = random_genotype(
        config.space.initial_pool,
        Random(0),
        config.network.nodes,
        config.network.shape,
        config.network.output,
    )
    assert truth_of(drawn) is not None
    assert PlainConv(3) in config.space.initial_pool
