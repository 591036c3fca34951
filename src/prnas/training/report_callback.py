"""The callback that keeps a run's report up to date."""

from collections.abc import Callable, Sequence
from typing import Any

from prnas.reporting.page.plain import list_at
from prnas.reporting.page.report import FILE, write_page
from prnas.reporting.page.search_view import SearchView
from prnas.reporting.page.view import RunInfo
from prnas.reporting.records import BatchRecord, CycleRecord, EpochRecord, Record, read_records
from prnas.space.cell_pools import Pools
from prnas.space.problems import FormatError
from prnas.space.reading import parse_json
from prnas.training.callbacks import Callback, SearchResult, Start
from prnas.training.run import ENVIRONMENT, RECORDS


class ReportCallback(Callback):
    """Writes RUN/report.html at the start, after every epoch and cycle, and at the end.

    Nothing for a search without a folder. A report that cannot be written stops no search: `say`
    is told once. The records are kept as columns, so that an epoch's page is the same little work
    late in a search as early.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._start: Start | None = None
        self._view: SearchView | None = None
        self._told = False

    def on_start(self, start: Start) -> None:
        if start.folder is not None:
            self._start = start
            self._safely(self._open)

    def on_batch(self, record: BatchRecord) -> None:
        self._safely(lambda: self._add(record))

    def on_epoch(self, record: EpochRecord) -> None:
        self._safely(lambda: self._add(record, write=True))

    def on_cycle(self, record: CycleRecord, pools: Pools) -> None:
        self._safely(lambda: self._add(record, write=True))

    def on_end(self, result: SearchResult) -> None:
        def end() -> None:
            if self._view is not None:
                self._view.genotype = result.genotype
                self._write()

        self._safely(end)

    def _open(self) -> None:
        assert self._start is not None
        folder = self._start.folder
        assert folder is not None
        info = RunInfo(
            folder.resolve().name,
            str(folder),
            self._start.config.to_data(),
            _sessions((folder / ENVIRONMENT).read_text(encoding="utf-8")),
        )
        self._view = SearchView(info)
        if self._start.resumed:
            for record in read_records(folder / RECORDS):
                self._add(record)
        self._write()

    def _add(self, record: Record, write: bool = False) -> None:
        if self._view is not None:
            self._view.add(record)
            if write:
                self._write()

    def _write(self) -> None:
        if self._view is not None and self._start is not None and self._start.folder is not None:
            write_page(self._start.folder / FILE, [self._view])

    def _safely(self, act: Callable[[], None]) -> None:
        """A picture of the search is never worth the search."""
        try:
            act()
        except Exception as error:
            if not self._told:
                self._told = True
                self._say(f"cannot write the report ({error}); the search goes on without it")


def _sessions(text: str) -> Sequence[Any]:
    try:
        return list_at(parse_json(text), "sessions")
    except FormatError:
        return ()
