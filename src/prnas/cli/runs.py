"""Searches and trainings: how `prnas search` and `prnas retrain` are spelt."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from prnas.cli.options import NO_OPTIONS, DataRoot, Quiet, RunOptions, Seed, whole


def search(
    recipe: Annotated[
        str | None, Parameter(help="A recipe's name, or a YAML file. Default: quick.")
    ] = None,
    /,
    *,
    data: Annotated[
        str | None,
        Parameter(
            help="The images, instead of the recipe's: a set that `prnas data` lists, folder:PATH "
            "or npz:PATH."
        ),
    ] = None,
    data_root: DataRoot = None,
    seed: Seed = None,
    options: RunOptions = NO_OPTIONS,
    compile_: Annotated[
        bool,
        Parameter(name="--compile", negative="", help="Compile the stem with PyTorch."),
    ] = False,
    recompute: Annotated[
        bool, Parameter(negative="", help="Save memory for a little time; the result is the same.")
    ] = False,
    quiet: Quiet = False,
    picture: Annotated[
        Path | None, Parameter(help="Draw the cells to this .svg, .png or .pdf file at the end.")
    ] = None,
) -> None:
    """Search for the cells of a network."""
    from prnas.commands import search as command

    command.run(
        command.Wanted(
            recipe=recipe,
            data=data,
            data_root=data_root,
            seed=seed,
            overrides=options.overrides or [],
            runs=options.runs,
            name=options.name,
            resume=options.resume,
            compute={
                **options.compute,
                "compile": compile_ or None,
                "recompute": recompute or None,
            },
            quiet=quiet,
            picture=picture,
        )
    )


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
    data: Annotated[
        str | None,
        Parameter(
            help="The images, instead of the recipe's or the search's: a set that `prnas data` "
            "lists, folder:PATH or npz:PATH."
        ),
    ] = None,
    data_root: DataRoot = None,
    seed: Seed = None,
    seeds: Annotated[
        int | None,
        Parameter(converter=whole, help="Train this often, with --seed and the seeds after it."),
    ] = None,
    options: RunOptions = NO_OPTIONS,
    compile_: Annotated[
        bool,
        Parameter(name="--compile", negative="", help="Compile the cells with PyTorch."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Train the network of a genotype, and test it."""
    from prnas.commands import retrain as command

    command.run(
        command.Wanted(
            genotype=genotype,
            recipe=recipe,
            data=data,
            data_root=data_root,
            seed=seed,
            seeds=seeds,
            overrides=options.overrides or [],
            runs=options.runs,
            name=options.name,
            resume=options.resume,
            compute={**options.compute, "compile": compile_ or None},
            quiet=quiet,
        )
    )
