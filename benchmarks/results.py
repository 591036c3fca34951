"""Make the tables of docs/results.md, and our figures in docs/methods.md, from results/.

    python -m benchmarks.results            # writes them into both pages
    python -m benchmarks.results --check    # fails if they are not what the records say
    python -m benchmarks.results NAME       # prints one of them

results/tables.yaml lists the tables: the command or study that made the records, the versions, and
which columns of the records (results/NAME.csv) are shown in which way. In the documentation a table
stands between two comments, of which the first names it; our figures of a method are the line that
begins with **Ours.** in its section.
"""

import argparse
import csv
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from prnas.io.yaml_files import parse_yaml
from prnas.studies.statistics import summary

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
PAGE = ROOT / "docs" / "results.md"
METHODS_PAGE = ROOT / "docs" / "methods.md"
_BLOCK = re.compile(
    r"(?P<start><!-- table: (?P<name>[\w-]+) -->\n).*?(?P<end><!-- end of table -->)", re.S
)

_OURS = re.compile(r"^\*\*Ours\.\*\* .*$", re.M)
_SECTION = re.compile(r"^## (?P<name>[\w-]+)\n.*?(?=^## |\Z)", re.S | re.M)
# The records and the row of methods whose name is not a row of `methods-nasbench201`.
_SEARCHED = "methods-nasbench201"
_ROWS = {
    "pr-darts": (_SEARCHED, "cycles"),
    "random-shared": ("searchers-small", "random-shared"),
    "enas": ("searchers-small", "enas"),
    "random-search": ("searchers-nasbench201", "random search"),
    "evolution": ("searchers-nasbench201", "evolution"),
    "local-search": ("searchers-nasbench201", "local search"),
    "halving": ("halving-nasbench201", "halving"),
}
# Methods that no search was measured with, and why.
_NOT_SEARCHED = {
    "expected-cost": "What it finds was not measured: no study here has a row with it. Its figure "
    "would be a pair of size and accuracy for every `weight` and `reference`.",
}

Record = Mapping[str, str]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Column(_Strict):
    """A column of a table that shows a column of the records."""

    heading: str
    of: str
    digits: int | None = None  # After the point; null: as it stands in the records.
    scale: float = 1.0
    unit: str = ""

    def shown(self, text: str) -> str:
        if self.digits is None or not text:
            return text
        return self.number(float(text))

    def number(self, value: float) -> str:
        return f"{value * self.scale:,.{self.digits or 0}f}{self.unit}"


class ListTable(_Strict):
    """Every record is a line."""

    kind: Literal["list"]
    columns: tuple[Column, ...]
    means: bool = False  # Whether a line of means and deviations comes last.

    def lines(self, records: Sequence[Record]) -> list[list[str]]:
        rows = [[column.shown(record[column.of]) for column in self.columns] for record in records]
        if self.means:
            rows.append(["mean ± deviation", *(self._mean(c, records) for c in self.columns[1:])])
        return [[column.heading for column in self.columns], *rows]

    @staticmethod
    def _mean(column: Column, records: Sequence[Record]) -> str:
        if column.digits is None:
            return ""
        values = [float(record[column.of]) for record in records]
        bare = column.model_copy(update={"unit": ""})
        return f"{bare.number(fmean(values))} ± {column.number(stdev(values))}"


Show = Literal["n", "mean", "interval", "worst", "best", "median", "every"]


class GroupTable(_Strict):
    """Records with the same value of a column are a line: their number, mean and spread."""

    kind: Literal["groups"]
    heading: str
    by: str
    value: str
    what: str  # The heading of the means.
    accuracy: bool = False  # Errors are shown as accuracies.
    unit: str | None = None  # Records with the same value of it are one: their mean counts.
    names: Mapping[str, str]  # What to call each group, in this order.
    show: tuple[Show, ...] = ("n", "mean", "interval", "every")
    most: int = 20  # Of more values, `every` shows none.
    digits: int = 2
    also: tuple[Column, ...] = ()  # Means of further columns.
    facts: Mapping[str, Mapping[str, str]] = {}  # Further columns with what is known of groups.

    def lines(self, records: Sequence[Record]) -> list[list[str]]:
        facts = list(self.facts)
        also = [column.heading for column in self.also]
        lines = [[self.heading, *(self._heading(show) for show in self.show), *also, *facts]]
        for group, name in self.names.items():
            members = [record for record in records if record[self.by] == group]
            values = self._values(members)
            cells = [self._cell(show, values) for show in self.show]
            cells += [self._mean(column, members) for column in self.also]
            lines.append([name, *cells, *(self.facts[fact].get(group, "–") for fact in facts)])
        return lines

    def _mean(self, column: Column, members: Sequence[Record]) -> str:
        numbers = [float(record[column.of]) for record in members if record[column.of]]
        return column.number(fmean(numbers)) if numbers else "–"

    def _values(self, members: Sequence[Record]) -> list[float]:
        if self.unit is None:
            return [self._value(record) for record in members]
        units: dict[str, list[float]] = {}
        for record in members:
            units.setdefault(record[self.unit], []).append(self._value(record))
        return [fmean(values) for values in units.values()]

    def _value(self, record: Record) -> float:
        error = 100 * float(record[self.value])
        return 100 - error if self.accuracy else error

    def _heading(self, show: Show) -> str:
        headings = {"mean": f"{self.what}, mean ± deviation", "interval": "95 % interval"}
        return headings.get(show, "each" if show == "every" else show)

    def _cell(self, show: Show, values: Sequence[float]) -> str:
        figures = summary(values)
        worst, best = (min, max) if self.accuracy else (max, min)
        if show == "mean":
            spread = "" if figures.deviation is None else f" ± {self._number(figures.deviation)}"
            return self._number(figures.mean) + spread
        if show == "interval":
            return (
                "–" if figures.interval is None else "–".join(map(self._number, figures.interval))
            )
        if show == "every":
            return ", ".join(map(self._number, values)) if len(values) <= self.most else "–"
        number: dict[Show, Callable[[], str]] = {
            "n": lambda: str(figures.n),
            "worst": lambda: self._number(worst(values)),
            "best": lambda: self._number(best(values)),
            "median": lambda: self._number(median(values)),
        }
        return number[show]()

    def _number(self, value: float) -> str:
        return f"{value:.{self.digits}f}"


class PivotTable(_Strict):
    """A line for each value of one column, a column for each of another: the middle, and all."""

    kind: Literal["pivot"]
    heading: str
    rows: str
    columns: str
    value: str
    middle: Literal["mean", "median"] = "mean"
    digits: int = 2
    scale: float = 1.0
    interval: tuple[str, str] | None = None  # Columns that bound a single value.
    names: Mapping[str, str] = {}  # What to call a row or a column, if not as in the records.

    def lines(self, records: Sequence[Record]) -> list[list[str]]:
        columns = list(dict.fromkeys(record[self.columns] for record in records))
        lines = [[self.heading, *(self.names.get(column, column) for column in columns)]]
        for row in dict.fromkeys(record[self.rows] for record in records):
            cells = [self._cell(records, row, column) for column in columns]
            lines.append([self.names.get(row, row), *cells])
        return lines

    def _cell(self, records: Sequence[Record], row: str, column: str) -> str:
        here = [r for r in records if r[self.rows] == row and r[self.columns] == column]
        values = [self.scale * float(record[self.value]) for record in here]
        each = ", ".join(map(self._number, values))
        if self.interval is not None and len(here) == 1:
            bounds = (self._number(self.scale * float(here[0][column])) for column in self.interval)
            return f"{each} ({'–'.join(bounds)})"
        middle = median(values) if self.middle == "median" else fmean(values)
        return f"{self._number(middle)} ({each})" if len(values) > 1 else each

    def _number(self, value: float) -> str:
        return f"{value:.{self.digits}f}".replace("-", "−")


class Table(_Strict):
    """A table of docs/results.md, and how its records came about."""

    title: str
    command: str | None = None  # What made the records,
    study: str | None = None  # or the study, a name or a file.
    versions: Mapping[str, str]
    note: str = ""
    records: str | None = None  # The file of the records; null: that of the table's own name.
    table: Annotated[ListTable | GroupTable | PivotTable, Field(discriminator="kind")]

    def markdown(self, name: str) -> str:
        lines = self.table.lines(read_records(RESULTS / (self.records or f"{name}.csv")))
        rule = ["---"] * len(lines[0])
        return "".join(f"| {' | '.join(line)} |\n" for line in [lines[0], rule, *lines[1:]])


def read_records(file: Path) -> list[Record]:
    with file.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def read_tables() -> dict[str, Table]:
    text = (RESULTS / "tables.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, Table]).validate_python(parse_yaml(text))


def with_tables(page: str, tables: Mapping[str, Table]) -> str:
    """The page with every table made anew."""

    def made(block: re.Match[str]) -> str:
        name = block["name"]
        if name not in tables:
            sys.exit(f"docs/results.md has a table '{name}', which results/tables.yaml lacks")
        return f"{block['start']}\n{tables[name].markdown(name)}\n{block['end']}"

    named = {block["name"] for block in _BLOCK.finditer(page)}
    if missing := sorted(set(tables) - named):
        sys.exit(f"docs/results.md has no place for {', '.join(missing)}: <!-- table: NAME -->")
    return _BLOCK.sub(made, page)


def figures_of(method: str) -> list[str]:
    """Sentences on what a method found, and what its step takes; none if it was not measured."""
    sentences: list[str] = []
    table, row = _ROWS.get(method, (_SEARCHED, method))
    errors = [record for record in read_records(RESULTS / f"{table}.csv") if record["row"] == row]
    if errors:
        values = [100 - 100 * float(record["true_error"]) for record in errors]
        how = "by its table" if table == "searchers-nasbench201" else "scaled down"
        sentences.append(
            f"In the space of NAS-Bench-201, {how}, it finds cells of "
            f"{fmean(values):.2f} ± {stdev(values):.2f} % true accuracy (n = {len(values)}, worst "
            f"{min(values):.2f}; [results](results.md), table `{table}`)."
        )
    if method in _NOT_SEARCHED:
        sentences.append(_NOT_SEARCHED[method])
    steps = [r for r in read_records(RESULTS / "method-steps.csv") if r["method"] == method]
    if steps and method != "darts":
        time, memory = (
            median(float(record["ratio"]) for record in steps if record["measure"] == measure)
            for measure in ("time", "memory")
        )
        sentences.append(
            f"A step takes {time:.2f} of the time and {memory:.2f} of the memory of one of `darts` "
            f"(n = {len(steps) // 2})."
        )
    return sentences


def with_figures(page: str) -> str:
    """The page on methods with our figures made anew, in all sections that have a line for them."""

    def made(section: re.Match[str]) -> str:
        line = "**Ours.** " + " ".join(figures_of(section["name"]))
        return _OURS.sub(lambda _: line, section[0])

    return _SECTION.sub(made, page)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.results", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("name", nargs="?", help="print this table, and write nothing")
    parser.add_argument("--check", action="store_true", help="write nothing: 1 if tables differ")
    options = parser.parse_args()
    tables = read_tables()
    if options.name is not None:
        if options.name not in tables:
            parser.error(f"there is no table '{options.name}'; there are {', '.join(tables)}")
        print(tables[options.name].markdown(options.name), end="")
        return
    pages = {PAGE: lambda text: with_tables(text, tables), METHODS_PAGE: with_figures}
    for page, make in pages.items():
        old = page.read_text(encoding="utf-8")
        new, name = make(old), page.relative_to(ROOT)
        if options.check and new != old:
            sys.exit(f"{name} differs from its records")
        if not options.check:
            page.write_text(new, encoding="utf-8")
            print(f"{name}: {'unchanged' if new == old else 'written'}")


if __name__ == "__main__":
    main()
