"""Training of a genotype's network: once, with several seeds, or resumed."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from prnas.config.retrain import RetrainConfig
from prnas.report.default_callbacks import with_default_callbacks
from prnas.retraining.retraining import Retraining
from prnas.retraining.start import network_keys
from prnas.runs.events import Callback, RetrainResult
from prnas.runs.named import Trainable, draft_of, settle, what_to_train
from prnas.runs.session import resume_run, start_run
from prnas.space.genotype import Genotype

# A new training by a config, and one that goes on in its own folder; with options for both.
start = partial(start_run, Retraining)
resume = partial(resume_run, Retraining)


def retrain(
    genotype: Genotype | str | Path,
    config: RetrainConfig | str | Path = "retrain-quick",
    *,
    overrides: Sequence[str] = (),
    seed: int | None = None,
    start_from: Path | str | None = None,
    runs: Path | str | None = None,
    name: str | None = None,
    callbacks: Sequence[Callback] = (),
) -> RetrainResult:
    """Train the network of a genotype by a config, a recipe's name or a YAML file.

    The genotype may also be a published cell's name, a file, the folder of a run, or the name of a
    plain network, such as resnet8. `overrides` change values of the config, such as
    "training.epochs=5". `start_from` is a trained model whose weights it starts with; the network
    is of that model's size then. Without `runs`, nothing is written; with it, the run gets a folder
    of its own in there. Nothing is printed: `callbacks` see what goes on.
    """
    changes = [*overrides, *([] if seed is None else [f"seed={seed}"])]
    trainable = (
        Trainable(genotype, {"kind": "cells"})
        if isinstance(genotype, Genotype)
        else what_to_train(str(genotype))
    )
    data = trainable.put_into(draft_of(config, (), RetrainConfig).to_data())
    if start_from is not None:
        data["network"] |= network_keys(start_from)[1]
    settled = settle(RetrainConfig.draft(data, changes))
    return start(
        settled.config,
        runs=None if runs is None else Path(runs),
        name=name,
        recipe="retrain" if isinstance(config, RetrainConfig) else Path(config).stem,
        callbacks=callbacks if runs is None else with_default_callbacks(callbacks),
        reasons=settled.reasons,
    )
