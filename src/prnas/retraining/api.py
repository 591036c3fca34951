"""Training of a genotype's network: once, with several seeds, or resumed."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from prnas.config.overrides import as_list, typed_overrides
from prnas.config.retrain import RetrainConfig
from prnas.report.default_callbacks import with_default_callbacks
from prnas.retraining.retraining import Retraining
from prnas.retraining.start import network_keys
from prnas.runs.events import Callback, RetrainResult, SearchResult, check_callbacks
from prnas.runs.named import Trainable, settle, what_to_train
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
    start_from: Path | str | None = None,
    runs: Path | str | None = None,
    name: str | None = None,
    callbacks: Sequence[Callback] = (),
) -> RetrainResult:
    """Train the network of a genotype by a config, a recipe's name or a YAML file.

    The genotype may also be a published cell's name, a file, the folder of a run, what
    `prnas.search` returned, or the name of a plain network, such as resnet8. `data` are the images,
    as those of `prnas retrain --data`. Without it and a config, cells of a search are trained on
    the images they were found on. `overrides` change values of the config, such as
    "training.epochs=5". `start_from` is a trained model whose weights it starts with; the network
    is of that model's size then. Without `runs`, nothing is written; with it, the run gets a folder
    of its own in there. Nothing is printed: `callbacks` see what goes on.
    """
    check_callbacks(callbacks)
    changes = [*as_list(overrides), *typed_overrides({"seed": seed})]
    network = {} if start_from is None else network_keys(start_from)[1]
    recipe, draft = training_draft(_trainable(genotype), config, data, changes, network)
    settled = settle(draft)
    return start(
        settled.config,
        runs=None if runs is None else Path(runs),
        name=name,
        recipe=recipe,
        callbacks=callbacks if runs is None else with_default_callbacks(callbacks),
        reasons=settled.reasons,
    )


def _trainable(given: Genotype | SearchResult | str | Path) -> Trainable:
    """The network to train; for a search's result, with the images of the search."""
    if isinstance(given, SearchResult):
        images = given.config.data.model_dump() if given.config else None
        return Trainable(given.genotype, {"kind": "cells"}, images)
    if isinstance(given, Genotype):
        return Trainable(given, {"kind": "cells"})
    return what_to_train(str(given))
