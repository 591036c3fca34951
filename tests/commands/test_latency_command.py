"""`prnas latency`, and searches with what it measured."""

import json
from pathlib import Path

import pytest

from prnas.io.yaml_files import dump_yaml
from prnas.space.latency import read_latency_file
from tests.support.in_process import Cli
from tests.support.settings import small_config, write_images

MISTAKES = [
    (["quik"], "Did you mean 'quick'?"),
    (["retrain-quick"], "is a recipe for retrain; recipes for search"),
    (["--out", "table.txt"], "--out must end in .json, got 'table.txt'"),
    (["--out", "no/such/table.json"], "there is no folder no/such"),
    (["--repeats", "1"], "must be from 2 to 10,000, got 1"),
    (["--set", "final.chanels=3"], "Did you mean 'channels'?"),
    (["--accelerator", "tpu"], "tpu"),
    (["quick", "--threads", "0"], "threads must be from 1 to 1024, got 0"),
]


@pytest.mark.parametrize(("arguments", "said"), MISTAKES, ids=lambda one: " ".join(one)[:40])
def test_mistakes(here: Cli, arguments: list[str], said: str, tmp_path: Path) -> None:
    assert said in here.bad("latency", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_from_a_measurement_to_a_search_within_a_limit(here: Cli, tmp_path: Path) -> None:
    images = write_images(tmp_path / "images.npz")
    cycles = [{"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1}]
    config = small_config(
        images,
        final={"cells": 3, "channels": 4},
        schedule={"cycles": cycles},
        evidence={"measure": "none"},
    ).to_data()
    (tmp_path / "small.yaml").write_text(dump_yaml(config))
    out = here.good("latency", "small.yaml", "--repeats", "2", "-o", "table.json")
    assert "4 channels, 3 cells, 3x8x8 images" in out
    assert "each 2 times, in turns" in out
    assert "wrote table.json" in out
    assert "next: prnas search small.yaml --latency table.json --max-latency " in out
    file = read_latency_file(tmp_path / "table.json")
    assert file.environment["images in a batch"] == "1"
    table = file.table
    least = json.loads((tmp_path / "table.json").read_text())["table"]["around"]
    assert table.around == least
    words = ("search", "small.yaml", "--latency", "table.json", "--max-latency")
    code, out, err = here.run(*words, "10s")
    assert code == 0, err
    assert "limits" in out
    assert "(limit: 1e+04 ms)" in out
    (run,) = (tmp_path / "runs").iterdir()
    # The run knows its latencies without the file.
    (tmp_path / "table.json").unlink()
    assert here.run("search", "--resume", str(run), "--quiet")[0] == 0
    assert "leave out --max-latency" in here.bad(
        "search", "--resume", str(run), "--max-latency", "1ms"
    )
