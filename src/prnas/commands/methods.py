"""`prnas methods`: the ways to search, what they cost, and where they come from."""

from typing import Any

from prnas.config.methods import METHODS, Method, method
from prnas.terminal.output import facts, show, show_heading, show_json, show_next, show_prose, table


def run(name: str | None, as_json: bool) -> None:
    if name is not None:
        _show(method(name), as_json)
        return
    if as_json:
        show_json([_data(one) for one in METHODS])
        return
    show_heading("Methods")
    rows = [[one.name, f"{one.cost:.2f}", one.line, one.authors] for one in METHODS]
    show(table(["name", "step", "what it does", "source"], rows, right=(1,)), "")
    show_prose(
        "step: what a step takes, relative to first-order DARTS with the same candidates and "
        "images, estimated by the passes that it takes. Any method goes with PR-DARTS's cycles: "
        "`prnas methods NAME` says what to set. docs/methods.md has formulas, published results, "
        "and differences."
    )
    show_next("prnas methods snas", "prnas search snas")


def _show(one: Method, as_json: bool) -> None:
    if as_json:
        show_json(_data(one))
        return
    show_heading(one.name)
    sets = " ".join(f"--set '{override}'" for override in one.overrides())
    pairs = [
        ("what", one.line),
        ("source", one.source),
        ("step", f"{one.cost:.2f} of a step of first-order DARTS, as estimated"),
    ]
    if one.recipe:
        pairs.append(("as published", f"prnas search {one.recipe}"))
    if sets:
        pairs.append(("in any search", f"prnas search quick {sets}"))
    show(facts(pairs))


def _data(one: Method) -> dict[str, Any]:
    return {
        "name": one.name,
        "line": one.line,
        "source": one.source,
        "cost": one.cost,
        "recipe": one.recipe,
        "settings": {section: dict(keys) for section, keys in one.settings.items()},
    }
