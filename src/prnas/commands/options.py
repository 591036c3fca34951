"""The arguments and options of each command: the command line fills them in, the command gets them.

The text below an option is its help. Light: `prnas --help` imports this file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, Token

from prnas.config.choices import Accelerator, DataPart, ExportFormat, Precision, ShapeName


def whole_number(least: int | None = None, most: int | None = None) -> Parameter:
    """A whole number from `least` to `most`; the library itself would round 1.5."""

    def convert(_: object, tokens: Sequence[Token]) -> int:
        text = tokens[0].value
        if not text.removeprefix("-").isdecimal() or len(text) > 9:
            raise ValueError(f"a whole number is needed, got {text!r:.60}")
        number = int(text)
        if least is not None and (number < least or (most is not None and number > most)):
            bounds = f"{least} or more" if most is None else f"from {least} to {most:,}"
            raise ValueError(f"must be {bounds}, got {number}")
        return number

    return Parameter(converter=convert)


WholeNumber = Annotated[int, whole_number()]
Batch = Annotated[int, whole_number(1, 1_000_000)]
AsJson = Annotated[bool, Parameter(name="--json", help="Print JSON, for scripts.")]
Overrides = Annotated[tuple[str, ...], Parameter(name="--set", metavar="KEY=VALUE")]
Output = Annotated[Path | None, Parameter(name=["--out", "-o"])]
Device = Annotated[
    Accelerator, Parameter(name=["--accelerator", "--device"], help="The device to compute on.")
]
Threads = Annotated[WholeNumber | None, Parameter(help="CPU threads.")]
DataRoot = Annotated[str | None, Parameter(help="The folder of downloaded data sets.")]


@Parameter(name="*")  # Each field is an option of its own.
class Options: ...


@dataclass(frozen=True, kw_only=True)
class SpaceOptions(Options):
    listing: Annotated[bool, Parameter(name="--list")] = False
    """List the operations by morphing distance."""
    graph: Path | None = None
    """Draw the graph of the morphisms to this .svg, .png or .pdf file."""
    steps: Annotated[int, whole_number(0, 12)] = 5
    """Number of morphing steps to count, 0 to 12."""
    shape: ShapeName | None = None
    """The shape of the cells that are counted. Default: that which the setting is for."""
    as_json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class ConfigOptions(Options):
    data: str | None = None
    """Use these images: a name that `prnas data` lists, folder:PATH or npz:PATH."""
    data_root: DataRoot = None
    overrides: Overrides = ()
    """Override a value of the config, e.g. --set seed=5. May be repeated."""
    as_json: AsJson = False
    out: Output = None
    """Write it to this YAML file instead."""


@dataclass(frozen=True, kw_only=True)
class DataOptions(Options):
    recipe: str | None = None
    """Treat the images as this recipe, YAML file or run does. Default: as `prnas search --data`."""
    overrides: Overrides = ()
    """Override a value of that recipe, e.g. --set data.flip=false. May be repeated."""
    root: Path | None = None
    """The folder with a set's files, and for downloads."""
    sample: Path | None = None
    """Draw augmented samples of the images to this .png file."""
    image_size: WholeNumber | None = None
    """Resize the images to squares of this size."""
    flip: Annotated[bool | None, Parameter(negative="--no-flip")] = None
    """Flip samples at random, or never."""
    crop_padding: WholeNumber | None = None
    """Largest shift of samples."""
    cutout: WholeNumber | None = None
    """Side of the square cut out of samples; 0: none."""
    skip_broken: bool = False
    """Leave out images that cannot be read."""
    seed: Annotated[int, whole_number(0)] = 0
    """Seed of the samples."""
    as_json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class RunOptions(Options):
    data: str | None = None
    """Use these images: a name that `prnas data` lists, folder:PATH or npz:PATH."""
    data_root: DataRoot = None
    seed: WholeNumber | None = None
    """Seed of all randomness."""
    overrides: Overrides = ()
    """Override a value of the config, e.g. --set seed=5. May be repeated."""
    runs: Path | None = None
    """The folder to make the run's folder in. Default: runs."""
    name: str | None = None
    """Name of the run's folder. Default: recipe, time and seed."""
    resume: Path | None = None
    """Continue the run in this folder where it stopped."""
    accelerator: Accelerator | None = None
    """The device to compute on."""
    devices: WholeNumber | None = None
    """Number of devices; each has its own process."""
    precision: Precision | None = None
    """Numeric precision: single, double, or mixed with bfloat16 or (on a GPU) float16."""
    threads: WholeNumber | None = None
    """CPU threads of each process."""
    memory_limit: float | None = None
    """Memory limit of each process, in GB."""
    compile: bool = False
    """Use torch.compile: on the stem in a search, on the cells in a training."""
    dry_run: bool = False
    """Print the plan, and how long it takes by its first steps; write nothing."""
    quiet: bool = False
    """Print only the run's folder, in one line at the end."""
    as_json: Annotated[bool, Parameter(name="--json")] = False
    """Print only the result, as JSON, at the end."""

    @property
    def brief(self) -> bool:
        """Whether a script reads the output: then there is nothing but the end."""
        return self.quiet or self.as_json


@dataclass(frozen=True, kw_only=True)
class SearchOptions(RunOptions):
    recompute: bool = False
    """Use less memory and a little more time; the result is the same."""
    picture: Path | None = None
    """Draw the cells to this .svg, .png or .pdf file at the end."""
    seeds: WholeNumber | None = None
    """Search N times, with seeds --seed, --seed + 1, …: a study of one row."""
    max_params: str | None = None
    """Most parameters of the final network (the config's `final`), e.g. 3M."""
    max_macs: str | None = None
    """Most multiply-accumulates of the final network for one image, e.g. 500M."""
    max_latency: str | None = None
    """Longest time of the final network for one image, e.g. 20ms; needs --latency."""
    latency: Path | None = None
    """The table of latencies that `prnas latency` wrote on the target device."""
    engine: str | None = None
    """The engine that makes the trainings of searcher.scorer=training, as a study's: local, ray."""
    address: str | None = None
    """For --engine ray: a running cluster, as HOST:PORT, or auto for the one of this machine."""
    slots: WholeNumber | None = None
    """For --engine: trainings at the same time. Default: as many as there is room for."""


@dataclass(frozen=True, kw_only=True)
class RetrainOptions(RunOptions):
    start_from: Annotated[str | None, Parameter(name="--from")] = None
    """Start with the weights of this trained model: a training's folder, or an exported one."""
    seeds: Annotated[int, whole_number(1)] | None = None
    """Train N times, with seeds --seed, --seed + 1, …"""


@dataclass(frozen=True, kw_only=True)
class StudyOptions(Options):
    listing: Annotated[bool, Parameter(name="--list")] = False
    """List every job and its state; run nothing."""
    dry_run: bool = False
    """Print the plan, its time and the smallest difference it can show; write nothing."""
    job: WholeNumber | None = None
    """Run this job of --list alone, e.g. as a task of a Slurm array."""
    csv: bool = False
    """Print the results so far as CSV, with a line for each training."""
    latex: bool = False
    """Print the results so far as a LaTeX table."""
    as_json: AsJson = False
    out: Output = None
    """Write the CSV, LaTeX or JSON to this file instead."""
    runs: Path | None = None
    """The folder to make the study's folder in. Default: runs."""
    name: str | None = None
    """Name of the study's folder. Default: that of its file."""
    overrides: Overrides = ()
    """Override a value of the study, e.g. --set seeds=3. May be repeated."""
    engine: str | None = None
    """The engine that runs the jobs: local (default), or ray, on this machine or a cluster."""
    address: str | None = None
    """For --engine ray: a running cluster, as HOST:PORT, or auto for the one of this machine."""
    slots: WholeNumber | None = None
    """Number of jobs at the same time. Default: as many as the machine has room for."""
    quiet: bool = False
    """Print only the end."""


@dataclass(frozen=True, kw_only=True)
class FitOptions(Options):
    minutes: float | None = None
    """Time for everything, in minutes. Default: 60."""
    dry_run: bool = False
    """Print the plan, and how long each stage takes; write nothing."""
    resume: Path | None = None
    """Continue the fit in this folder where it stopped."""
    seed: WholeNumber | None = None
    """Seed of all randomness."""
    max_params: str | None = None
    """Most parameters of the network, e.g. 300k."""
    max_macs: str | None = None
    """Most multiply-accumulates of the network for one image, e.g. 50M."""
    max_latency: str | None = None
    """Longest time of the network for one image on this machine, e.g. 5ms."""
    start_from: Annotated[str | None, Parameter(name="--from")] = None
    """A trained model to fine-tune on these pictures, and to compare with the others."""
    data_root: DataRoot = None
    runs: Path | None = None
    """The folder to make the fit's folder in. Default: runs."""
    name: str | None = None
    """Name of the fit's folder. Default: fit, time and seed."""
    accelerator: Accelerator | None = None
    """The device to compute on."""
    threads: WholeNumber | None = None
    """CPU threads."""
    quiet: bool = False
    """Print only the folder."""
    as_json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class LatencyOptions(Options):
    data: str | None = None
    """Use these images: a name that `prnas data` lists, folder:PATH or npz:PATH."""
    data_root: DataRoot = None
    overrides: Overrides = ()
    """Override a value of the recipe, e.g. --set final.channels=16. May be repeated."""
    out: Annotated[Path, Parameter(name=["--out", "-o"])] = Path("latency.json")
    """The JSON file to write the table to."""
    repeats: Annotated[int, whole_number(2, 10_000)] = 20
    """Number of times that everything is timed; the median counts."""
    accelerator: Device = "auto"
    threads: Threads = None
    """CPU threads, as many as the network will have."""


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(Options):
    data: str | None = None
    """The data set. Default: that of the model's training."""
    data_root: DataRoot = None
    part: DataPart = "test"
    """The part to test on; use `all` for images the model was not trained on."""
    overrides: Overrides = ()
    """Override how the images are read, e.g. --set data.broken=skip. May be repeated."""
    batch: Batch = 128
    """Batch size; also used for the second speed measurement."""
    out: Output = None
    """Write evaluation.json and confusion.svg into this folder."""
    picture: Path | None = None
    """Draw the confusion matrix to this .svg, .png or .pdf file."""
    skip_speed: bool = False
    """Do not measure latency and throughput."""
    accelerator: Device = "auto"
    threads: Threads = None
    as_json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class PredictOptions(Options):
    top: Annotated[int, whole_number(1)] = 3
    """Number of classes to show per image."""
    batch: Batch = 64
    """Batch size."""
    accelerator: Device = "auto"
    threads: Threads = None
    csv: bool = False
    """Print CSV, with a line for each image."""
    as_json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class ExportOptions(Options):
    out: Annotated[Path, Parameter(name=["--out", "-o"])]
    """A .onnx, .pt2 (torch.export), .py or .safetensors file, or a folder for safetensors."""
    file_format: Annotated[ExportFormat | None, Parameter(name="--format")] = None
    """The format, if the file's ending does not say it."""
    normalize: bool = False
    """Include the normalisation: .onnx and .pt2 then take pixels 0 to 1."""
    force: bool = False
    """Overwrite existing files."""
    as_json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class ReportOptions(Options):
    out: Output = None
    """The .html file. Default: RUN/report.html, or comparison.html here."""
    figures: Path | None = None
    """Also draw figures for a paper (SVG and PDF) to this folder."""
    as_json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class RecordsOptions(Options):
    csv: bool = False
    """Print CSV, with a line for each epoch and measure. This is the default."""
    as_json: Annotated[bool, Parameter(name=("--jsonl", "--json"))] = False
    """Print JSON lines with the same fields instead."""
    latex: bool = False
    """Print a LaTeX table of the results instead: mean and deviation over the seeds of a config."""
    candidates: bool = False
    """Print the candidates of each cycle and their architecture weights, not the epochs."""
    out: Output = None
    """Write them to this file instead."""


@dataclass(frozen=True, kw_only=True)
class WatchOptions(Options):
    port: Annotated[int, whole_number(0, 65_535)] | None = None
    """The port to listen on; 0: any free port. Default: 8777."""
    host: str = "127.0.0.1"
    """The address to listen on. Default is this machine only; 0.0.0.0 lets others in."""


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(Options):
    runs: Path | None = None
    """The folder that runs will be written to. Default: runs."""
    data_root: Annotated[Path | None, Parameter(help="The folder of downloaded data sets.")] = None
    as_json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class CompletionOptions(Options):
    printed: Annotated[bool, Parameter(name="--print")] = False
    """Print the script; install nothing."""
    out: Output = None
    """Write the script to this file, instead of where the shell looks for it."""
