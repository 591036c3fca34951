"""Runs that nobody trained, as the pages take them."""

from typing import Any

from prnas.report.page import view_of
from prnas.report.view import RunInfo
from tests.support.synthetic_runs import SESSION, search_records, training_config, training_records
from tests.support.synthetic_search import quick


def search_view(name: str = "a run", *overrides: str, **options: Any) -> Any:
    config = quick(*overrides).to_data()
    view = view_of(RunInfo(name, f"runs/{name}", config, [SESSION]))
    for record in search_records(*overrides, **options):
        view.add(record)
    return view


def training_view(name: str, seed: int = 0, **options: Any) -> Any:
    view = view_of(RunInfo(name, f"runs/{name}", training_config(seed), [SESSION]))
    for record in training_records(seed, **options):
        view.add(record)
    return view
