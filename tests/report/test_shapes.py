"""The report of a search for cells of another shape than DARTS'."""

from pathlib import Path

import pytest

from prnas.io.errors import FormatError
from prnas.report.comparison import differences
from prnas.report.page import page_data
from prnas.report.plots import plots_of
from prnas.report.tidy import candidate_rows
from prnas.runs.records import CycleRecord
from prnas.space.network_size import network_size
from tests.support.settings import GENOTYPE201
from tests.support.synthetic_runs import search_records, write_search
from tests.support.views import search_view

SHAPE = "network.shape=nasbench201"


def test_the_page_has_one_cell_of_six_edges() -> None:
    view = search_view("a run", SHAPE)
    data = view.data()
    cycles = data["cycles"]
    assert list(cycles["steps"]) == list(cycles["now"]) == ["normal"]
    assert cycles["positions"] == [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]
    assert list(data["genotype"]["pictures"]) == list(data["genotype"]["edges"]) == ["normal"]
    size = network_size(GENOTYPE201, 16, 15, 10)
    assert (data["network"]["parameters"], data["network"]["macs"]) == (size.parameters, size.macs)
    assert (data["network"]["channels"], data["network"]["cells"]) == (16, 15)
    plots = {plot.id: plot for plot in plots_of(view)}
    assert "operations-normal" in plots
    assert "operations-reduction" not in plots
    assert [line.label for line in plots["similarity"].lines] == ["normal cell"]


def test_genotypes_of_different_shapes_have_no_distance() -> None:
    views = [search_view("one", SHAPE), search_view("two", SHAPE), search_view("three")]
    table = page_data(views)["comparison"]["distances"]
    assert table[0][1] == table[1][0] == table[0][0] == table[2][2] == 0
    assert table[0][2] is table[2][0] is table[1][2] is None
    configs = [view.info.config for view in views]
    keys = [row[0] for row in differences(configs, training=False)]
    assert any("shape" in str(key) for key in keys)


def test_records_of_another_shape_than_the_config_says_are_refused() -> None:
    record = next(one for one in search_records(SHAPE) if isinstance(one, CycleRecord))
    with pytest.raises(FormatError, match="its cells must be normal and reduction, got normal"):
        search_view("a run", cycles=0).add(record)


def test_a_row_for_each_candidate(tmp_path: Path) -> None:
    folder = write_search(tmp_path / "run", SHAPE)
    rows = list(candidate_rows(folder, "run"))
    assert {row["cell"] for row in rows} == {"normal"}
    assert {row["edge"] for row in rows} == set(range(1, 7))
