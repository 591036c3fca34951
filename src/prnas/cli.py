"""The command line: how commands and options are spelt. What they do is in `prnas.commands`.

Nothing heavy is imported here, so that `prnas --help` answers at once.
"""

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, NoReturn

from cyclopts import App, CycloptsError, Parameter, Token

import prnas

USER_ERROR = 2
INTERRUPTED = 130
MOST_SAID = 10_000  # characters of a message

AsJson = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON, for scripts.")]
Overrides = Annotated[
    list[str] | None,
    Parameter(
        name="--set",
        negative="",
        help="Override one value of the config, e.g. --set seed=5. May be repeated.",
    ),
]


def _mistyped(error: CycloptsError) -> object:
    """A command line that cannot be understood: told like every other mistake."""
    from rich.text import Text

    from prnas.commands.output import visible

    return Text(f"prnas: {visible(_short(str(error)))}", no_wrap=True, overflow="ignore")


def _short(text: str) -> str:
    return text if len(text) <= MOST_SAID else f"{text[:MOST_SAID]}…"


app = App(
    name="prnas",
    help="Prune-and-Replace Neural Architecture Search: find the cell of a convolutional network "
    "that classifies your images best.",
    version=lambda: prnas.__version__,
    help_format="plaintext",
    result_action="return_value",
    error_formatter=_mistyped,
)


def _whole(_: object, tokens: Sequence[Token]) -> int:
    """Whole numbers only: the library itself would round 1.5."""
    text = tokens[0].value
    if not text.removeprefix("-").isdecimal() or len(text) > 9:
        raise ValueError(f"a whole number is needed, got {text!r:.60}")
    return int(text)


@app.command
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
        int, Parameter(converter=_whole, help="How many morphing steps to count, 0 to 12.")
    ] = 5,
    as_json: AsJson = False,
) -> None:
    """Show a search space: limits, operations, number of cells."""
    from prnas.commands import space as command

    command.run(setting, steps, list_, graph, as_json)


@app.command
def zoo(
    name: Annotated[str | None, Parameter(help="A published cell; all of them without it.")] = None,
    /,
    *,
    as_json: AsJson = False,
) -> None:
    """List the published cells, or show one."""
    from prnas.commands import zoo as command

    command.run(name, as_json)


@app.command
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


@app.command
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


@app.command
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
        int | None, Parameter(converter=_whole, help="Make the images squares of this size.")
    ] = None,
    flip: Annotated[
        bool | None, Parameter(help="Whether samples are flipped. Default: all but digits.")
    ] = None,
    crop_padding: Annotated[
        int | None,
        Parameter(converter=_whole, help="How far samples are moved. Default: 4; digits: 1."),
    ] = None,
    cutout: Annotated[
        int, Parameter(converter=_whole, help="The side of the square cut out of samples; 0: none.")
    ] = 0,
    skip_broken: Annotated[
        bool, Parameter(negative="", help="Leave out images that cannot be read.")
    ] = False,
    seed: Annotated[int, Parameter(converter=_whole, help="Of the samples.")] = 0,
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


@app.command
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


# The same words as in `prnas.config`, which takes too long to import for `--help`.
Accelerator = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["32-true", "64-true", "bf16-mixed"]


DataName = Annotated[
    str | None,
    Parameter(
        help="The images, instead of the recipe's: a set that `prnas data` lists, folder:PATH or "
        "npz:PATH."
    ),
]
DataRoot = Annotated[str | None, Parameter(help="The folder of downloaded data sets.")]
Seed = Annotated[int | None, Parameter(converter=_whole, help="The seed of all randomness.")]
Runs = Annotated[Path | None, Parameter(help="Where the run gets its folder. Default: runs.")]
RunName = Annotated[
    str | None, Parameter(help="The folder's name. Default: recipe, time and seed.")
]
Resume = Annotated[
    Path | None, Parameter(help="Go on with the run in this folder, where it stopped.")
]
AcceleratorOption = Annotated[Accelerator | None, Parameter(help="What to compute on.")]
Devices = Annotated[
    int | None, Parameter(converter=_whole, help="How many devices, a process each.")
]
PrecisionOption = Annotated[
    Precision | None, Parameter(help="Of the numbers: single, double, or mixed with bfloat16.")
]
Threads = Annotated[int | None, Parameter(converter=_whole, help="CPU threads of each process.")]
MemoryLimit = Annotated[float | None, Parameter(help="GB that each process may use.")]
Quiet = Annotated[bool, Parameter(negative="", help="Print only the end.")]


@app.command
def search(
    recipe: Annotated[
        str | None, Parameter(help="A recipe's name, or a YAML file. Default: quick.")
    ] = None,
    /,
    *,
    data: DataName = None,
    data_root: DataRoot = None,
    seed: Seed = None,
    overrides: Overrides = None,
    runs: Runs = None,
    name: RunName = None,
    resume: Resume = None,
    accelerator: AcceleratorOption = None,
    devices: Devices = None,
    precision: PrecisionOption = None,
    threads: Threads = None,
    memory_limit: MemoryLimit = None,
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
            overrides=overrides or [],
            runs=runs,
            name=name,
            resume=resume,
            compute={
                "accelerator": accelerator,
                "devices": devices,
                "precision": precision,
                "threads": threads,
                "memory_limit": memory_limit,
                "compile": compile_ or None,
                "recompute": recompute or None,
            },
            quiet=quiet,
            picture=picture,
        )
    )


@app.command
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
        Parameter(converter=_whole, help="Train this often, with --seed and the seeds after it."),
    ] = None,
    overrides: Overrides = None,
    runs: Runs = None,
    name: RunName = None,
    resume: Resume = None,
    accelerator: AcceleratorOption = None,
    devices: Devices = None,
    precision: PrecisionOption = None,
    threads: Threads = None,
    memory_limit: MemoryLimit = None,
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
            overrides=overrides or [],
            runs=runs,
            name=name,
            resume=resume,
            compute={
                "accelerator": accelerator,
                "devices": devices,
                "precision": precision,
                "threads": threads,
                "memory_limit": memory_limit,
                "compile": compile_ or None,
            },
            quiet=quiet,
        )
    )


Trained = Annotated[
    Path, Parameter(help="A trained model: its folder, one of its files, or a training's folder.")
]
UsedAccelerator = Annotated[
    Accelerator, Parameter(name=["--accelerator", "--device"], help="What to compute on.")
]


@app.command
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
        int, Parameter(converter=_whole, help="Images at a time; also of the second speed.")
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


@app.command
def predict(
    model: Trained,
    /,
    *images: Annotated[Path, Parameter(help="Image files, and folders of them.")],
    top: Annotated[
        int, Parameter(converter=_whole, help="How many classes to tell of each image.")
    ] = 3,
    batch: Annotated[int, Parameter(converter=_whole, help="Images at a time.")] = 64,
    accelerator: UsedAccelerator = "auto",
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Ask a trained model what is in images: classes and probabilities."""
    from prnas.commands import predict as command

    command.run(model, list(images), top, batch, accelerator, threads, as_json)


# The same words as in `prnas.handover.target`.
ExportFormat = Literal["safetensors", "onnx", "pt2", "python"]


@app.command
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


@app.command
def report(
    *runs: Annotated[
        Path, Parameter(help="A run's folder, or a folder of seed-0, seed-1, …; several: compared.")
    ],
    out: Annotated[
        Path | None,
        Parameter(
            name=["--out", "-o"],
            help="The .html file. Default: RUN/report.html, or comparison.html here.",
        ),
    ] = None,
    figures: Annotated[
        Path | None, Parameter(help="Also draw figures for a paper (SVG and PDF) to this folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a page of a run, or compare runs: one file that opens in any browser."""
    from prnas.commands import report as command

    command.run(list(runs), out, figures, as_json)


@app.command
def watch(
    run: Annotated[Path, Parameter(help="A run's folder, or a folder of seed-0, seed-1, …")],
    /,
    *,
    port: Annotated[
        int | None,
        Parameter(converter=_whole, help="Where to listen; 0: any free port. Default: 8777."),
    ] = None,
    host: Annotated[
        str, Parameter(help="The address to listen on. Other machines can reach it only if told.")
    ] = "127.0.0.1",
) -> None:
    """Serve the report of a run, or of all seeds, to a browser; updated while it goes on."""
    from prnas.commands import watch as command

    command.run(run, port, host)


def main(arguments: Sequence[str] | None = None) -> None:
    """The console command. A user's mistake ends in one message and exit code 2."""
    from prnas.errors import UserError
    from prnas.space.problems import FormatError
    from prnas.training.shown import bars

    _mend_streams()
    bars.set(True)
    try:
        app(arguments)
        sys.stdout.flush()
    except (UserError, FormatError) as error:
        _complain(str(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader (head, say) has left; nothing is wrong, and there is nowhere to say so.
        _discard_output()
    except OSError as error:
        if error.filename is not None:  # what was typed, such as a name that is too long
            _complain(f"cannot use {error.filename!s:.200}: {error.strerror}")
        _discard_output()
        _complain(f"cannot write the output: {error.strerror}")


def _mend_streams() -> None:
    """Closed streams become silent ones; characters that a terminal lacks become question marks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for the whole process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _complain(message: str) -> NoReturn:
    from prnas.commands.output import visible

    print(f"prnas: {visible(_short(message))}", file=sys.stderr)
    sys.exit(USER_ERROR)


def _discard_output() -> None:
    """What is still buffered has nowhere to go; without this, Python would try at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
