"""The commands and their arguments. Their options are in `prnas.commands.options`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from prnas.cli import completers
from prnas.commands import options
from prnas.commands.options import AsJson, Output
from prnas.config.choices import Shell

TrainedModel = Annotated[
    Path, Parameter(help="A trained model: its folder, one of its files, or a training's folder.")
]
RunFolder = Annotated[Path, Parameter(help="A run's folder, or a folder of seed-0, seed-1, …")]
SETTING = Parameter(
    completer=completers.settings,
    help="darts-like, depth-restricted, unrestricted, nasbench201, nasbench201-growing, or a YAML "
    "file with limits and initial_pool of your own. Without it, all of them are compared.",
)
CELL = Parameter(
    completer=completers.cells,
    help="'|op~0|+|op~0|op~1|+|op~0|op~1|op~2|', a genotype file, or the folder of a search.",
)
DATA = Parameter(
    completer=completers.images,
    help="digits, cifar10, cifar100, fashion-mnist, folder:PATH or npz:PATH. Without it, the sets "
    "are listed.",
)
RETRAINED = Parameter(
    completer=completers.cells,
    help="A run's folder, a published cell's name, a genotype file, or a plain network to compare "
    "with: resnet8, resnet14, … Default with --from: the network of that model.",
)
STUDY = Parameter(
    completer=completers.studies,
    help="A study that comes with prnas, a YAML file, or the folder of a study.",
)
SHELL = Parameter(help="Default: the shell that is running.")
Genotype = Annotated[str, Parameter(completer=completers.cells)]
Published = Annotated[str, Parameter(completer=completers.published_cells)]
Method = Annotated[str, Parameter(completer=completers.methods)]
AnyRecipe = Annotated[str, Parameter(completer=completers.all_recipes)]
SearchRecipe = Annotated[str, Parameter(completer=completers.search_recipes)]
RetrainRecipe = Annotated[str, Parameter(completer=completers.retrain_recipes)]
Pictures = Annotated[str, Parameter(completer=completers.pictures)]


def space(
    setting: Annotated[str | None, SETTING] = None, /, *, given: options.SpaceOptions | None = None
) -> None:
    """Show a search space: limits, operations, number of cells."""
    from prnas.commands.space import run

    run(setting, given or options.SpaceOptions())


def zoo(name: Published | None = None, /, *, as_json: AsJson = False) -> None:
    """List the published cells, or show one.

    :param name: A published cell; all of them without it.
    """
    from prnas.commands.zoo import run

    run(name, as_json)


def truth(*cells: Annotated[str, CELL], as_json: AsJson = False) -> None:
    """Look up cells, also those that a search found, in the table of NAS-Bench-201."""
    from prnas.commands.truth import run

    run(cells, as_json)


def draw(genotype: Genotype, /, *, out: Output = None) -> None:
    """Draw the cells of a genotype.

    :param genotype: A published cell's name, a genotype file, or a run's folder.
    :param out: A .svg, .png or .pdf file. Default: NAME.svg here.
    """
    from prnas.commands.draw import run

    run(genotype, out)


def recipes(name: AnyRecipe | None = None, /, *, as_json: AsJson = False) -> None:
    """List the recipes, or print one.

    :param name: A recipe to print; all of them without it.
    """
    from prnas.commands.config import run_recipes

    run_recipes(name, as_json)


def methods(name: Method | None = None, /, *, as_json: AsJson = False) -> None:
    """List the search methods, what a step of each costs, and its paper; or show one.

    :param name: A method; all of them without it.
    """
    from prnas.commands.methods import run

    run(name, as_json)


def data(
    name: Annotated[str | None, DATA] = None, /, *, given: options.DataOptions | None = None
) -> None:
    """List the data sets, or show what is in one."""
    from prnas.commands.data import run

    run(name, given or options.DataOptions())


def config(
    recipe: AnyRecipe | None = None, /, *, given: options.ConfigOptions | None = None
) -> None:
    """Print a run's whole config: recipe, overrides and every default.

    :param recipe: A recipe's name, or a YAML file. Default: quick; with other images, pictures.
    """
    from prnas.commands.config import run_config

    run_config(recipe, given or options.ConfigOptions())


def search(
    recipe: SearchRecipe | None = None, /, *, given: options.SearchOptions | None = None
) -> None:
    """Search for the cells of a network.

    :param recipe: A recipe's name, or a YAML file. Default: quick; with other images, pictures.
    """
    from prnas.commands.search import run

    run(recipe, given or options.SearchOptions())


def latency(
    recipe: SearchRecipe = "darts-like", /, *, given: options.LatencyOptions | None = None
) -> None:
    """Measure how long operations take in a search's final network, on this device.

    :param recipe: The recipe, or YAML file, of the search.
    """
    from prnas.commands.latency import run

    run(recipe, given or options.LatencyOptions())


def retrain(
    genotype: Annotated[str | None, RETRAINED] = None,
    recipe: RetrainRecipe | None = None,
    /,
    *,
    given: options.RetrainOptions | None = None,
) -> None:
    """Train the network of a genotype, and test it.

    :param recipe: A recipe, or a YAML file. Default: retrain-quick; for own images, and cells in
        the shape of NAS-Bench-201, retrain-pictures.
    """
    from prnas.commands.retrain import run

    run(genotype, recipe, given or options.RetrainOptions())


def study(study: Annotated[str, STUDY], /, *, given: options.StudyOptions | None = None) -> None:
    """Compare recipes by many searches and trainings. Run it again to continue."""
    from prnas.commands import study as command

    command.run(study, given or options.StudyOptions())


def fit(pictures: Pictures | None = None, /, *, given: options.FitOptions | None = None) -> None:
    """From pictures to a tested model in one go: search, train, compare, test, export.

    :param pictures: A folder with a folder for each class, an npz file, or a data set: digits.
    """
    from prnas.commands.fit import run

    run(pictures, given or options.FitOptions())


def evaluate(model: TrainedModel, /, *, given: options.EvaluateOptions | None = None) -> None:
    """Test a trained model: accuracy, loss, confusion matrix, speed."""
    from prnas.commands.evaluate import run

    run(model, given or options.EvaluateOptions())


def predict(
    model: TrainedModel, /, *images: str, given: options.PredictOptions | None = None
) -> None:
    """Classify image files with a trained model.

    :param images: Image files, and folders of them.
    """
    from prnas.commands.predict import run

    run(model, images, given or options.PredictOptions())


def export(model: TrainedModel, /, *, given: options.ExportOptions) -> None:
    """Export a trained model to ONNX, torch.export or Python; it then runs without prnas."""
    from prnas.commands.export import run

    run(model, given)


def report(*runs: RunFolder, given: options.ReportOptions | None = None) -> None:
    """Write a report of a run or a study as one HTML file, or a comparison of several runs."""
    from prnas.commands.report import run

    run(runs, given or options.ReportOptions())


def records(*runs: RunFolder, given: options.RecordsOptions | None = None) -> None:
    """Print what runs recorded, as CSV, JSON lines or LaTeX, for pandas, R and papers."""
    from prnas.commands.records import run

    run(runs, given or options.RecordsOptions())


def watch(run: RunFolder, /, *, given: options.WatchOptions | None = None) -> None:
    """Serve the live report of a run, of several seeds or of a study to a browser."""
    from prnas.commands.watch import run as serve

    serve(run, given or options.WatchOptions())


def doctor(*, given: options.DoctorOptions | None = None) -> None:
    """Show versions, devices, memory, folders and extras: what works here, and what does not."""
    from prnas.commands.doctor import run

    run(given or options.DoctorOptions())


def completion(
    shell: Annotated[Shell | None, SHELL] = None,
    /,
    *,
    given: options.CompletionOptions | None = None,
) -> None:
    """Set up Tab completion of commands, options, recipes and cells in your shell."""
    from prnas.cli import app
    from prnas.commands.completion import run

    run(app, shell, given or options.CompletionOptions())


COMMANDS = (
    *(space, zoo, truth, draw, methods, recipes, data, config),
    *(fit, search, latency, retrain, study),
    *(evaluate, predict, export),
    *(report, watch, records),
    *(doctor, completion),
)
