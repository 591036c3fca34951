"""`prnas report` as a real process."""

import importlib.util
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from prnas import cli
from prnas.commands import retrain
from prnas.commands.report import write_figures
from prnas.report import plots
from prnas.report.read_run import read_view
from prnas.studies.folder import open_study
from tests.support.command_line import bad, good, modules_after
from tests.support.in_process import Cli
from tests.support.made_studies import made_plan
from tests.support.pages import data_of
from tests.support.synthetic_runs import HOSTILE, write_search, write_training


def runs_of(page: Path) -> list[str]:
    return [run["name"] for run in data_of(page.read_text(encoding="utf-8"))["runs"]]


def test_one_run(tmp_path: Path) -> None:
    folder = write_search(tmp_path / "run")
    said = good("report", "run", cwd=tmp_path)
    assert "wrote run/report.html" in said
    assert runs_of(folder / "report.html") == ["run"]
    said = good("report", "run", "-o", "other.html", "--json", cwd=tmp_path)
    told = json.loads(said)
    (result,) = told.pop("results")
    assert told == {"report": "other.html", "runs": ["run"], "ended": [True], "figures": []}
    assert (result["config"], result["ended"]) == ("run", 1)
    assert result["parameters"]["mean"] == pytest.approx(4_018_000, rel=1e-4)
    assert runs_of(tmp_path / "other.html") == ["run"]


def test_a_study_has_a_page_of_its_own(tmp_path: Path) -> None:
    open_study(tmp_path / "study", made_plan(seeds=1))
    said = good("report", "study", cwd=tmp_path)
    assert "wrote study/report.html" in said
    assert "0 of 4 jobs done" in said
    page = data_of((tmp_path / "study" / "report.html").read_text(encoding="utf-8"))
    assert [row["name"] for row in page["study"]["rows"]] == ["pr-darts", "random", "darts-v2"]
    said = good("report", "study", "-o", "pages.html", "--json", cwd=tmp_path)
    assert json.loads(said)["ended"] == [False] * 4
    page = data_of((tmp_path / "pages.html").read_text(encoding="utf-8"))
    assert page["study"]["links"] == "./study/"
    write_search(tmp_path / "run")
    assert "a page of its own" in bad("report", "run", "study", cwd=tmp_path)
    assert "is a study" in bad("report", "study", "--figures", "f", cwd=tmp_path)


def test_several_runs_and_seeds(tmp_path: Path) -> None:
    for seed in range(2):
        write_search(tmp_path / f"run-{seed}", seed=seed)
    for seed in (0, 2, 10):
        write_training(tmp_path / "group" / f"seed-{seed}", seed)
    (tmp_path / "group" / "seed-x").mkdir()
    assert "2 runs compared" in good("report", "run-0", "run-1", cwd=tmp_path)
    assert runs_of(tmp_path / "comparison.html") == ["run-0", "run-1"]
    good("report", "group", cwd=tmp_path)
    assert runs_of(tmp_path / "group" / "report.html") == ["seed-0", "seed-2", "seed-10"]
    page = (tmp_path / "group" / "report.html").read_text(encoding="utf-8")
    assert data_of(page)["title"] == "group"
    good("report", "group", "run-0", cwd=tmp_path)
    assert len(runs_of(tmp_path / "comparison.html")) == 4


def test_two_groups_can_be_told_apart(tmp_path: Path) -> None:
    for group in ("a", "b", "c/a"):
        for seed in range(2):
            write_training(tmp_path / group / f"seed-{seed}", seed)
    good("report", "a", "b", cwd=tmp_path)
    page = tmp_path / "comparison.html"
    assert runs_of(page) == ["a/seed-0", "a/seed-1", "b/seed-0", "b/seed-1"]
    good("report", "a/seed-0", "b/seed-0", cwd=tmp_path)
    assert runs_of(page) == ["a/seed-0", "b/seed-0"]
    good("report", "a", "c/a", "b/seed-1", cwd=tmp_path)
    assert runs_of(page) == [
        *("a/seed-0", "a/seed-1", "c/a/seed-0", "c/a/seed-1"),
        "b/seed-1",
    ]


def test_a_report_never_spoils_a_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = write_training(tmp_path / "group" / "seed-0")
    retrain.write_report(tmp_path / "group")
    assert runs_of(tmp_path / "group" / "report.html") == ["seed-0"]
    assert capsys.readouterr().out == ""
    (broken / "records.jsonl").write_text("rubbish\n")
    retrain.write_report(tmp_path / "group")
    assert "note: cannot write" in capsys.readouterr().out
    retrain.write_report(tmp_path / "nowhere")


def test_a_run_that_was_named_twice(tmp_path: Path) -> None:
    write_search(tmp_path / "run", cycles=1)
    said = good("report", "run", "./run", cwd=tmp_path)
    assert "shown once" in said
    assert runs_of(tmp_path / "run" / "report.html") == ["run"]
    assert not (tmp_path / "comparison.html").exists()


def test_the_page_of_a_group_begins_with_what_its_seeds_have_in_common(tmp_path: Path) -> None:
    for seed in range(2):
        write_training(tmp_path / "group" / f"seed-{seed}", seed)
    seeds = '{"format": "prnas-retrain-group", "version": 1, "seeds": [0, 1]}'
    (tmp_path / "group" / "group.json").write_text(seeds)
    good("report", "group", cwd=tmp_path)
    head = data_of((tmp_path / "group" / "report.html").read_text(encoding="utf-8"))["head"]
    facts = dict(head["facts"])
    assert facts["Data"] == "cifar10"
    assert facts["Device"] == "CPU (x86_64), 2 threads"
    assert facts["Seeds"] == "0, 1 (all finished)"
    assert facts["Folder"] == "group"
    assert not {"Seed", "Started"} & facts.keys()
    commands = dict(head["commands"])
    assert commands["Evaluate a model"] == "prnas evaluate group/seed-0"
    assert commands["Export a model"] == "prnas export group/seed-0 -o model.onnx"


def test_a_folder_with_a_hostile_name(tmp_path: Path) -> None:
    name = HOSTILE.replace("/", "_").replace("\x07", "")
    folder = write_search(tmp_path / name, cycles=1)
    good("report", str(folder))
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert data_of(page)["runs"][0]["name"] == name
    assert "<script>document" not in page


def test_figures(tmp_path: Path) -> None:
    write_search(tmp_path / "run")
    said = good("report", "run", "--figures", "figures", "--json", cwd=tmp_path)
    drawn = {Path(one).name for one in json.loads(said)["figures"]}
    assert drawn == {one.name for one in (tmp_path / "figures").iterdir()}
    for name in ("accuracy", "kernels-normal", "parents", "all", "cells", "cell-reduction"):
        assert f"{name}.svg" in drawn
        assert (tmp_path / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    size = ElementTree.parse(tmp_path / "figures" / "accuracy.svg").getroot()  # noqa: S314
    assert float(size.attrib["width"].removesuffix("pt")) <= 3.5 * 72  # a column
    for name in ("all", "cells", "cell-normal"):
        root = ElementTree.parse(tmp_path / "figures" / f"{name}.svg").getroot()  # noqa: S314
        assert float(root.attrib["width"].removesuffix("pt")) <= 7 * 72  # a page


def test_figures_of_several_runs_compare_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    from prnas.report import figures

    # One plot of each kind is enough here.
    monkeypatch.setattr(figures, "compared_plots", lambda *of: plots.compared_plots(*of)[:1])
    views = [
        *(read_view(write_search(tmp_path / f"run-{seed}", seed=seed)) for seed in range(2)),
        *(
            read_view(write_training(tmp_path / name / f"seed-{seed}", seed), f"{name}/seed-{seed}")
            for name in ("a", "b <&")
            for seed in range(2)
        ),
    ]
    for view in views[4:]:
        dict(view.info.config)["training"]["lr"] = 0.5
    drawn = write_figures(views, tmp_path / "figures")
    names = [
        *("search-results", "search-accuracy-validation", "search-all"),
        *("training-results", "training-error-test", "training-all"),
        *("training-confusion-a", "training-confusion-b"),
    ]
    files = [f"{name}.{ending}" for name in names for ending in ("svg", "pdf")]
    assert [path.name for path in drawn] == files  # and none of single runs
    before = {path: path.read_bytes() for path in drawn}
    write_figures(views, tmp_path / "figures")
    assert {path: path.read_bytes() for path in drawn} == before  # the same bytes again

    def texts(name: str) -> list[str | None]:
        tree = ElementTree.parse(tmp_path / "figures" / f"{name}.svg")  # noqa: S314
        return [one.text for one in tree.iter("{http://www.w3.org/2000/svg}text")]

    assert {"a (n = 2)", "b <& (n = 2)"} <= set(texts("training-results"))
    assert texts("training-error-test")[-2:] == ["a (n = 2)", "b <& (n = 2)"]
    assert texts("training-all")[-2:] == ["a (n = 2)", "b <& (n = 2)"]
    assert texts("search-accuracy-validation")[-1] == "mean ± sd, n = 2"  # a single config


def test_figures_do_not_compare_supernets_of_several_configs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    from prnas.report import figures

    monkeypatch.setattr(figures, "compared_plots", lambda *of: plots.compared_plots(*of)[:1])
    folders = [write_search(tmp_path / "a"), write_search(tmp_path / "b", "weights.lr=0.1")]
    drawn = write_figures([read_view(one) for one in folders], tmp_path / "figures")
    stems = dict.fromkeys(path.stem for path in drawn)
    assert list(stems) == ["search-learning-rate", "search-all"]


def test_figures_without_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_search(tmp_path / "run")
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name)
    )
    with pytest.raises(SystemExit) as exited:
        cli.main(["report", str(folder), "--figures", str(tmp_path / "figures")])
    assert exited.value.code == 2
    assert "pip install matplotlib (the extra 'figures' of prnas)" in capsys.readouterr().err
    assert not (folder / "report.html").exists()  # nothing was written


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name a run's folder"),
        (["nowhere"], "there is no run's folder nowhere"),
        (["."], "it has no config.yaml"),
        (["run/config.yaml"], "there is no run's folder run/config.yaml"),
        (["run", "nowhere"], "nowhere"),
        (["run", "-o", "."], "is a folder"),
        (["run", "-o", "page.pdf"], "must end with .html"),
        (["run", "-o", "no/such/page.html"], "cannot write no/such/page.html"),
        (["run", "--figures", "run/config.yaml"], "is a file"),
        (["broken"], "broken/records.jsonl, line 1"),
        (["yaml"], "yaml/config.yaml: line 1"),
        (["a\0b"], "a"),
    ],
    ids=lambda one: " ".join(one)[:30].replace("\0", "0"),
)
def test_mistakes(here: Cli, arguments: list[str], said: str, tmp_path: Path) -> None:
    write_search(tmp_path / "run", cycles=1)
    (write_search(tmp_path / "broken", cycles=1) / "records.jsonl").write_text('{"type": 1}\n')
    (write_search(tmp_path / "yaml", cycles=1) / "config.yaml").write_text("a: [")
    assert said in here.bad("report", *arguments)
    assert not list(tmp_path.rglob("*.html"))


def test_a_damaged_environment_stops_nobody(tmp_path: Path) -> None:
    folder = write_search(tmp_path / "run", cycles=1)
    (folder / "environment.json").write_text("{")
    good("report", "run", cwd=tmp_path)
    assert runs_of(folder / "report.html") == ["run"]


def test_no_torch_and_no_matplotlib_for_a_page(tmp_path: Path) -> None:
    loaded = modules_after("report", str(write_search(tmp_path / "run", cycles=1)))
    assert not loaded & {"torch", "numpy", "matplotlib", "lightning_fabric"}


def test_help() -> None:
    assert "report" in good("--help")
    assert "--figures" in good("report", "--help")
    assert bad("report", "--figure", "x")
