"""A search from start to genotype, and on from where it stopped."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prnas.config.overrides import as_list, typed_overrides
from prnas.config.search import SearchConfig
from prnas.data.dataset import DataSet
from prnas.report.default_callbacks import with_default_callbacks
from prnas.runs.batch_size import MemoryProbe
from prnas.runs.events import Callback, SearchResult, check_callbacks
from prnas.runs.folder import read_config
from prnas.runs.named import default_search, draft_of, settle
from prnas.runs.processes import Processes
from prnas.runs.session import resume_run, start_run
from prnas.searching import cell_search
from prnas.searching.search import Search
from prnas.searching.training_pool import MakeTrainers


def start(
    config: SearchConfig,
    *,
    runs: Path | None = Path("runs"),
    name: str | None = None,
    recipe: str | None = None,
    callbacks: Sequence[Callback] = (),
    probe: MemoryProbe | None = None,
    processes: Processes | None = None,
    reasons: tuple[tuple[str, str], ...] = (),
    loaded: DataSet | None = None,
    make_trainers: MakeTrainers | None = None,
) -> SearchResult:
    """A new search by a config; options as those of `start_run` and `cell_search.start`."""
    folder: dict[str, Any] = {"runs": runs, "name": name, "recipe": recipe}
    if config.searcher.without_supernet or make_trainers is not None:
        folder["make_trainers"] = make_trainers
        return cell_search.start(config, callbacks=callbacks, reasons=reasons, **folder)
    return start_run(
        Search,
        config,
        callbacks=callbacks,
        probe=probe,
        processes=processes,
        reasons=reasons,
        loaded=loaded,
        **folder,
    )


def resume(
    folder: Path,
    *,
    overrides: Sequence[str] = (),
    callbacks: Sequence[Callback] = (),
    probe: MemoryProbe | None = None,
    processes: Processes | None = None,
    loaded: DataSet | None = None,
    make_trainers: MakeTrainers | None = None,
) -> SearchResult:
    """One that goes on in its own folder; options as those of `resume_run`."""
    without_supernet = read_config(folder, SearchConfig, overrides).searcher.without_supernet
    if without_supernet or make_trainers is not None:
        return cell_search.resume(
            folder, overrides=overrides, callbacks=callbacks, make_trainers=make_trainers
        )
    return resume_run(
        Search,
        folder,
        overrides=overrides,
        callbacks=callbacks,
        probe=probe,
        processes=processes,
        loaded=loaded,
    )


def search(
    config: SearchConfig | str | Path | None = None,
    *,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    data: str | None = None,
    runs: Path | str | None = None,
    name: str | None = None,
    callbacks: Sequence[Callback] = (),
) -> SearchResult:
    """Search by a config, a recipe's name or a YAML file, and return the result.

    Without any it is the recipe `quick`, or `pictures` for other images than digits. `data` are
    the images, as those of `prnas search --data`: a set's name, folder:PATH or npz:PATH.
    `overrides` change values of the config, such as "schedule.cycles.0.epochs=5". Without `runs`,
    nothing is written; with it, the run gets a folder of its own in there. Nothing is printed:
    `callbacks` see what goes on.
    """
    check_callbacks(callbacks)
    config = default_search(data) if config is None else config
    changes = [*as_list(overrides), *typed_overrides({"data.name": data, "seed": seed})]
    settled = settle(draft_of(config, changes, SearchConfig))
    return start(
        settled.config,
        runs=None if runs is None else Path(runs),
        name=name,
        recipe="search" if isinstance(config, SearchConfig) else Path(config).stem,
        callbacks=callbacks if runs is None else with_default_callbacks(callbacks),
        reasons=settled.reasons,
    )
