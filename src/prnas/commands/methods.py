"""`prnas methods`: the ways to search, what they cost, and where they come from."""

from typing import Any

from prnas.config.methods import METHODS, Method
from prnas.config.methods import method as method_of
from prnas.terminal.output import facts, show, show_heading, show_json, show_next, show_prose, table


def run(name: str | None, as_json: bool) -> None:
    if name is not None:
        _show(method_of(name), as_json)
        return
    if as_json:
        show_json([_data(method) for method in METHODS])
        return
    show_heading("Methods")
    rows = [[method.name, f"{method.cost:.2f}", method.line, method.authors] for method in METHODS]
    show(table(["name", "step", "what it does", "source"], rows, right=(1,)), "")
    show_prose(
        "step: what a step takes, relative to first-order DARTS with the same candidates and "
        "images, as measured on a CPU (1.00 also where it was not measured: methods that only have "
        "another schedule, or train no supernet). Any method goes with PR-DARTS's cycles: "
        "`prnas methods NAME` says what to set. A diagnostic beside most that train architecture "
        "weights is evidence.curvature (Zela et al. 2020), and evidence.curvature_stop ends a "
        "search by it. docs/methods.md has formulas, published results, and differences."
    )
    show_next("prnas methods snas", "prnas search snas")


def _show(method: Method, as_json: bool) -> None:
    if as_json:
        show_json(_data(method))
        return
    show_heading(method.name)
    sets = " ".join(f"--set '{override}'" for override in method.overrides())
    pairs = [
        ("what", method.line),
        ("source", method.source),
        ("step", f"{method.cost:.2f} of a step of first-order DARTS"),
    ]
    if method.recipe:
        pairs.append(("as published", f"prnas search {method.recipe}"))
    if sets:
        pairs.append(("in any search", f"prnas search quick {sets}"))
    show(facts(pairs))


def _data(method: Method) -> dict[str, Any]:
    return {
        "name": method.name,
        "line": method.line,
        "source": method.source,
        "cost": method.cost,
        "recipe": method.recipe,
        "settings": {section: dict(keys) for section, keys in method.settings.items()},
    }
