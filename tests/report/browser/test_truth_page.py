"""What NAS-Bench-201 says of a search's cell, in a real browser."""

from pathlib import Path
from typing import Any

from prnas.config.search import SearchConfig
from prnas.report.page import view_of, write_page
from prnas.report.view import RunInfo
from prnas.runs.named import config_of
from prnas.runs.records import GenotypeRecord
from prnas.space.nasbench201.cells import genotype_of
from tests.support.synthetic_runs import SESSION
from tests.support.views import search_view

CELL = (
    9911  # |nor_conv_3x3~0|+|none~0|avg_pool_3x3~1|+|skip_connect~0|nor_conv_1x1~1|skip_connect~2|
)


def test_the_truth_is_shown(visit: Any, tmp_path: Path) -> None:
    config = config_of("nasbench201-small", (), SearchConfig).to_data()
    view = view_of(RunInfo("a run", "runs/a run", config, [SESSION]))
    view.add(GenotypeRecord(genotype=genotype_of(CELL).to_json()))
    write_page(tmp_path / "report.html", [view])
    seen = visit(tmp_path / "report.html")
    rows = [row.inner_text().split("\t") for row in seen.page.locator("#truth tbody tr").all()]
    assert [row[0] for row in rows] == ["CIFAR-10", "CIFAR-100", "ImageNet16-120"]
    assert rows[0][1:6] == ["93.16 %", "1,051", "1.21", "89.88 %", "87.44 %"]
    assert seen.count("#truth thead th") == len(rows[0])


def test_other_searches_have_no_such_section(visit: Any, tmp_path: Path) -> None:
    write_page(tmp_path / "report.html", [search_view()])
    assert visit(tmp_path / "report.html").count("#truth") == 0
