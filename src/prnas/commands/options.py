"""The options of each command: the command line fills a dataclass, and the command takes it.

Light: `prnas --help` imports this file. Arguments without a name are in `prnas.cli.commands`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, Token

from prnas.config.choices import Accelerator, DataPart, ExportFormat, Precision


def whole(_: object, tokens: Sequence[Token]) -> int:
    """A whole number; the library itself would round 1.5."""
    text = tokens[0].value
    if not text.removeprefix("-").isdecimal() or len(text) > 9:
        raise ValueError(f"a whole number is needed, got {text!r:.60}")
    return int(text)


AsJson = Annotated[bool, Parameter(name="--json", help="Print JSON, for scripts.")]
Overrides = Annotated[
    tuple[str, ...],
    Parameter(
        name="--set",
        metavar="KEY=VALUE",
        help="Override a value of the config, e.g. --set seed=5. May be repeated.",
    ),
]
DataRoot = Annotated[str | None, Parameter(help="The folder of downloaded data sets.")]
Device = Annotated[
    Accelerator, Parameter(name=["--accelerator", "--device"], help="What to compute on.")
]
Threads = Annotated[int | None, Parameter(converter=whole, help="CPU threads of each process.")]


@Parameter(name="*")  # Each field is an option of its own.
@dataclass(frozen=True, kw_only=True)
class SpaceOptions:
    listing: Annotated[
        bool, Parameter(name="--list", help="List the operations by morphing distance.")
    ] = False
    graph: Annotated[
        Path | None,
        Parameter(help="Draw the graph of the morphisms to this .svg, .png or .pdf file."),
    ] = None
    steps: Annotated[
        int, Parameter(converter=whole, help="How many morphing steps to count, 0 to 12.")
    ] = 5
    as_json: AsJson = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ConfigOptions:
    overrides: Overrides = ()
    as_json: AsJson = False
    out: Annotated[
        Path | None, Parameter(name=["--out", "-o"], help="Write it to this YAML file instead.")
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DataOptions:
    root: Annotated[
        Path | None, Parameter(help="The folder with a set's files, and for downloads.")
    ] = None
    sample: Annotated[
        Path | None, Parameter(help="Draw augmented samples of the images to this .png file.")
    ] = None
    image_size: Annotated[
        int | None, Parameter(converter=whole, help="Resize the images to squares of this size.")
    ] = None
    flip: Annotated[
        bool | None,
        Parameter(negative="--no-flip", help="Flip samples at random. Default: all but digits."),
    ] = None
    crop_padding: Annotated[
        int | None,
        Parameter(converter=whole, help="Largest shift of samples. Default: 4; digits: 1."),
    ] = None
    cutout: Annotated[
        int, Parameter(converter=whole, help="Side of the square cut out of samples; 0: none.")
    ] = 0
    skip_broken: Annotated[bool, Parameter(help="Leave out images that cannot be read.")] = False
    seed: Annotated[int, Parameter(converter=whole, help="Seed of the samples.")] = 0
    as_json: AsJson = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options that searches and trainings share."""

    data: Annotated[
        str | None,
        Parameter(
            help="The images, instead of those of the recipe or the search: a set that "
            "`prnas data` lists, folder:PATH or npz:PATH."
        ),
    ] = None
    data_root: DataRoot = None
    seed: Annotated[int | None, Parameter(converter=whole, help="Seed of all randomness.")] = None
    overrides: Overrides = ()
    runs: Annotated[
        Path | None, Parameter(help="The folder to make the run's folder in. Default: runs.")
    ] = None
    name: Annotated[
        str | None, Parameter(help="Name of the run's folder. Default: recipe, time and seed.")
    ] = None
    resume: Annotated[
        Path | None, Parameter(help="Go on with the run in this folder, where it stopped.")
    ] = None
    accelerator: Annotated[Accelerator | None, Parameter(help="What to compute on.")] = None
    devices: Annotated[
        int | None, Parameter(converter=whole, help="Number of devices, with a process each.")
    ] = None
    precision: Annotated[
        Precision | None,
        Parameter(help="Numeric precision: single, double, or mixed with bfloat16."),
    ] = None
    threads: Threads = None
    memory_limit: Annotated[float | None, Parameter(help="GB that each process may use.")] = None
    compile: Annotated[
        bool, Parameter(help="Compile with PyTorch: the stem of a search, the cells of a training.")
    ] = False
    quiet: Annotated[bool, Parameter(help="Print only the end.")] = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SearchOptions(RunOptions):
    recompute: Annotated[
        bool, Parameter(help="Use less memory and a little more time; the result is the same.")
    ] = False
    picture: Annotated[
        Path | None, Parameter(help="Draw the cells to this .svg, .png or .pdf file at the end.")
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RetrainOptions(RunOptions):
    seeds: Annotated[
        int | None,
        Parameter(converter=whole, help="Train N times, with seeds --seed, --seed + 1, …"),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    data: Annotated[
        str | None, Parameter(help="The data set. Default: that of the model's training.")
    ] = None
    data_root: DataRoot = None
    part: Annotated[
        DataPart,
        Parameter(help="Which part to test on; use `all` for images the model was not trained on."),
    ] = "test"
    overrides: Annotated[
        Overrides,
        Parameter(
            help="Override how the images are read, e.g. --set data.broken=skip. May be repeated."
        ),
    ] = ()
    batch: Annotated[
        int,
        Parameter(converter=whole, help="Batch size; also used for the second speed measurement."),
    ] = 128
    out: Annotated[
        Path | None,
        Parameter(
            name=["--out", "-o"], help="Write evaluation.json and confusion.svg into this folder."
        ),
    ] = None
    picture: Annotated[
        Path | None,
        Parameter(help="Draw the confusion matrix to this .svg, .png or .pdf file."),
    ] = None
    skip_speed: Annotated[bool, Parameter(help="Do not measure latency and throughput.")] = False
    accelerator: Device = "auto"
    threads: Threads = None
    as_json: AsJson = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    top: Annotated[int, Parameter(converter=whole, help="How many classes to show per image.")] = 3
    batch: Annotated[int, Parameter(converter=whole, help="Batch size.")] = 64
    accelerator: Device = "auto"
    threads: Threads = None
    as_json: AsJson = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    out: Annotated[
        Path,
        Parameter(
            name=["--out", "-o"],
            help="A .onnx, .pt2 (torch.export), .py (needs no prnas) or .safetensors file, or a "
            "folder for safetensors.",
        ),
    ]
    file_format: Annotated[
        ExportFormat | None,
        Parameter(name="--format", help="The format, if the file's ending does not say it."),
    ] = None
    normalize: Annotated[
        bool,
        Parameter(help="Include the normalisation: .onnx and .pt2 then take pixels 0 to 1."),
    ] = False
    force: Annotated[bool, Parameter(help="Overwrite existing files.")] = False
    as_json: AsJson = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    out: Annotated[
        Path | None,
        Parameter(
            name=["--out", "-o"],
            help="The .html file. Default: RUN/report.html, or comparison.html here.",
        ),
    ] = None
    figures: Annotated[
        Path | None, Parameter(help="Also draw figures for a paper (SVG and PDF) to this folder.")
    ] = None
    as_json: AsJson = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class WatchOptions:
    port: Annotated[
        int | None,
        Parameter(converter=whole, help="The port to listen on; 0: any free port. Default: 8777."),
    ] = None
    host: Annotated[
        str,
        Parameter(
            help="The address to listen on. Default is this machine only; 0.0.0.0 lets others in."
        ),
    ] = "127.0.0.1"
