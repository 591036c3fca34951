"""The search end to end, in this process."""

import json
from pathlib import Path

import pytest
import torch

import prnas
from prnas.config.search import SearchConfig
from prnas.io.yaml_files import dump_yaml
from prnas.runs.events import SearchResult
from prnas.searching.api import start
from prnas.space.change import Change
from prnas.space.genotype import Genotype
from prnas.space.pools import Pools
from tests.support.settings import small_config, small_training
from tests.support.textbook_training import first_cycle
from tests.support.watching import (
    Watch,
    assert_same_run,
    epochs_of,
    folder_of,
    last_state,
    without_varying,
)


@pytest.fixture(scope="module")
def found(images: Path) -> SearchResult:
    """What a search with a choice of edges finds."""
    torch.manual_seed(1)
    return prnas.search(small_config(images, network={"nodes": 2}))


def test_a_search_without_a_folder_tells_all_and_writes_nothing(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    watch = Watch()
    result = prnas.search(small_config(images, network={"nodes": 2}), callbacks=[watch])
    assert isinstance(result.genotype, Genotype)
    assert result.genotype.normal.num_nodes == 2
    assert watch.events == [
        *["start", "epoch", "epoch", "cycle", "epoch", "epoch", "cycle", "epoch", "cycle"],
        *["end", "close"],
    ]
    assert [one.grace for one in result.epochs] == [True, False, True, False, False]
    assert ["architecture" not in one.scores for one in result.epochs] == [
        one.grace for one in result.epochs
    ]
    assert [round(one.lr, 6) for one in result.epochs] == [0.025, 0.0175, 0.025, 0.0175, 0.025]
    assert result.validation_accuracy == result.epochs[-1].scores["validation"].accuracy
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr() == ("", "")


def test_the_same_seed_finds_the_same_and_another_seed_another(
    images: Path, tmp_path: Path, found: SearchResult
) -> None:
    torch.manual_seed(2)  # the global generator does not matter
    file = tmp_path / "small.yaml"  # a config in a file is as good as a value
    file.write_text(dump_yaml(small_config(images, seed=5, network={"nodes": 2}).to_data()))
    again = prnas.search(file, overrides=["seed=7"], seed=1)
    other = prnas.search(small_config(images, seed=2, network={"nodes": 2}))
    assert found.genotype == again.genotype
    assert [without_varying(r) for r in found.epochs] == [without_varying(r) for r in again.epochs]
    assert found.epochs[0].scores["weights"] != other.epochs[0].scores["weights"]


def test_every_epoch_is_one_pass_over_the_weights_half(images: Path) -> None:
    result = prnas.search(small_config(images, batch={"min": 10, "multiple": 1, "max": 10}))
    seen = [one.scores["weights"].images for one in result.epochs]
    assert seen == [50, 50, 50, 50, 50]  # 48 images in batches of 10: the rest is carried on
    result = prnas.search(
        small_config(
            images,
            batch={"min": 20, "multiple": 1, "max": 20},
            schedule={
                "cycles": [{"epochs": 5, "grace_epochs": 5, "morphisms": 0, "candidates": 1}]
            },
        )
    )
    assert [one.scores["weights"].images for one in result.epochs] == [60, 40, 60, 40, 40]


@pytest.mark.parametrize("lr", [6e-4, "auto"])
def test_the_first_cycle_is_the_textbooks(images: Path, tmp_path: Path, lr: float | str) -> None:
    config = small_config(
        images,
        architecture={"lr": lr},
        network={"nodes": 2},
        batch={"min": 8, "multiple": 1, "max": 8},
        schedule={"cycles": [{"epochs": 3, "grace_epochs": 1, "morphisms": 0, "candidates": 1}]},
        data={"name": f"npz:{images}", "crop_padding": 2, "cutout": 3},
    )
    result = start(config, runs=tmp_path)
    _, tensors = last_state(folder_of(result))
    for name, expected in first_cycle(config, 8).state_dict().items():
        found = tensors[f"supernet/{name}"]
        assert torch.allclose(found, expected, rtol=1e-4, atol=1e-6), name


def test_pools_change_as_the_architecture_weights_say(images: Path, found: SearchResult) -> None:
    config, result = small_config(images, network={"nodes": 2}), found
    pools = Pools.initial(2, config.space.initial_pool)
    for cycle, record in zip(config.schedule.cycles, result.cycles, strict=True):
        for role in ("normal", "reduction"):
            labels = [[op.label for op in edge.candidates] for edge in pools.cell(role).edges]
            assert record.pools[role] == labels
            assert [len(one) for one in record.architecture_weights[role]] == [
                len(one) for one in labels
            ]
            assert any(len(set(one)) > 1 for one in record.architecture_weights[role])
        change = Change.from_json(record.change)
        pools = pools.apply(change)
        assert record.statistics["average"]["num_candidates"] <= cycle.candidates
        assert record.statistics["discoverable"] == 11
    assert {len(edge.candidates) for edge in pools.normal.edges} == {1}
    for state, edge in result.genotype.normal.edges:
        place = pools.normal.positions.index((state, edge.input))
        assert pools.normal.edges[place].candidates == (edge.op,)


def test_a_run_folder_has_all_and_a_second_run_gets_another(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small_config(images)
    monkeypatch.setattr("sys.argv", ["prnas", "search"])
    one = folder_of(start(config, runs=tmp_path, name="mine"))
    other = folder_of(start(config, runs=tmp_path, name="mine"))
    assert (one.name, other.name) == ("mine", "mine-2")
    assert_same_run(one, other)
    names = {path.name for path in one.iterdir()} - {".lock"}
    assert names == {
        "config.yaml",
        "records.jsonl",
        "batch-decisions.jsonl",
        "checkpoints",
        "genotype.json",
        "environment.json",
    }
    told = json.loads((one / "environment.json").read_text())
    assert told["sessions"][0]["packages"]["torch"]
    assert told["sessions"][0]["command"] == ["prnas", "search"]
    assert len(list((one / "checkpoints").iterdir())) == 2
    assert Genotype.loads((one / "genotype.json").read_text())


@pytest.mark.parametrize(("epochs", "number"), [("last-five", 5), ("last", 1)])
def test_validation_in_the_last_epochs_of_a_cycle_only(
    images: Path, epochs: str, number: int
) -> None:
    config = small_config(
        images,
        schedule={"cycles": [{"epochs": 7, "grace_epochs": 7, "morphisms": 0, "candidates": 1}]},
        validation={"epochs": epochs},
        data={"images": 16},
    )
    result = prnas.search(config)
    expected = [False] * (7 - number) + [True] * number
    assert ["validation" in one.scores for one in result.epochs] == expected


@pytest.mark.parametrize("precision", ["bf16-mixed", "64-true"])
def test_other_precisions(images: Path, precision: str, reference: Path) -> None:
    config = small_config(images, compute={"precision": precision})
    result = prnas.search(config)
    assert result.genotype
    single = epochs_of(reference)
    losses = [epochs[0].scores["weights"].loss for epochs in (result.epochs, single)]
    assert losses[0] == pytest.approx(losses[1], rel=0.05)
    assert losses[0] != losses[1]


def test_recomputation_finds_the_same_to_the_bit(images: Path, reference: Path) -> None:
    found = prnas.search(small_config(images, compute={"recompute": True}))
    assert found.genotype == Genotype.loads((reference / "genotype.json").read_text())
    expected = epochs_of(reference)
    assert [one.scores for one in found.epochs] == [one.scores for one in expected]


def test_a_part_of_the_images(images: Path) -> None:
    result = prnas.search(small_config(images, data={"images": 40}))
    assert [one.scores["validation"].images for one in result.epochs] == [20] * 5


def test_darts_operations_with_zero(images: Path) -> None:
    darts = prnas.SearchConfig.from_data({"space": "darts-like"}).to_data()["space"]
    darts["initial_pool"] = ["zero", "skip", "conv 3x3", "max 3x3"]
    config = small_config(
        images,
        space=darts,
        schedule={"cycles": [{"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1}]},
    )
    assert isinstance(config, SearchConfig)
    labels = {op.label for op in prnas.search(config).genotype.normal.operations}
    assert "zero" not in labels


def test_from_python_the_folder_has_all_that_the_commands_has(images: Path, tmp_path: Path) -> None:
    cycles = [{"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1}]
    config = small_config(images, schedule={"cycles": cycles})
    result = prnas.search(config, runs=tmp_path, name="run")
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"report.html", "tensorboard", "genotype.json", "records.jsonl"} <= names
    trained = prnas.retrain(
        result.genotype, small_training(images, training={"epochs": 2}), runs=tmp_path, name="next"
    )
    assert trained.folder == tmp_path / "next"
    assert {"report.html", "tensorboard", "model"} <= {
        path.name for path in (tmp_path / "next").iterdir()
    }
