"""The list of plots: what it draws is what the records say, and every drawer knows its words."""

import json
import re
from collections.abc import Iterable
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.report.page import page_data, unique_names
from prnas.report.plain_data import rounded
from prnas.report.plots import (
    COUNT,
    DASHES,
    Line,
    Plot,
    compared_plots,
    mean_plots,
    plots_of,
    sections,
)
from prnas.report.search_view import SearchView
from prnas.report.view import RunInfo, View
from prnas.runs.records import BatchRecord, EpochRecord
from prnas.space.genotype import ROLES
from tests.support.synthetic_runs import search_records, training_records
from tests.support.views import search_view, training_view

ASSETS = files("prnas.report") / "assets"


def by_id(plots: Iterable[Plot]) -> dict[str, Plot]:
    listed = list(plots)
    found = {plot.id: plot for plot in listed}
    assert len(found) == len(listed)
    return found


def line(plot: Plot, label: str) -> Line:
    return next(one for one in plot.lines if one.label == label)


def test_scores_are_those_of_the_epochs() -> None:
    plots = by_id(plots_of(search_view()))
    epochs = [one for one in search_records() if isinstance(one, EpochRecord)]
    trained = line(plots["accuracy"], "weights")
    assert trained.ys == [rounded(one.scores["weights"].accuracy) for one in epochs]
    assert trained.xs is None  # at the ends of epochs
    gaps = ["architecture" not in one.scores for one in epochs]
    assert [y is None for y in line(plots["loss"], "architecture").ys] == gaps
    assert True in gaps
    plots = by_id(plots_of(training_view("t")))
    trainings = [one for one in training_records() if isinstance(one, EpochRecord)]
    errors = [rounded(1 - one.scores["test"].accuracy) for one in trainings]
    assert line(plots["error"], "test").ys == errors
    assert line(plots["drop-path"], "probability").ys == [rounded(t.drop_path) for t in trainings]


def test_the_genotype_if_the_search_ended_now() -> None:
    plots = by_id(plots_of(search_view()))
    epochs = [one for one in search_records() if isinstance(one, EpochRecord)]
    derived = [one.derived for one in epochs]
    assert line(plots["edits"], "edits").ys == [one and one.edits for one in derived]
    for role in ROLES:
        shares = [one and one.skips[role] for one in derived]
        assert line(plots["skips"], f"{role} cell").ys == [rounded(share) for share in shares]
    (rates,) = plots["architecture-rate"].lines
    assert rates.ys == [None if one.grace else 0.05 for one in epochs]
    assert {None, 0.05} == set(rates.ys)


def test_older_searches_have_no_plots_of_what_they_did_not_record() -> None:
    view = SearchView(RunInfo("old", "old"))
    for record in search_records():
        if isinstance(record, EpochRecord):
            record = record.model_copy(update={"architecture_lr": None, "derived": None})
        view.add(record)
    ids = {plot.id for plot in plots_of(search_view())} - {plot.id for plot in plots_of(view)}
    assert ids == {"architecture-rate", "edits", "skips"}


def test_pools_hold_from_their_cycles_start_to_the_next() -> None:
    view = search_view()
    starts = [band.start for band in view.bands]
    for name in ("operations-normal", "kernels-reduction", "similarity", "discovered"):
        for one in by_id(plots_of(view))[name].lines:
            assert one.xs == [*starts, 20]  # and the end has the last pools
            assert one.until == 20
    half = by_id(plots_of(search_view(cycles=2)))
    assert half["similarity"].lines[0].xs == starts[:3]
    assert half["similarity"].lines[0].until == 6  # nothing of epochs to come
    assert half["parents"].lines[0].xs == [3, 6]
    shares = [one.ys for one in half["operations-normal"].lines]
    for cycle in zip(*shares, strict=True):
        assert sum(cycle) == pytest.approx(1, abs=1e-4)


def test_the_batch_size_changes_where_it_changed() -> None:
    (sizes,) = by_id(plots_of(search_view()))["batch-size"].lines
    records = [one.batch for one in search_records() if isinstance(one, BatchRecord)]
    assert list(sizes.ys) == records
    assert sizes.xs is not None
    assert list(sizes.xs) == sorted(sizes.xs)
    (alone,) = by_id(plots_of(training_view("t")))["batch-size"].lines  # no records of changes
    assert (alone.xs, alone.ys, alone.until) == (list(range(30)), [96] * 30, 30)


def test_zero_is_shown_only_where_it_is() -> None:
    def kinds(view: View) -> list[str]:
        return [one.label for one in by_id(plots_of(view))["operations-normal"].lines]

    assert kinds(search_view()) == ["conv", "pool", "skip"]
    pool = "space.initial_pool=[zero, skip, conv 3x3, max 3x3]"
    assert kinds(search_view("z", pool)) == ["conv", "pool", "skip", "zero"]


def test_runs_over_each_other() -> None:
    views = [search_view(f"run {i}") for i in range(9)]
    names = [view.info.name for view in views]
    plots = by_id(compared_plots(views, names))
    titles = [plot.title for plot in plots.values()]
    assert titles[:6] == [
        *("Validation accuracy", "Training accuracy", "Validation loss", "Training loss"),
        *("Learning rate", "Learning rate of the architecture"),
    ]
    assert titles[6] == "Edits since the epoch before"
    assert titles[7:9] == [f"Share of skips if derived, {role} cell" for role in ROLES]
    assert titles[9:11] == ["Share of conv, normal cell", "Share of conv, reduction cell"]
    assert len(set(titles)) == len(titles)
    own = by_id(plots_of(views[0]))
    for plot in plots.values():
        assert [one.label for one in plot.lines] == names
        assert len({(one.color, one.dash) for one in plot.lines}) == 9
    assert plots["accuracy-validation"].lines[3].ys == line(own["accuracy"], "validation").ys
    assert plots["parents-reduction"].lines[0].xs == line(own["parents"], "reduction cell").xs


def over_seeds(*lines: Line) -> Line:
    plot = Plot("p", "P", "learning", COUNT, lines)
    (mean,) = mean_plots([plot], {"config": range(len(lines))})
    (found,) = mean.lines
    assert found.label == "config"
    return found


def test_means_over_seeds() -> None:
    found = over_seeds(Line("a", [1.0, 2.0, None, 4.0]), Line("b", [3.0, 2.0, 1.0]))
    assert found.xs == [1, 2, 3, 4]
    assert found.ys == [2.0, 2.0, None, None]  # only where both have a value
    assert found.deviations == [pytest.approx(2**0.5), 0.0, None, None]
    assert found.until is None
    alone = over_seeds(Line("a", [1.0, None]))
    assert (alone.ys, alone.xs, alone.deviations) == ([1.0, None], None, None)
    ends = [Line("a", [1.0, 2.0], xs=[3, 6]), Line("b", [3.0], xs=[3])]
    assert (over_seeds(*ends).xs, over_seeds(*ends).ys) == ([3, 6], [2.0, None])


def test_means_of_values_that_hold() -> None:
    one = Line("a", [8.0, 16.0], xs=[0, 2.5], until=10)
    other = Line("b", [4.0, 8.0, 2.0], xs=[0, 4, 4], until=5)
    found = over_seeds(one, other)
    assert found.xs == [0, 2.5, 4]
    assert found.ys == [6.0, 10.0, 9.0]  # the last of two at one place counts
    assert found.until == 5  # one of them has gone no further
    late = over_seeds(one, Line("b", [2.0], xs=[1], until=10))
    assert (late.xs, late.ys) == ([0, 1, 2.5], [None, 5.0, 9.0])


def test_means_of_each_config() -> None:
    views = [training_view(f"{seed}", seed) for seed in range(3)]
    plots = compared_plots(views, ["x", "y", "z"])
    means = mean_plots(plots, {"first": [0, 2], "second": [1]})
    assert [plot.id for plot in means] == [plot.id for plot in plots]
    for mean, runs in zip(means, plots, strict=True):
        assert [line.label for line in mean.lines] == ["first", "second"]
        assert len({(line.color, line.dash) for line in mean.lines}) == 2
        x, _, z = (line.ys for line in runs.lines)
        last = mean.lines[0].ys[-1]
        assert x[-1] is not None
        assert z[-1] is not None
        assert last == pytest.approx((x[-1] + z[-1]) / 2)
        assert mean.lines[1].ys == runs.lines[1].ys


def test_a_run_that_has_only_begun_has_all_plots() -> None:
    full, new = plots_of(search_view()), plots_of(search_view("new", cycles=0))
    assert [plot.id for plot in full] == [plot.id for plot in new]
    both = compared_plots([search_view("a"), search_view("b", cycles=0)], ["a", "b"])
    assert all(len(plot.lines) == 2 for plot in both)


def test_the_page_and_the_figures_know_every_word_of_the_list() -> None:
    pytest.importorskip("matplotlib")
    from prnas.report.figures import COLORS

    runs = [search_view("a"), training_view("b")]
    plots = [plot for view in runs for plot in [*plots_of(view), *compared_plots([view], ["x"])]]
    formats = {word for plot in plots for word in (plot.format.name, plot.format.tick)}
    written = (ASSETS / "format.js").read_text(encoding="utf-8")
    assert formats <= set(re.findall(r"^  (\w+)[:(]", written, re.MULTILINE))
    colors = {one.color for plot in plots for one in plot.lines}
    style = (ASSETS / "base.css").read_text(encoding="utf-8")
    assert colors <= set(re.findall(r"--(\w+):", style)) & COLORS.keys()
    assert {one.dash for plot in plots for one in plot.lines} <= set(DASHES)


def test_what_the_page_gets() -> None:
    view = search_view()
    data = sections(plots_of(view), view.kind)
    assert [section["id"] for section in data] == ["learning", "derived", "pools", "machine"]
    assert json.loads(json.dumps(data, allow_nan=False)) is not None
    plots = {plot["id"]: plot for section in data for plot in section["plots"]}
    assert plots["discovered"]["format"]["whole"]
    assert (plots["discovered"]["low"], plots["discovered"]["note"]) == (0.0, "of 15")
    assert "high" not in plots["accuracy"]
    weights, *_ = plots["accuracy"]["lines"]
    assert weights["color"] == "blue"
    assert not {"xs", "until", "dash"} & weights.keys()
    assert page_data([view])["curves"]["search"]["cycles"][1] == {"start": 3, "end": 6, "grace": 1}


def test_cycles_are_drawn_over_runs_that_have_the_same() -> None:
    other = "schedule.cycles=[{epochs: 30, grace_epochs: 1, morphisms: 0, candidates: 1}]"
    same = page_data([search_view("a"), search_view("b", cycles=1)])["curves"]["search"]
    assert (len(same["cycles"]), same["end"], same["done"]) == (9, 20, 20)
    mixed = page_data([search_view("a"), search_view("b", other), training_view("t")])["curves"]
    assert (mixed["search"]["cycles"], mixed["search"]["end"]) == ([], 30)
    assert mixed["training"]["end"] == 30


@given(st.lists(st.sampled_from(["a", "a (2)", "a (3)", "b"]), max_size=8))
def test_every_run_has_a_name_of_its_own(names: list[str]) -> None:
    unique = unique_names(names)
    assert len(set(unique)) == len(names)
    for i, name in enumerate(names):
        assert unique[i].startswith(name)
        if name not in names[:i]:
            assert unique[i] == name
