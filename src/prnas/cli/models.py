"""Trained models in use: how `prnas evaluate`, `predict` and `export` are spelt."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from prnas.cli.options import Accelerator, AsJson, DataRoot, Threads, whole

# The same words as in `prnas.exporting.target`.
ExportFormat = Literal["safetensors", "onnx", "pt2", "python"]

Trained = Annotated[
    Path, Parameter(help="A trained model: its folder, one of its files, or a training's folder.")
]
UsedAccelerator = Annotated[
    Accelerator, Parameter(name=["--accelerator", "--device"], help="What to compute on.")
]


def evaluate(
    model: Trained,
    /,
    *,
    data: Annotated[
        str | None, Parameter(help="The data set. Default: what the model was trained on.")
    ] = None,
    data_root: DataRoot = None,
    part: Annotated[
        Literal["test", "train", "all"],
        Parameter(help="Of the data set; all of it if the model has never seen any of it."),
    ] = "test",
    overrides: Annotated[
        list[str] | None,
        Parameter(
            name="--set",
            negative="",
            help="Override how the images are read, e.g. --set data.broken=skip. May be repeated.",
        ),
    ] = None,
    batch: Annotated[
        int, Parameter(converter=whole, help="Images at a time; also of the second speed.")
    ] = 128,
    out: Annotated[
        Path | None,
        Parameter(
            name=["--out", "-o"], help="Write evaluation.json and confusion.svg into this folder."
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        Parameter(help="Draw the confusion matrix to this .svg, .png or .pdf file."),
    ] = None,
    skip_speed: Annotated[
        bool, Parameter(negative="", help="Do not measure latency and throughput.")
    ] = False,
    accelerator: UsedAccelerator = "auto",
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Test a trained model: accuracy, loss, confusions, speed."""
    from prnas.commands import evaluate as command

    command.run(
        command.Wanted(
            model=model,
            data=data,
            data_root=data_root,
            part=part,
            overrides=overrides or [],
            batch=batch,
            out=out,
            picture=picture,
            speed=not skip_speed,
            accelerator=accelerator,
            threads=threads,
            as_json=as_json,
        )
    )


def predict(
    model: Trained,
    /,
    *images: Annotated[Path, Parameter(help="Image files, and folders of them.")],
    top: Annotated[
        int, Parameter(converter=whole, help="How many classes to tell of each image.")
    ] = 3,
    batch: Annotated[int, Parameter(converter=whole, help="Images at a time.")] = 64,
    accelerator: UsedAccelerator = "auto",
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Ask a trained model what is in images: classes and probabilities."""
    from prnas.commands import predict as command

    command.run(model, list(images), top, batch, accelerator, threads, as_json)


def export(
    model: Annotated[Path, Parameter(help="A trained model: its folder, or that of its training.")],
    /,
    *,
    out: Annotated[
        Path,
        Parameter(
            name=["--out", "-o"],
            help="A .onnx, .pt2 (torch.export), .py (a file of its own) or .safetensors file, or a "
            "folder for safetensors.",
        ),
    ],
    format_: Annotated[
        ExportFormat | None,
        Parameter(name="--format", help="The format, where the name's ending does not tell."),
    ] = None,
    normalize: Annotated[
        bool,
        Parameter(
            negative="",
            help="Put the normalisation inside: .onnx and .pt2 then take pixels 0 to 1.",
        ),
    ] = False,
    force: Annotated[bool, Parameter(negative="", help="Write over existing files.")] = False,
    as_json: AsJson = False,
) -> None:
    """Export a trained model for other tools, which need no prnas; checked before it is written."""
    from prnas.commands import export as command

    command.run(model, out, format_, normalize, force, as_json)
