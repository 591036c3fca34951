"""What the report is made from: views of runs, comparison, and the page around the data."""

import json
import math
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.io.errors import FormatError
from prnas.report.comparison import differences, spread
from prnas.report.html import SCRIPTS, STYLES, escaped_json, policy, render
from prnas.report.page import page_data, view_of
from prnas.report.plain_data import pick, rounded
from prnas.report.search_view import SearchView
from prnas.report.training_view import confusion_of
from prnas.report.view import RunInfo, View, device
from prnas.runs.record_lines import RecordReader, from_line, to_line
from prnas.runs.record_versions import header_line
from prnas.runs.records import CycleRecord, EpochRecord, Record, TrainedRecord
from prnas.space import zoo
from prnas.space.analysis.distance import edit_distance
from prnas.space.analysis.statistics import kernel_shares, type_shares
from prnas.space.network_size import network_size
from prnas.space.operations import from_label
from tests.support.pages import data_of
from tests.support.synthetic_runs import (
    NAMES,
    SESSION,
    search_records,
    training_config,
    training_records,
)
from tests.support.synthetic_search import quick
from tests.support.views import training_view


def search_view(*overrides: str, seed: int = 0, **options: Any) -> View:
    config = quick(*overrides, f"seed={seed}").to_data()
    view = view_of(RunInfo(f"run-{seed}", f"runs/run-{seed}", config, [SESSION]))
    for record in search_records(*overrides, genotype=NAMES[seed % 4], **options):
        view.add(record)
    return view


def test_epochs_as_columns() -> None:
    view = search_view()
    run = view.data()
    epochs = [one for one in search_records() if isinstance(one, EpochRecord)]
    columns = view.epochs.columns
    assert columns["validation_accuracy"] == [
        rounded(one.scores["validation"].accuracy) for one in epochs
    ]
    assert columns["architecture_loss"][0] is None  # a grace epoch
    assert {len(column) for column in columns.values()} == {20}
    assert run["schedule"][0] == [3, 1, 3, 6]
    assert run["seconds"] == rounded(sum(one.seconds for one in epochs))
    assert run["ended"]
    assert view.epochs.batches[1] == (3.0, 64)  # where the second cycle starts


def test_cycles_are_those_of_the_records() -> None:
    view = search_view()
    assert isinstance(view, SearchView)
    records = [one for one in search_records() if isinstance(one, CycleRecord)]
    cycles = view.data()["cycles"]
    labels = cycles["operations"]
    assert len(cycles["steps"]["normal"]) == 9
    for role in ("normal", "reduction"):
        for cycle, record in enumerate(records):
            for number, edge in enumerate(cycles["steps"][role][cycle]):
                ops, weights, pruned, added = edge
                change = record.change[role]["edges"][number]
                assert [labels[op] for op in ops] == record.pools[role][number]
                assert sum(weights) == pytest.approx(1, abs=1e-4)
                assert [score for _, score in pruned] == [
                    rounded(one["probability"]) for one in change["pruned"]
                ]
                assert [cycles["morphisms"][one[2]] for one in added] == [
                    one["morphism"] for one in change["added"]
                ]
            # The statistics that the search recorded are those of the pools after the cycle.
            recorded = record.statistics[role]["cell"]
            shown = view.cycles.pools[role][cycle + 1]
            assert shown["types"] == pytest.approx(recorded["types"], abs=1e-4)
            assert shown["kernels"] == pytest.approx(recorded["kernels"], abs=1e-4)
            if recorded["similarity"] is not None:
                assert shown["similarity"] == pytest.approx(recorded["similarity"], abs=1e-4)
            expected = recorded["parent_probability"]
            assert view.cycles.parents[role][cycle] == (expected and rounded(expected))
    initial = [from_label(label) for label in quick().to_data()["space"]["initial_pool"]]
    assert view.cycles.pools["normal"][0]["types"] == type_shares(initial)
    assert view.cycles.pools["normal"][0]["kernels"] == {
        str(size): share for size, share in kernel_shares(initial).items()
    }
    assert view.cycles.discoverable == 15


def test_the_head() -> None:
    run = search_view(seed=1).data()
    size = network_size(zoo.get(NAMES[1]))
    assert run["network"]["parameters"] == size.parameters
    assert run["network"]["macs"] == size.macs
    assert ["Repeat the search", "prnas search runs/run-1/config.yaml"] in map(
        list, run["commands"]
    )
    assert ["Train the network it found", "prnas retrain runs/run-1"] in map(list, run["commands"])
    facts = dict(run["facts"])
    assert facts["Setting"] == "darts-like"
    assert facts["Device"] == "CPU (x86_64), 2 threads"
    assert "digits" in facts["Data"]
    assert not run["network"]["assumed"]
    assert search_view("data.name='folder:x'").data()["network"]["assumed"]
    other = search_view("data.name=cifar100", "network.output=mean").data()["network"]
    hundred = network_size(zoo.get(NAMES[0]), classes=100, output="mean")
    assert other["parameters"] == hundred.parameters


def test_a_recipes_description_is_not_said_of_other_data() -> None:
    assert "embedded digits" in search_view().data()["description"]
    assert search_view("data.name='folder:x'").data()["description"] == ""
    own = search_view("data.name='folder:x'", "description=my own words").data()
    assert own["description"] == "my own words"


def test_the_images_that_train_the_weights_are_those_that_do_not_validate() -> None:
    (validated,) = {
        one.scores["validation"].images for one in search_records() if isinstance(one, EpochRecord)
    }
    facts = dict(search_view("data.architecture_share=0.2").data()["facts"])
    assert f"about {4 * validated:,} images train the weights" in facts["Data"]


def test_an_unfinished_run_says_how_to_go_on() -> None:
    run = search_view(cycles=2).data()
    assert not run["ended"]
    assert run["network"] is None
    assert run["genotype"] is None
    assert any("--resume" in command for _, command in run["commands"])
    now = run["cycles"]["now"]["normal"]
    assert len(now) == 14
    assert {len(pool) for pool in now} <= {5, 6}  # some edges have no child left to take


def test_devices() -> None:
    assert device({"gpus": ["A100", "A100", "V100"]}) == "2 × A100, V100"
    assert device({"gpus": "no list"}) == "CPU"
    assert device(None) == "CPU"


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"schedule": "?", "network": 3, "space": {"initial_pool": ["conv 3x3", "nonsense"]}},
        {"schedule": {"cycles": [1, {"epochs": "x"}]}, "network": {"nodes": 10**9}, "data": []},
        {"seed": True, "description": {"a": 1}, "space": {"limits": [], "name": None}},
    ],
)
def test_any_config_can_be_shown(config: dict[str, Any]) -> None:
    """The records carry the report; what a config does not say is left out."""
    view = view_of(RunInfo("odd", "odd", config, ["what", {"command": 3, "started": 4}]))
    for record in search_records():
        view.add(record)
    text = render(page_data([view]))
    assert data_of(text)["runs"][0]["ended"]


def test_records_that_contradict_themselves_are_refused() -> None:
    record = next(one for one in search_records() if isinstance(one, CycleRecord))
    raw = json.loads(to_line(record))
    raw["architecture_weights"]["normal"][0].pop()
    with pytest.raises(FormatError, match="one weight for each candidate"):
        view_of(RunInfo("a", "a")).add(from_line(json.dumps(raw)))
    raw["pools"]["normal"].pop()
    with pytest.raises(FormatError, match="edges differ in number"):
        view_of(RunInfo("a", "a")).add(from_line(json.dumps(raw)))


@given(st.recursive(st.text() | st.none() | st.integers(), st.lists, max_leaves=5))
def test_any_text_survives_the_page(value: Any) -> None:
    text = escaped_json({"value": value})
    assert text.isascii()
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"value": value}


def test_the_page_is_one_file_with_a_strict_policy() -> None:
    page = render(page_data([search_view()]))
    assert page.startswith("<!DOCTYPE html>")
    assert '<meta charset="utf-8">' in page
    assert page.index("Content-Security-Policy") < page.index("<style>")
    assert "default-src 'none'" in policy(live=False)
    assert "unsafe" not in policy(live=False)
    assert "connect-src" not in policy(live=False)
    for name in ("src=", "href=", "@import", "url(http", "innerHTML", "eval(", "document.write"):
        assert name not in page, name
    assert len(page) < 300_000


def test_every_asset_is_used() -> None:
    import prnas.report as package
    from prnas.report import static_page

    folder = Path(package.__file__).parent / "assets"
    used = {*SCRIPTS, *STYLES, *static_page.STYLES, "page.html"}
    assert {one.name for one in folder.iterdir()} == used


def test_what_is_not_finite_is_a_gap() -> None:
    assert rounded(math.nan) is None
    assert rounded(math.inf) is None
    assert rounded(0.123456789) == 0.12346
    assert rounded(4.0) == 4
    assert pick({"a": {"b": 1}}, "a.b") == 1
    assert pick({"a": 3}, "a.b") is None


# --- comparison


def test_runs_of_one_config_are_one_group() -> None:
    views = [search_view(seed=seed) for seed in range(3)]
    views.append(search_view("weights.lr=0.1"))
    views.append(search_view("compute.threads=7", seed=3))
    views.append(search_view(seed=3, cycles=1))
    found = page_data(views)["comparison"]
    groups = found["groups"]
    assert [one["runs"] for one in groups] == [[0, 1, 2, 4, 5], [3]]
    assert groups[0]["ended"] == 4  # the unfinished one has no result yet
    assert groups[0]["values"]["validation"]["n"] == 4
    assert groups[1]["values"]["validation"]["sd"] is None
    distances = found["distances"]
    for one in range(3):
        for other in range(3):
            expected = edit_distance(zoo.get(NAMES[one]), zoo.get(NAMES[other]))
            assert distances[one][other] == expected
    assert distances[5] == [None] * 6


def test_where_and_how_a_run_was_computed_makes_no_other_config() -> None:
    settings = (
        "description=other",
        *("data.root=/elsewhere", "data.workers=0", "data.storage=memory"),
        *("compute.threads=7", "compute.precision=bf16-mixed", "compute.memory_limit=2.0"),
        *("checkpoints.keep=9", "checkpoints.every_minutes=3.5", "validation.batch=7"),
    )
    views = [search_view(), *(search_view(one, seed=i) for i, one in enumerate(settings, 1))]
    groups = page_data(views)["comparison"]["groups"]
    assert [one["runs"] for one in groups] == [list(range(len(views)))]
    assert groups[0]["values"]["validation"]["n"] == len(views)
    # What else a config says is another experiment.
    others = ("data.images=400", "data.flip=true", "batch.max=48", "validation.epochs=last-five")
    views = [search_view(), *(search_view(one) for one in others)]
    assert len(page_data(views)["comparison"]["groups"]) == len(views)


def test_scores_of_supernets_of_several_configs_are_not_compared() -> None:
    same = [search_view(seed=0), search_view(seed=1)]
    other = search_view("weights.lr=0.1", seed=2)

    def shown(views: Any) -> tuple[Any, set[str]]:
        data = page_data(views)
        plots = [plot for part in data["curves"]["search"]["sections"] for plot in part["plots"]]
        return data["comparison"]["results"][0], {plot["title"] for plot in plots}

    results, titles = shown(same)
    assert (results["comparable"], results["note"], len(results["strips"])) == (True, "", 1)
    scores = {
        f"{part} {what}" for part in ("Validation", "Training") for what in ("accuracy", "loss")
    }
    assert scores <= titles
    results, fewer = shown([*same, other])
    assert (results["comparable"], results["strips"], results["range"]) == (False, [], None)
    assert "not the networks of different ones" in results["note"]
    assert fewer == titles - scores
    # Test errors of several configs compare, also beside such searches.
    views = [*same, other, training_view("a"), training_view("b", 1)]
    views[-1].info.config["training"]["lr"] = 0.5
    data = page_data(views)
    assert [one["comparable"] for one in data["comparison"]["results"]] == [False, True]
    first, *_ = data["curves"]["training"]["sections"][0]["plots"]
    assert first["title"] == "Test error"


def test_seeds_of_several_configs_share_an_axis() -> None:
    views = [training_view(f"{seed}", seed) for seed in range(5)]
    for view in views[:2]:
        view.info.config["training"]["lr"] = 0.5
    searches, trainings = page_data(views)["comparison"]["results"]
    assert searches["strips"] == []
    assert searches["range"] is None
    strips = trainings["strips"]
    assert [(one["letter"], one["n"]) for one in strips] == [("A", 2), ("B", 3)]
    low, high = trainings["range"]
    for strip in strips:
        assert low < strip["mean"] - strip["sd"]
        assert strip["mean"] + strip["sd"] < high
        assert all(low < value < high for _, value in strip["dots"])
    assert [seed for seed, _ in strips[1]["dots"]] == [2, 3, 4]
    # A single config needs no letter, and an unfinished run has no result.
    one = page_data([training_view("a"), training_view("b", 1, end=False)])["comparison"]
    assert (one["groups"][0]["letter"], one["results"][1]["strips"]) == (None, [])


def test_what_configs_differ_in() -> None:
    views = [search_view(), search_view("weights.lr=0.1", "schedule.cycles.0.epochs=4", seed=1)]
    searches, trainings = page_data(views)["comparison"]["results"]
    assert trainings["configs"] == []
    assert "not the networks" in searches["note"]
    rows = dict(searches["configs"])
    assert rows["Data"] == ["digits", "digits"]
    assert rows["Setting"] == ["darts-like", "darts-like"]
    assert rows["weights.lr"][1] == "0.1"
    assert rows["schedule.cycles[1].epochs"] == ["3", "4"]
    assert not {"seed", "data.name"} & rows.keys()
    same = page_data(views[:1] * 2)["comparison"]["results"][0]
    assert (same["configs"], same["note"]) == ([], "")
    many = [{"x": {str(i): i * sign for i in range(1, 100)}} for sign in (1, -1)]
    *_, last = differences(many, training=False)
    assert last == ("and 59 more keys", ["…", "…"])
    odd = [{"genotype": "a" * 999, "network": [1]}, {"genotype": {"b": 1}, "data": {"name": None}}]
    told = dict(differences(odd, training=True))
    assert told["Genotype"] == ["genotype 1", "genotype 2"]
    assert told["network"] == ["[1]", "–"]
    labels = [{"pool": ["conv 3x3 ×[1]"]}, {"pool": []}]
    assert dict(differences(labels, training=False))["pool"][0] == '["conv 3x3 ×[1]"]'


def test_spread() -> None:
    assert spread([1.0, 2.0, None, 3.0]) == {"n": 3, "mean": 2, "sd": 1}
    assert spread([4.0]) == {"n": 1, "mean": 4, "sd": None}
    assert spread([None]) is None


# --- trainings


def test_a_training() -> None:
    view = view_of(RunInfo("t", "runs/t", training_config(), [SESSION]))
    for record in training_records(end=False):
        view.add(record)
    assert not view.ended
    assert view.data()["test_error"] == pytest.approx(0.1, abs=0.05)  # so far
    *_, trained = training_records()
    assert isinstance(trained, TrainedRecord)
    view.add(trained)
    run = view.data()
    assert run["kind"] == "training"
    assert run["test_error"] == rounded(trained.test_error)
    assert run["network"]["parameters"] == trained.parameters
    assert run["confusion"]["counts"] == trained.confusion
    assert len(view.epochs.columns["drop_path"]) == 30
    assert set(run["genotype"]["pictures"]) == {"normal", "reduction"}


def test_what_to_do_with_a_training() -> None:
    def commands(records: list[Record], session: dict[str, Any]) -> dict[str, str]:
        view = view_of(RunInfo("t", "runs/a t", training_config(), [session]))
        for record in records:
            view.add(record)
        return dict(view.data()["commands"])

    own = {**SESSION, "command": ["my_script.py", "--fast"]}
    assert commands(training_records(), own) == {
        "Repeat the training": "prnas retrain 'runs/a t' 'runs/a t/config.yaml'",
        "Evaluate the model": "prnas evaluate 'runs/a t'",
        "Export the model": "prnas export 'runs/a t' -o model.onnx",
    }
    assert commands(training_records(end=False), SESSION) == {
        "Repeat the training": "prnas retrain 'runs/a t' 'runs/a t/config.yaml'",
        "Watch it live": "prnas watch 'runs/a t'",
        "Go on if it stopped": "prnas retrain --resume 'runs/a t'",
        "Started by": "prnas search quick --name 'my run'",
    }


def test_confusion_of_many_classes_is_told_by_its_worst_pairs() -> None:
    *_, trained = training_records(classes=[f"class {i}" for i in range(200)])
    assert isinstance(trained, TrainedRecord)
    found = confusion_of([trained])
    assert found is not None
    assert found["counts"] is None
    place, taken, count, _ = found["worst"][0]
    assert count == 5
    assert trained.confusion[place][taken] == 5
    assert len(json.dumps(found)) < 5_000
    for bad in ([[1]], [], [[-1] * 200] * 200):
        assert confusion_of([trained.model_copy(update={"confusion": bad})]) is None


def test_the_confusion_of_seeds_together() -> None:
    trained = [training_records(seed)[-1] for seed in range(3)]
    matrices = [one.confusion for one in trained if isinstance(one, TrainedRecord)]
    data = page_data([training_view(f"{seed}", seed) for seed in range(3)])
    (together,) = data["comparison"]["confusions"]
    assert together["counts"] == [
        [sum(matrix[i][j] for matrix in matrices) for j in range(3)] for i in range(3)
    ]
    assert (together["seeds"], together["run"], together["letter"]) == (3, None, None)
    assert not any("confusion" in run for run in data["runs"])
    # Other classes cannot be added.
    others = page_data([training_view("a"), training_view("b", 1, classes=["cat", "dog", "bird"])])
    assert others["comparison"]["confusions"] == []


# --- records that are still being written


def test_the_reader_reads_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    records = search_records(cycles=2)
    lines = [to_line(one).encode() for one in records]
    lines[0] = header_line().encode() + lines[0]
    path.write_bytes(b"".join(lines[:3]) + lines[3][:10])
    reader = RecordReader(path)
    assert reader.news() == (False, records[:3])
    assert reader.news() == (False, [])
    path.write_bytes(b"".join(lines[:5]))
    assert reader.news() == (False, records[3:5])
    path.write_bytes(b"".join(lines[:2]))
    assert reader.news() == (True, records[:2])
    # Cut back and grown past the old place, between two looks.
    reader.news()
    path.write_bytes(b"".join([lines[0], *lines[2:8]]))
    assert reader.news() == (True, [records[0], *records[2:8]])
    with path.open("ab") as file:
        file.write(b"{}\n")
    with pytest.raises(FormatError, match=r"records\.jsonl, line 9"):
        reader.news()


def test_no_two_scripts_declare_the_same_name() -> None:
    """They share a scope: of two functions with one name, the later would replace the other."""
    declared = re.compile(
        r"^(?:export )?(?:async )?(?:const|let|function|class) (\w+)", re.MULTILINE
    )
    assets = files("prnas.report") / "assets"
    texts = [(assets / script).read_text(encoding="utf-8") for script in SCRIPTS]
    names = [name for text in texts for name in declared.findall(text)]
    assert len(names) > 100
    assert [name for name in set(names) if names.count(name) > 1] == []
