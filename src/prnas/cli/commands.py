"""The commands and their arguments. Options are in `prnas.commands.options`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from prnas.commands.options import (
    AsJson,
    ConfigOptions,
    DataOptions,
    EvaluateOptions,
    ExportOptions,
    PredictOptions,
    ReportOptions,
    RetrainOptions,
    SearchOptions,
    SpaceOptions,
    WatchOptions,
)

TrainedModel = Annotated[
    Path, Parameter(help="A trained model: its folder, one of its files, or a training's folder.")
]
RunFolder = Annotated[Path, Parameter(help="A run's folder, or a folder of seed-0, seed-1, …")]


def space(
    setting: Annotated[
        str | None,
        Parameter(
            help="darts-like, depth-restricted, unrestricted, or a YAML file with limits and "
            "initial_pool of your own. Without it, all three are compared."
        ),
    ] = None,
    /,
    *,
    options: SpaceOptions | None = None,
) -> None:
    """Show a search space: limits, operations, number of cells."""
    from prnas.commands import space as command

    command.run(setting, options or SpaceOptions())


def zoo(
    name: Annotated[str | None, Parameter(help="A published cell; all of them without it.")] = None,
    /,
    *,
    as_json: AsJson = False,
) -> None:
    """List the published cells, or show one."""
    from prnas.commands import zoo as command

    command.run(name, as_json)


def draw(
    genotype: Annotated[
        str, Parameter(help="A published cell's name, a genotype file, or a run's folder.")
    ],
    /,
    *,
    out: Annotated[
        Path | None,
        Parameter(name=["--out", "-o"], help="A .svg, .png or .pdf file. Default: NAME.svg here."),
    ] = None,
) -> None:
    """Draw both cells of a genotype."""
    from prnas.commands import draw as command

    command.run(genotype, out)


def recipes(
    name: Annotated[
        str | None, Parameter(help="A recipe to print; all of them without it.")
    ] = None,
    /,
    *,
    as_json: AsJson = False,
) -> None:
    """List the recipes, or print one."""
    from prnas.commands import config as command

    command.run_recipes(name, as_json)


def data(
    name: Annotated[
        str | None,
        Parameter(
            help="digits, cifar10, cifar100, fashion-mnist, folder:PATH or npz:PATH. Without it, "
            "the sets are listed."
        ),
    ] = None,
    /,
    *,
    options: DataOptions | None = None,
) -> None:
    """List the sets of images, or show what is in one."""
    from prnas.commands import data as command

    command.run(name, options or DataOptions())


def config(
    recipe: Annotated[str, Parameter(help="A recipe's name, or a YAML file.")] = "darts-like",
    /,
    *,
    options: ConfigOptions | None = None,
) -> None:
    """Print a run's whole config: recipe, overrides and every default."""
    from prnas.commands import config as command

    command.run_config(recipe, options or ConfigOptions())


def search(
    recipe: Annotated[
        str | None, Parameter(help="A recipe's name, or a YAML file. Default: quick.")
    ] = None,
    /,
    *,
    options: SearchOptions | None = None,
) -> None:
    """Search for the cells of a network."""
    from prnas.commands import search as command

    command.run(recipe, options or SearchOptions())


def retrain(
    genotype: Annotated[
        str | None,
        Parameter(
            help="A published cell's name, a genotype file, or the folder of a search or training."
        ),
    ] = None,
    recipe: Annotated[
        str | None, Parameter(help="A recipe's name, or a YAML file. Default: retrain-quick.")
    ] = None,
    /,
    *,
    options: RetrainOptions | None = None,
) -> None:
    """Train the network of a genotype, and test it."""
    from prnas.commands import retrain as command

    command.run(genotype, recipe, options or RetrainOptions())


def evaluate(model: TrainedModel, /, *, options: EvaluateOptions | None = None) -> None:
    """Test a trained model: accuracy, loss, confusions, speed."""
    from prnas.commands import evaluate as command

    command.run(model, options or EvaluateOptions())


def predict(
    model: TrainedModel,
    /,
    *images: Annotated[str, Parameter(help="Image files, and folders of them.")],
    options: PredictOptions | None = None,
) -> None:
    """Classify image files with a trained model."""
    from prnas.commands import predict as command

    command.run(model, images, options or PredictOptions())


def export(model: TrainedModel, /, *, options: ExportOptions) -> None:
    """Export a trained model for other tools, which need no prnas; checked before it is written."""
    from prnas.commands import export as command

    command.run(model, options)


def report(*runs: RunFolder, options: ReportOptions | None = None) -> None:
    """Write a report of a run as one HTML file, or a comparison of several runs."""
    from prnas.commands import report as command

    command.run(runs, options or ReportOptions())


def watch(run: RunFolder, /, *, options: WatchOptions | None = None) -> None:
    """Serve the report of a run, or of all seeds, to a browser; updated while it goes on."""
    from prnas.commands import watch as command

    command.run(run, options or WatchOptions())


COMMANDS = (
    *(space, zoo, draw, recipes, data, config),
    *(search, retrain),
    *(evaluate, predict, export),
    *(report, watch),
)
