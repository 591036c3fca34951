"""Search spaces, cells, recipes and images to look at: how these commands are spelt."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from prnas.cli.options import AsJson, Overrides, whole


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
    list_: Annotated[
        bool,
        Parameter(name="--list", negative="", help="List the operations by morphing distance."),
    ] = False,
    graph: Annotated[
        Path | None,
        Parameter(help="Draw the graph of the morphisms to this .svg, .png or .pdf file."),
    ] = None,
    steps: Annotated[
        int, Parameter(converter=whole, help="How many morphing steps to count, 0 to 12.")
    ] = 5,
    as_json: AsJson = False,
) -> None:
    """Show a search space: limits, operations, number of cells."""
    from prnas.commands import space as command

    command.run(setting, steps, list_, graph, as_json)


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
    genotype: Annotated[str, Parameter(help="A published cell's name, or a genotype file.")],
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
    root: Annotated[
        Path | None, Parameter(help="The folder with a set's files, and for downloads.")
    ] = None,
    sample: Annotated[
        Path | None, Parameter(help="Draw augmented samples of the images to this .png file.")
    ] = None,
    image_size: Annotated[
        int | None, Parameter(converter=whole, help="Make the images squares of this size.")
    ] = None,
    flip: Annotated[
        bool | None, Parameter(help="Whether samples are flipped. Default: all but digits.")
    ] = None,
    crop_padding: Annotated[
        int | None,
        Parameter(converter=whole, help="How far samples are moved. Default: 4; digits: 1."),
    ] = None,
    cutout: Annotated[
        int, Parameter(converter=whole, help="The side of the square cut out of samples; 0: none.")
    ] = 0,
    skip_broken: Annotated[
        bool, Parameter(negative="", help="Leave out images that cannot be read.")
    ] = False,
    seed: Annotated[int, Parameter(converter=whole, help="Of the samples.")] = 0,
    as_json: AsJson = False,
) -> None:
    """List the sets of images, or look into one."""
    from prnas.commands import data as command

    if name is None:
        command.run_list(root, sample, as_json)
        return
    settings = {
        "name": name,
        "root": None if root is None else str(root),
        "image_size": image_size,
        # As the recipes have it: a flipped digit is none, and eight pixels are few.
        "flip": name != "digits" if flip is None else flip,
        "crop_padding": (1 if name == "digits" else 4) if crop_padding is None else crop_padding,
        "cutout": cutout,
        "broken": "skip" if skip_broken else "refuse",
    }
    command.run_one(settings, sample, seed, as_json)


def config(
    recipe: Annotated[str, Parameter(help="A recipe's name, or a YAML file.")] = "darts-like",
    /,
    *,
    overrides: Overrides = None,
    as_json: AsJson = False,
    out: Annotated[
        Path | None, Parameter(name=["--out", "-o"], help="Write it to this YAML file instead.")
    ] = None,
) -> None:
    """Print a run's whole config: recipe, overrides and every default."""
    from prnas.commands import config as command

    command.run_config(recipe, overrides or [], as_json, out)
