"""A search by the table of NAS-Bench-201: an ordinary run that trains nothing."""

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

import prnas
from prnas.config.search import SearchConfig
from prnas.io.errors import FormatError, UserError
from prnas.report.read_run import read_view
from prnas.runs.named import config_of
from prnas.runs.record_lines import from_line, read_records, to_line
from prnas.runs.records import EvaluationRecord, GenotypeRecord, TruthRecord
from prnas.runs.run import Stopped
from prnas.searching.api import resume, start
from prnas.space.genotype import Genotype
from prnas.space.nasbench201.truth import truth_of
from tests.support.command_line import bad, good
from tests.support.watching import Watch, assert_same_run, folder_of

METHODS = ["random", "evolution", "local-search", "reinforce"]


def config(method: str = "evolution", *overrides: str) -> SearchConfig:
    given = (f"searcher.method={method}", "searcher.budget.evaluations=40", *overrides)
    return config_of("random", given, SearchConfig)


class At(Watch):
    """Acts after so many evaluations."""

    def on_evaluation(self, record: EvaluationRecord) -> None:
        self.events.append("evaluation")
        if self.events.count("evaluation") == self.at:
            self.act()


@pytest.mark.parametrize("method", METHODS)
def test_it_leaves_an_ordinary_run(method: str, tmp_path: Path) -> None:
    watch = At()
    result = start(config(method), runs=tmp_path, name="run", callbacks=[watch])
    folder = tmp_path / "run"
    assert watch.events == ["start", *["evaluation"] * 40, "end", "close"]
    *evaluations, genotype, truth = read_records(folder / "records.jsonl")
    assert all(isinstance(record, EvaluationRecord) for record in evaluations)
    assert tuple(evaluations) == result.evaluations
    best = max(result.evaluations, key=lambda record: record.score)
    assert Genotype.from_json(best.genotype) == result.genotype
    known = truth_of(result.genotype)
    assert known is not None
    assert best.score == pytest.approx(known.data_sets["cifar10"].validation_12 / 100)
    assert best.images == 300_000 * best.number
    assert isinstance(genotype, GenotypeRecord)
    assert isinstance(truth, TruthRecord)
    assert truth.truth == known.to_json()
    assert Genotype.loads((folder / "genotype.json").read_text()) == result.genotype
    assert json.loads(good("truth", str(folder), "--json"))["index"] == known.index
    again = resume(folder)
    assert again.genotype == result.genotype
    assert again.evaluations == result.evaluations
    assert start(config(method), runs=None).genotype == result.genotype, "without a folder"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("at", [1, 23])
def test_a_stopped_search_goes_on_bit_for_bit(method: str, at: int, tmp_path: Path) -> None:
    start(config(method), runs=tmp_path, name="whole")
    stop = At(at, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped) as caught:
        start(config(method), runs=tmp_path, name="cut", callbacks=[stop])
    folder = folder_of(caught.value)
    assert caught.value.number == signal.SIGTERM
    assert not (folder / "genotype.json").exists()
    watch = At()
    resume(folder, callbacks=[watch])
    assert watch.start.resumed
    assert watch.start.evaluations == at
    assert_same_run(folder, tmp_path / "whole")


def test_what_a_kill_leaves_goes_on_from_the_last_checkpoint(tmp_path: Path) -> None:
    class Kill(Exception):  # noqa: N818
        pass

    def kill() -> None:
        raise Kill

    start(config(), runs=tmp_path, name="whole")
    with pytest.raises(Kill):
        start(config(), runs=tmp_path, name="cut", callbacks=[At(17, kill)])
    resume(tmp_path / "cut")
    assert_same_run(tmp_path / "cut", tmp_path / "whole")


@pytest.mark.parametrize(
    ("budget", "number"),
    [
        ("{evaluations: 7}", 7),
        ("{images: 900000}", 3),
        ("{images: 1}", 1),
        ("{evaluations: 5, images: 1199999}", 3),
        ("{evaluations: 9, seconds: 1e-9}", 1),
        ("{seconds: 1e-9}", 1),
    ],
)
def test_the_first_bound_of_the_budget_ends_it(budget: str, number: int) -> None:
    result = start(config("random", f"searcher.budget={budget}"), runs=None)
    assert len(result.evaluations) == number


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["searcher.budget={}"], "set evaluations, images, steps or seconds"),
        (
            ["searcher.method=evolve"],
            "'reinforce', 'controller' or 'halving', got 'evolve'",
        ),
        (["network.shape=darts"], "the table has only cells of NAS-Bench-201"),
        (["space=darts-like", "network.shape=darts"], "the table has only cells of NAS-Bench-201"),
        (["network.nodes=2"], "the table has only cells of NAS-Bench-201"),
        (
            ["searcher.scorer=supernet", "searcher.evolution.mutation=morphisms"],
            "operations that the supernet does not hold",
        ),
    ],
)
def test_what_cannot_be_is_refused(overrides: list[str], words: str) -> None:
    with pytest.raises((FormatError, UserError), match=re.escape(words)):
        config("random", *overrides)


def test_morphisms_make_what_the_first_pool_lacks() -> None:
    growing = config(
        "evolution", "space=nasbench201-growing", "searcher.evolution.mutation=morphisms"
    )
    labels = {
        edge["op"]["kernel"]
        for record in start(growing, runs=None).evaluations
        for node in record.genotype["normal"]["nodes"]
        for edge in node
        if edge["op"]["type"] == "plain_conv"
    }
    assert labels == {1, 3}


def test_a_record_goes_to_its_line_and_back() -> None:
    (record, *_) = start(config("evolution"), runs=None).evaluations
    assert from_line(to_line(record)) == record
    assert '"parent"' not in to_line(record)


def test_the_command_shows_what_is_found_and_goes_on(here: Path) -> None:
    said = good("search", "evolution", "--name", "run", "--seed", "3")
    assert "ageing evolution (population 10, sample 10) by the table of NAS-Bench-201" in said
    assert re.search(r"evaluation \d+/100: \d\d\.\d\d %, the best so far", said)
    assert re.search(r"score +\d\d\.\d\d %, in evaluation \d+ of 100", said)
    assert "Truth, by NAS-Bench-201" in said
    assert "prnas retrain runs/run" in said
    assert "100 evaluations" in good("search", "--resume", "runs/run")
    assert "not measured" not in said
    assert "of a search" in bad("retrain", "--resume", "runs/run")
    good("report", "runs/run")
    assert "random" in good("recipes")


def test_from_python() -> None:
    result = prnas.search("local-search", seed=5)
    assert len(result.evaluations) == 100
    assert truth_of(result.genotype) is not None
    assert result.epochs == ()


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    folder = folder_of(start(config(), runs=tmp_path, name="run"))
    rewrite(folder, lambda state: state["asking"]["searcher"].update(method="random"))
    with pytest.raises(UserError, match="the checkpoint does not fit this run"):
        resume(folder)


def rewrite(folder: Path, change: Any) -> None:
    """A checkpoint that is whole, and not what this run wrote."""
    import hashlib

    for path in (folder / "checkpoints").iterdir():
        state = json.loads((path / "state.json").read_text())
        change(state)
        (path / "state.json").write_text(json.dumps(state))
        sums = json.loads((path / "checksums.json").read_text())
        sums["state.json"] = hashlib.sha256((path / "state.json").read_bytes()).hexdigest()
        (path / "checksums.json").write_text(json.dumps(sums))


def test_the_report_has_every_evaluation(tmp_path: Path) -> None:
    result = start(config("evolution"), runs=tmp_path, name="run")
    shown = read_view(tmp_path / "run").data()
    assert shown["searcher"]["scores"] == [round(one.score, 6) for one in result.evaluations]
    assert shown["searcher"]["parents"] == [one.parent for one in result.evaluations]
    assert shown["ended"]
    assert (shown["done"], shown["planned"]) == (40, 40)
