"""A fit in the terminal: what it sees, its plan, its stages, and what came out."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prnas.fitting.api import FitResult
from prnas.fitting.events import Listener
from prnas.fitting.folder import FitState
from prnas.fitting.names import CARD, EXPORTS, PAGE
from prnas.models.names import FOLDER
from prnas.runs.events import Callback
from prnas.terminal.amounts import duration, percent
from prnas.terminal.display import Display
from prnas.terminal.output import facts, show, show_heading, show_next, show_prose, table

TITLES = {
    "search": "search",
    "found": "training of what was found",
    "zoo": "training of the published cell",
    "plain": "training of the plain network",
    "given": "training of the model that was given",
    "end": "test, choice, exports",
}


class FitView(Listener):
    """Shows a fit on standard output; `silent` shows nothing."""

    def __init__(self, silent: bool = False) -> None:
        self._silent = silent
        self._displays: list[Display] = []
        self._looked: tuple[str, ...] = ()

    def on_look(self, sentences: Sequence[str]) -> None:
        self._looked = tuple(sentences)
        if not self._silent:
            show_heading("The images")
            for sentence in sentences:
                show_prose(sentence)
            show("")

    def on_measuring(self, what: str) -> None:
        if not self._silent:
            show(f"measuring {what}")

    def on_plan(self, state: FitState, folder: Path | None) -> None:
        if self._silent or folder is None:
            return
        show_plan(state)
        show("", f"folder: {folder}")

    def on_stage(self, name: str, number: int, of: int) -> None:
        self.close()
        if not self._silent:
            show("")
            show_heading(f"Stage {number} of {of}: {TITLES.get(name, name)}")

    def on_message(self, text: str) -> None:
        if not self._silent:
            show(f"note: {text}")

    def callbacks(self, stage: str) -> Sequence[Callback]:
        self._displays.append(Display(quiet=self._silent, title=TITLES.get(stage, stage)))
        return self._displays[-1:]

    def close(self) -> None:
        for display in self._displays:
            display.close()
        self._displays.clear()


def show_plan(state: FitState) -> None:
    """Show the plan: its reasons, and the time of each stage."""
    plan = state.plan
    rows = [["look and measure", duration(plan.spent)], ["search", duration(plan.search.seconds)]]
    for name, each in plan.trainings.items():
        rows.append([TITLES.get(name, name), duration(each.seconds)])
    rows += [
        [TITLES["end"], duration(plan.ending)],
        ["in all", f"{duration(plan.seconds)} of {duration(state.request.seconds)}"],
    ]
    show("")
    show_heading("The plan")
    show(facts(list(plan.reasons)))
    show("", table(["stage", "time"], rows, right=(1,)))


def show_end(result: FitResult) -> None:
    show("")
    show_heading("Result")
    show(table(*_rows(result), right=(1, 2, 3, 4, 5)))
    show("")
    for sentence in result.sentences:
        show_prose(sentence)
    folder = result.folder
    show("")
    made = {
        PAGE: "the report; open it in a browser",
        CARD: "the model card",
        FOLDER: "the best network",
        EXPORTS: "the same for other programs",
    }
    there = [(folder / name, what) for name, what in made.items() if (folder / name).exists()]
    show(facts([(str(path), what) for path, what in there]))
    show_next(f"prnas predict {shlex.quote(str(folder))} picture.jpg", logged=True)


def _rows(result: FitResult) -> tuple[list[str], list[list[str]]]:
    headings = ["network", "test", "95 % interval", "validation", "parameters", "ms/image"]
    rows: list[list[str]] = []
    for network in result.table:
        low, high = network["interval_95"]
        best = " *" if network["name"] == result.best else ""
        rows.append(
            [
                f"{network['label']}{best}",
                percent(network["accuracy"]),
                f"{percent(low)} to {percent(high)}",
                percent(network["validation"]),
                f"{network['parameters']:,}",
                _latency(network),
            ]
        )
    return headings, rows


def _latency(network: dict[str, Any]) -> str:
    return f"{network['latency']:.2g}{'' if network['within_limits'] else ' (over a limit)'}"
