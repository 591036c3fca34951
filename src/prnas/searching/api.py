"""A search from start to genotype, and on from where it stopped."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from prnas.config.search import SearchConfig
from prnas.report.default_callbacks import with_default_callbacks
from prnas.runs.events import Callback, SearchResult
from prnas.runs.named import draft_of, settle
from prnas.runs.session import resume_run, start_run
from prnas.searching.search import Search

# A new search by a config, and one that goes on in its own folder; with options for both.
start = partial(start_run, Search)
resume = partial(resume_run, Search)


def search(
    config: SearchConfig | str | Path,
    *,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    runs: Path | str | None = None,
    name: str | None = None,
    callbacks: Sequence[Callback] = (),
) -> SearchResult:
    """Search by a config, a recipe's name or a YAML file, and return the result.

    `overrides` change values of the config, such as "schedule.cycles.0.epochs=5". Without `runs`,
    nothing is written; with it, the run gets a folder of its own in there. Nothing is printed:
    `callbacks` see what goes on.
    """
    changes = [*overrides, *([] if seed is None else [f"seed={seed}"])]
    settled = settle(draft_of(config, changes, SearchConfig))
    return start(
        settled.config,
        runs=None if runs is None else Path(runs),
        name=name,
        recipe="search" if isinstance(config, SearchConfig) else Path(config).stem,
        callbacks=callbacks if runs is None else with_default_callbacks(callbacks),
        reasons=settled.reasons,
    )
