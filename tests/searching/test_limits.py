"""Searches with limits on the final network."""

import os
import signal
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

import prnas
from prnas.config.search import SearchConfig
from prnas.data.dataset import load
from prnas.io.errors import UserError
from prnas.runs.events import Callback, SearchResult
from prnas.runs.record_lines import read_records
from prnas.runs.records import GenotypeRecord
from prnas.runs.run import Stopped
from prnas.searching.api import resume, start
from prnas.searching.limits import final_costs, unmet_limits
from prnas.space.final_network import FinalNetwork
from prnas.space.genotype import Cell, Edge, Genotype
from prnas.space.latency import LatencyTable, key
from prnas.space.nasbench201.cells import genotype_of, index_of_string
from prnas.space.network_size import network_size
from prnas.space.operations import Conv, Skip, from_label
from tests.support.settings import small_config
from tests.support.watching import Watch, assert_same_run, folder_of

FINAL = {"cells": 5, "channels": 8}
CYCLES = [
    {"epochs": 1, "grace_epochs": 0, "morphisms": 1, "candidates": 4},
    {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1},
]


class Messages(Callback):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def on_message(self, text: str) -> None:
        self.texts.append(text)


def limited(images: Path, /, **final: Any) -> SearchConfig:
    return small_config(
        images,
        network={"nodes": 2},
        schedule={"cycles": CYCLES},
        evidence={"measure": "none"},
        final={**FINAL, **final},
    )


@pytest.fixture(scope="module")
def free(images: Path) -> SearchResult:
    """The search without limits."""
    return prnas.search(limited(images))


def sized(genotype: Genotype) -> Any:
    return network_size(genotype, 8, 5, 3, image_size=8)


def test_what_is_found_fits_and_is_told(images: Path, tmp_path: Path, free: SearchResult) -> None:
    own = sized(free.genotype)
    assert free.fit is None
    most = own.parameters - 1
    watch, messages = Watch(), Messages()
    result = start(
        limited(images, max_params=most), runs=tmp_path, name="run", callbacks=[watch, messages]
    )
    fit = result.fit
    assert fit is not None
    assert fit.fits
    # All but the end is as it was, and the end says what it would have been.
    assert Genotype.from_json(fit.own) == free.genotype
    assert (fit.own_cost["params"], fit.own_cost["macs"]) == (own.parameters, own.macs)
    assert result.cycles[0] == free.cycles[0]
    assert sized(result.genotype).parameters == fit.cost["params"] <= most
    assert fit.given_up
    (message,) = [text for text in messages.texts if "fit" in text]
    assert "the best that fit make one of" in message
    assert " in place of " in message
    records = read_records(tmp_path / "run" / "records.jsonl")
    (kept,) = [one for one in records if isinstance(one, GenotypeRecord)]
    assert kept.fit == fit
    assert Genotype.from_json(kept.genotype) == result.genotype
    again = resume(tmp_path / "run")  # of a finished run
    assert (again.genotype, again.fit) == (result.genotype, fit)


def test_a_limit_that_is_kept_anyway_changes_no_decision(images: Path, free: SearchResult) -> None:
    wide = prnas.search(limited(images, max_params="1G", max_macs="1G"))
    assert wide.genotype == free.genotype
    assert wide.cycles == free.cycles
    assert wide.fit is not None
    assert wide.fit.given_up == []


def test_a_stopped_search_goes_on_bit_for_bit(
    images: Path, tmp_path: Path, free: SearchResult
) -> None:
    config = limited(images, max_macs=sized(free.genotype).macs - 1)
    whole = start(config, runs=tmp_path, name="whole")
    assert sized(whole.genotype).macs < sized(free.genotype).macs
    stop = Watch(5, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped) as caught:
        start(config, runs=tmp_path, callbacks=[stop])
    folder = folder_of(caught.value)
    resume(folder)
    assert_same_run(folder, tmp_path / "whole")


def test_a_limit_that_no_network_can_keep_is_refused_before_anything_is_written(
    images: Path, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as caught:
        start(limited(images, max_params="1k"), runs=tmp_path)
    said = str(caught.value)
    assert "final.max_params: no network of this search can have at most 1 k parameters" in said
    assert "the smallest one, of 8 channels, 5 cells, 3x8x8 images, has " in said
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_fits_in_the_end_the_search_is_not_lost(images: Path, tmp_path: Path) -> None:
    """The last cycle's candidates are all larger than the smallest that could have been there."""
    space = {
        "name": "growing",
        "limits": {"kernel_min": 1, "kernel_max": 5, "dilation_max": 1, "depth_max": 1},
        "initial_pool": ["conv 3x3", "conv 5x5"],
    }
    cycles = [
        {"epochs": 1, "grace_epochs": 0, "morphisms": 2, "candidates": 3},
        {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1},
    ]
    changes: dict[str, Any] = {"space": space, "schedule": {"cycles": cycles}, "final": FINAL}
    changes["evidence"] = {"measure": "none"}
    free = prnas.search(small_config(images, **changes))
    cell = Cell(((Edge(0, Conv(1)), Edge(1, Conv(1))),), (2,))
    ones = Genotype(cell, cell)
    changes["final"] = {**FINAL, "max_params": sized(ones).parameters}
    messages = Messages()
    result = start(small_config(images, **changes), runs=tmp_path, callbacks=[messages])
    assert result.genotype == free.genotype
    assert result.fit is not None
    assert not result.fit.fits
    assert result.fit.smallest is not None
    assert sized(ones).parameters < result.fit.smallest["params"] <= sized(free.genotype).parameters
    assert [text for text in messages.texts if text.startswith("nothing fits")]
    assert result.folder is not None
    assert Genotype.loads((result.folder / "genotype.json").read_text()) == free.genotype


def flat_table(network: FinalNetwork, labels: list[str]) -> LatencyTable:
    """Every operation takes 10 us in every place, a skip 30."""
    places = {
        key(from_label(label), place.plan.channels, *place.reads(source, network.shape)): (
            30_000 if label == "skip" else 10_000
        )
        for label in labels
        for place in network.around[1]
        for source in (0, 2)
    }
    return LatencyTable(network, 1_000, places)


def test_a_limit_on_the_latency(images: Path) -> None:
    plain = limited(images)
    network = plain.final_network(3, (3, 8, 8))
    convs = ["conv 3x3", "conv 5x5", "conv 3x3 d2", "conv 3x3 ×[1]"]
    table = flat_table(network, ["max 3x3", "avg 3x3", "skip", *convs])
    least = 1_000 + (3 + 2) * 4 * 10_000  # 5 cells of 4 operations
    final = {"max_latency": least / 1e6, "latency": table.to_json()}
    result = prnas.search(limited(images, **final))
    assert result.fit is not None
    assert result.fit.fits
    assert result.fit.cost["latency"] == least
    for role in result.genotype.roles:
        assert Skip() not in result.genotype.cell(role).operations
    with pytest.raises(UserError, match=r"smallest one, .* has 0\.201 ms"):
        prnas.search(limited(images, **{**final, "max_latency": 0.2}))
    lacking = flat_table(network, ["max 3x3", "avg 3x3", "skip"])
    with pytest.raises(UserError, match=r"the table lacks conv 3x3.* and \d+ more, which"):
        prnas.search(limited(images, **{**final, "latency": lacking.to_json()}))
    with pytest.raises(UserError, match="for a network of 8 channels, 5 cells, 3x8x8 images, the"):
        prnas.search(limited(images, **{**final, "cells": 6}))


@pytest.mark.parametrize("most_skips", [None, 0, 2, 6])
def test_the_smallest_network_has_no_more_skips_than_allowed(
    images: Path, most_skips: int | None
) -> None:
    """Against every one of the 729 cells of a space of three operations."""
    config = small_config(
        images,
        space={
            "name": "plain",
            "limits": {"kernel_min": 1, "kernel_max": 3, "dilation_max": 1, "depth_max": 0},
            "initial_pool": ["skip", "plain 1x1", "plain 3x3"],
        },
        schedule={"cycles": [{"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1}]},
        network={"shape": "nasbench201", "cells": 3, "channels": 4, "nodes": 3},
        derivation={"max_skips_normal": most_skips},
        final={"cells": 3, "channels": 4, "max_params": 1, "max_macs": 1},
    )
    data = load(config.data, torch.device("cpu"))
    costs = final_costs(config, data)
    assert costs is not None
    names = ("skip_connect", "nor_conv_1x1", "nor_conv_3x3")
    bound = 6 if most_skips is None else most_skips
    cells = [
        genotype_of(index_of_string("|{}~0|+|{}~0|{}~1|+|{}~0|{}~1|{}~2|".format(*chosen)))
        for chosen in product(names, repeat=6)
        if chosen.count("skip_connect") <= bound
    ]
    sizes = [network_size(cell, 4, 3, 3, image_size=8) for cell in cells]
    assert unmet_limits(costs, config) == {
        "params": min(size.parameters for size in sizes),
        "macs": min(size.macs for size in sizes),
    }
    data.close()
