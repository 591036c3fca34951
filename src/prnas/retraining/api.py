"""From a genotype to a trained model, once or with several seeds, and on from where it stopped."""

from collections.abc import Sequence
from pathlib import Path

from prnas.config import recipes
from prnas.config.retrain import RetrainConfig
from prnas.io.errors import FormatError, UserError
from prnas.report.default_callbacks import with_default_callbacks
from prnas.retraining.retraining import Retraining
from prnas.runs.batch_size import MemoryProbe
from prnas.runs.events import Callback, RetrainResult
from prnas.runs.folder import GENOTYPE
from prnas.runs.integrity import check_genotype
from prnas.runs.processes import Processes
from prnas.runs.session import NewFolder, Stopped, resume_run, start_run
from prnas.space import zoo
from prnas.space.genotype import Genotype

__all__ = ["Stopped", "resume", "retrain", "start"]


def retrain(
    genotype: Genotype | str | Path,
    config: RetrainConfig | str = "retrain-quick",
    *,
    runs: Path | str | None = None,
    name: str | None = None,
    callbacks: Sequence[Callback] = (),
) -> RetrainResult:
    """Train the network of a genotype by a config or a recipe's name.

    The genotype may also be a published cell's name, a file, or the folder of a search. Without
    `runs`, nothing is written; with it, the run gets a folder of its own in there. Nothing is
    printed: `callbacks` see what goes on.
    """
    recipe = config if isinstance(config, str) else "retrain"
    found = recipes.get_retrain(config) if isinstance(config, str) else config
    cells = genotype if isinstance(genotype, Genotype) else _genotype_of(genotype)
    return start(
        found.model_copy(update={"genotype": cells}),
        runs=None if runs is None else Path(runs),
        name=name,
        recipe=recipe,
        callbacks=callbacks if runs is None else with_default_callbacks(callbacks),
    )


def _genotype_of(given: str | Path) -> Genotype:
    if isinstance(given, str) and (given in zoo.names() or not Path(given).exists()):
        return zoo.get(given)  # which says what there is, if it is none of them
    path = Path(given)
    file = path / GENOTYPE if path.is_dir() else path
    try:
        found = Genotype.loads(file.read_text(encoding="utf-8"))
    except (FormatError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: {error}") from None
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    if path.is_dir():
        check_genotype(path, file, found)
    return found


def start(
    config: RetrainConfig,
    *,
    runs: Path | None = Path("runs"),
    name: str | None = None,
    recipe: str = "retrain",
    callbacks: Sequence[Callback] = (),
    command: Sequence[str] | None = None,
    probe: MemoryProbe | None = None,
    processes: Processes | None = None,
) -> RetrainResult:
    """A new training. What cannot work is found before anything is written.

    `processes`: those of an earlier run in the same program, which cannot be launched twice.
    """
    new = NewFolder(runs, name, recipe, command)
    return start_run(Retraining, config, new, callbacks, probe, processes)


def resume(
    folder: Path,
    *,
    overrides: Sequence[str] = (),
    callbacks: Sequence[Callback] = (),
    command: Sequence[str] | None = None,
    probe: MemoryProbe | None = None,
    processes: Processes | None = None,
) -> RetrainResult:
    """Go on with a training in its own folder, bit for bit as if it had never stopped.

    `overrides` may change how it is computed (`compute`, `checkpoints`), not what is trained.
    """
    return resume_run(Retraining, folder, overrides, callbacks, command, probe, processes)
