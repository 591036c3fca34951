"""Training of a genotype's network: once, with several seeds, or resumed."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from prnas.config.overrides import typed_overrides
from prnas.config.retrain import RetrainConfig
from prnas.report.default_callbacks import with_default_callbacks
from prnas.retraining.retraining import Retraining
from prnas.runs.events import Callback, RetrainResult, SearchResult, check_callbacks
from prnas.runs.named import genotype_and_data, settle
from prnas.runs.session import resume_run, start_run
from prnas.runs.training_draft import training_draft
from prnas.space.genotype import Genotype

# A new training by a config, and one that goes on in its own folder; with options for both.
start = partial(start_run, Retraining)
resume = partial(resume_run, Retraining)


def retrain(
    genotype: Genotype | SearchResult | str | Path,
    config: RetrainConfig | str | Path | None = None,
    *,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    data: str | None = None,
    runs: Path | str | None = None,
    name: str | None = None,
    callbacks: Sequence[Callback] = (),
) -> RetrainResult:
    """Train the network of a genotype by a config, a recipe's name or a YAML file.

    The genotype may also be a published cell's name, a file, the folder of a run, or what
    `prnas.search` returned. `data` are the images, as those of `prnas retrain --data`. Without it
    and a config, cells of a search are trained on the images they were found on. `overrides`
    change values of the config, such as "training.epochs=5". Without `runs`, nothing is written;
    with it, the run gets a folder of its own in there. Nothing is printed: `callbacks` see what
    goes on.
    """
    check_callbacks(callbacks)
    searched: dict[str, Any] | None = None
    if isinstance(genotype, SearchResult):
        searched = genotype.config.data.model_dump() if genotype.config else None
        genotype = genotype.genotype
    elif not isinstance(genotype, Genotype):
        genotype, searched = genotype_and_data(str(genotype))
    changes = [*overrides, *typed_overrides({"seed": seed})]
    recipe, draft = training_draft(genotype, searched, config, data, changes)
    settled = settle(draft)
    return start(
        settled.config,
        runs=None if runs is None else Path(runs),
        name=name,
        recipe=recipe,
        callbacks=callbacks if runs is None else with_default_callbacks(callbacks),
        reasons=settled.reasons,
    )
