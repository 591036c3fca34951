"""The tables of docs/results.md are those that the records in results/ say."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.results import Column, GroupTable, ListTable, PivotTable, Record
from prnas.config.methods import METHODS

ROOT = Path(__file__).parents[2]


def test_the_page_is_made_of_the_records() -> None:
    page = results.PAGE.read_text(encoding="utf-8")
    assert results.with_tables(page, results.read_tables()) == page, "python -m benchmarks.results"


def test_our_figures_of_methods_are_made_of_the_records() -> None:
    page = results.METHODS_PAGE.read_text(encoding="utf-8")
    assert results.with_figures(page) == page, "python -m benchmarks.results"
    measured = page.count("**Ours.** In the space of NAS-Bench-201")
    unmeasured = page.count("**Ours.** What it finds was not measured: ")
    assert (measured + unmeasured, unmeasured) == (len(METHODS), 1)
    assert page.count("**Ours.**") == len(METHODS)
    changed = page.replace("91.11 ± 2.29", "92.11 ± 2.29")
    assert changed != page
    assert results.with_figures(changed) == page


def test_every_table_of_the_page_has_records() -> None:
    page = results.PAGE.read_text(encoding="utf-8")
    outside = results._BLOCK.sub("", page)
    assert [line for line in outside.splitlines() if line.startswith("|")] == []


def test_every_table_says_how_to_repeat_it() -> None:
    tables = results.read_tables()
    for name, table in tables.items():
        assert (table.command is None) != (table.study is None), name
        assert {"prnas", "torch", "python"} <= set(table.versions), name
        if table.study is not None and "/" in table.study:
            assert (ROOT / table.study).is_file(), name
    listed = (results.RESULTS / "README.md").read_text(encoding="utf-8")
    assert [name for name in tables if f"`{name}`" not in listed] == []
    used = {table.records or f"{name}.csv" for name, table in tables.items()}
    assert {file.name for file in results.RESULTS.glob("*.csv")} == used


def test_a_changed_record_changes_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = results.read_tables()["nasbench201-small"]
    text = (results.RESULTS / "nasbench201-small.csv").read_text(encoding="utf-8")
    before = table.markdown("nasbench201-small")
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    changed = text.replace("0.06659999999999999", "0.0766")
    assert changed != text
    (tmp_path / "nasbench201-small.csv").write_text(changed, encoding="utf-8")
    after = table.markdown("nasbench201-small")
    assert "93.34, 93.34, 94.34" in before
    assert "92.34, 93.34, 94.34" in after


def test_a_list_and_its_means() -> None:
    columns = (Column(heading="s", of="s"), Column(heading="e", of="e", digits=1, unit=" %"))
    table = ListTable(kind="list", columns=columns, means=True)
    records: list[Record] = [{"s": "0", "e": "1"}, {"s": "1", "e": "3"}]
    lines = table.lines(records)
    assert lines == [
        ["s", "e"],
        ["0", "1.0 %"],
        ["1", "3.0 %"],
        ["mean ± deviation", "2.0 ± 1.4 %"],
    ]


def test_groups_in_the_order_of_their_names() -> None:
    table = GroupTable(
        kind="groups",
        heading="row",
        by="row",
        value="error",
        what="accuracy",
        accuracy=True,
        names={"b": "B", "a": "A"},
        show=("n", "mean", "worst", "best", "median", "every"),
        also=(Column(heading="size", of="size", digits=0),),
        facts={"published": {"a": "5"}},
        digits=0,
    )
    records: list[Record] = [
        {"row": "a", "error": "0.1", "size": "1000"},
        {"row": "b", "error": "0.2", "size": "1"},
        {"row": "a", "error": "0.3", "size": "3000"},
    ]
    assert table.lines(records) == [
        [
            *("row", "n", "accuracy, mean ± deviation", "worst", "best", "median", "each", "size"),
            "published",
        ],
        ["B", "1", "80", "80", "80", "80", "80", "1", "–"],
        ["A", "2", "80 ± 14", "70", "90", "80", "90, 70", "2,000", "5"],
    ]


def test_records_of_one_unit_count_once() -> None:
    table = GroupTable(
        kind="groups", heading="row", by="r", value="e", what="error, %", unit="seed",
        names={"a": "A"}, show=("n", "mean", "every"), digits=0,
    )  # fmt: skip
    records: list[Record] = [
        {"r": "a", "seed": seed, "e": error}
        for seed, error in (("0", "0.1"), ("0", "0.3"), ("1", "0.4"))
    ]
    assert table.lines(records)[1] == ["A", "2", "30 ± 14", "20, 40"]


def test_a_pivot_of_single_values_may_have_their_intervals() -> None:
    bounds = ("low", "high")
    table = PivotTable(
        kind="pivot", heading="by", rows="r", columns="c", value="v", digits=1, interval=bounds
    )
    one: Record = {"r": "x", "c": "1", "v": "0.5", "low": "0.25", "high": "1"}
    assert table.lines([one])[1] == ["x", "0.5 (0.2–1.0)"]
    assert table.lines([one, one])[1] == ["x", "0.5 (0.5, 0.5)"], "a mean has none"


def test_a_pivot_has_the_mean_or_the_median_and_all() -> None:
    table = PivotTable(kind="pivot", heading="by", rows="r", columns="c", value="v", digits=1)
    records: list[Record] = [
        {"r": "x", "c": "1", "v": "-1"},
        {"r": "x", "c": "1", "v": "-2"},
        {"r": "x", "c": "2", "v": "3"},
    ]
    assert table.lines(records) == [["by", "1", "2"], ["x", "−1.5 (−1.0, −2.0)", "3.0"]]
    named = table.model_copy(update={"scale": 100.0, "names": {"x": "a row", "2": "second"}})
    assert named.lines(records) == [
        ["by", "1", "second"],
        ["a row", "−150.0 (−100.0, −200.0)", "300.0"],
    ]
    records += [{"r": "x", "c": "1", "v": "4"}]
    medians = table.model_copy(update={"middle": "median"})
    assert medians.lines(records)[1] == ["x", "−1.0 (−1.0, −2.0, 4.0)", "3.0"]


def test_what_a_step_takes_is_the_same_figure_on_both_pages() -> None:
    """The median of the turns, which `prnas methods` shows as well."""
    lines = results.read_tables()["method-steps"].table.lines(
        results.read_records(results.RESULTS / "method-steps.csv")
    )
    for name, time, memory in lines[2:]:
        took, held = time.split()[0], memory.split()[0]
        said = f"A step takes {took} of the time and {held} of the memory"
        assert said in " ".join(results.figures_of(name)), name


def test_the_command() -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "benchmarks.results", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)  # noqa: S603

    assert run("--check").returncode == 0
    assert "| found by `quick` | 5 |" in run("baselines-quick").stdout
    unknown = run("nothing")
    assert unknown.returncode == 2
    assert "there are quick-search, " in unknown.stderr
