"""`prnas evaluate`: the accuracy, confusions and speed of a trained model."""

import json
import shlex
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import prnas
from prnas.commands.draw import check_picture, save_picture
from prnas.commands.options import EvaluateOptions
from prnas.config.choices import Accelerator
from prnas.config.overrides import apply_overrides
from prnas.data.dataset import DataSet
from prnas.data.dataset import load as load_images
from prnas.drawing.confusion import draw_confusion
from prnas.io.errors import UserError, cannot
from prnas.io.text import write_text
from prnas.models.evaluate import Evaluation, evaluate
from prnas.models.inference import choose_device
from prnas.models.matching_data import check_fit, data_config, data_settings
from prnas.models.model import Model, load
from prnas.models.names import CARD, FOLDER, WEIGHTS
from prnas.models.speed import Speed
from prnas.runs.named import check_has_model
from prnas.terminal.amounts import counted, duration, percent, speed
from prnas.terminal.bars import Bars
from prnas.terminal.output import facts, note, show, show_heading, show_next, table

RESULT, PICTURE = "evaluation.json", "confusion.svg"
MOST_BATCH = 1_000_000
_MOST_CLASSES, _MOST_CONFUSIONS = 20, 5  # How many are shown.


def run(path: Path, options: EvaluateOptions) -> None:
    """Test a model and show the result. All mistakes in the options are found before it starts."""
    check_batch(options.batch)
    if options.picture is not None:
        check_picture(options.picture)
    if options.out is not None and options.out.exists() and not options.out.is_dir():
        raise UserError(f"--out: {options.out} is not a folder")
    model = load_model(path, options.accelerator, options.threads)
    with closing(_load_data(model, options)) as data:
        check_fit(model.card, data)
        timed = not options.skip_speed
        with _output_folder(options.out), Bars() as bars:
            result = evaluate(
                model, data, part=options.part, batch=options.batch, speed=timed, progress=bars
            )
    text = as_text(path, result)
    if options.as_json:
        print(text)
    else:
        _show(path, model, result)
    _write(path, options, result, text)
    if not options.as_json:
        name = shlex.quote(str(path))
        if options.out is None:
            show_next(f"prnas evaluate {name} -o evaluation")
        show_next(f"prnas predict {name} IMAGE")


def load_model(path: Path, accelerator: Accelerator, threads: int | None) -> Model:
    """The trained model at `path`, on a device."""
    device = choose_device(accelerator, threads)
    check_has_model(path)
    return load(path).to(device)


def check_batch(batch: int) -> None:
    if not 1 <= batch <= MOST_BATCH:
        raise UserError(f"--batch must be from 1 to {MOST_BATCH:,}, got {batch}")


def as_text(path: Path, result: Evaluation) -> str:
    """The evaluation as JSON, with a line for each row of the confusion matrix."""
    import torch

    about = {"model": str(path), "prnas": prnas.__version__, "torch": str(torch.__version__)}
    data = about | result.to_json()
    rows = ",\n".join(f"  {json.dumps(row)}" for row in data.pop("confusion"))
    head = json.dumps(data, indent=1, ensure_ascii=False).removesuffix("\n}")
    return f'{head},\n "confusion": [\n{rows}\n ]\n}}'


def _load_data(model: Model, options: EvaluateOptions) -> DataSet:
    settings = data_settings(model.card, options.data, options.data_root)
    changed = apply_overrides({"data": settings}, options.overrides, lambda _: None)
    return load_images(data_config(model.card, changed["data"]), model.mean.device, note)


@contextmanager
def _output_folder(folder: Path | None) -> Generator[None]:
    """Make the folder, which may fail, before the work; remove it again if the work fails."""
    if folder is None or folder.exists():
        yield
        return
    with cannot(f"make the folder {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            folder.rmdir()
        raise


def _write(path: Path, options: EvaluateOptions, result: Evaluation, text: str) -> None:
    quiet = options.as_json
    if not quiet and (options.out or options.picture):
        show("")
    pictures = [] if options.picture is None else [options.picture]
    if options.out is not None:
        pictures.insert(0, options.out / PICTURE)
        write_text(options.out / RESULT, text + "\n")
        if not quiet:
            show(f"wrote {options.out / RESULT}")
    if pictures:
        title = f"{_name(path)} on {_images(result)}: {percent(result.top1)} correct"
        picture = draw_confusion(result.confusion, result.class_names, title)
        for target in pictures:
            save_picture(picture, target, quiet)


def _name(path: Path) -> str:
    """The name of the run that a model is from, or of its folder."""
    folder = path.absolute()
    if folder.name in (WEIGHTS, CARD):
        folder = folder.parent
    return folder.parent.name if folder.name == FOLDER else folder.name


def _images(result: Evaluation) -> str:
    return f"{result.data}, {'both parts' if result.part == 'all' else f'{result.part} part'}"


def _show(path: Path, model: Model, result: Evaluation) -> None:
    show_heading(_images(result))
    show(facts(_facts(path, model, result)))
    tested = [entry for entry in result.classes if entry.images]
    ranked = sorted(tested, key=lambda entry: entry.correct / entry.images)
    rows = [
        [entry.name, f"{entry.images:,}", f"{entry.correct:,}", percent(entry.accuracy)]
        for entry in ranked[:_MOST_CLASSES]
    ]
    show("", table(["class", "images", "correct", "accuracy"], rows, right=(1, 2, 3)))
    if more := len(ranked) - len(rows):
        show(f"... and {more} classes that are recognised more often")
    if none := len(result.classes) - len(ranked):
        show(f"{none} {'class has' if none == 1 else 'classes have'} no images")
    show("")
    names = result.class_names
    for pair in result.confusions(_MOST_CONFUSIONS):
        total = sum(result.confusion[pair.true])
        show(
            f"'{names[pair.true]}' was taken for '{names[pair.predicted]}': {pair.count:,} of "
            f"{total:,} ({percent(pair.share)})"
        )
    if result.correct == result.images:
        show("no image was taken for another class")


def _facts(path: Path, model: Model, result: Evaluation) -> list[tuple[str, str]]:
    parameters = sum(tensor.numel() for tensor in model.parameters())
    low, high = result.top1_interval
    threads = f", {counted(result.threads, 'thread')}" if result.device == "cpu" else ""
    interval = f"95 % interval {percent(low)} to {percent(high)}"
    pairs = [
        ("model", f"{path} ({parameters:,} parameters)"),
        ("images", f"{result.images:,} in {len(result.class_names)} classes"),
        ("top-1", f"{percent(result.top1)} ({result.correct:,} correct; {interval})"),
    ]
    if result.top5 is not None:
        pairs.append(("top-5", percent(result.top5)))
    pairs += [
        ("loss", f"{result.loss:.4f} (mean cross-entropy)"),
        ("device", result.device + threads),
        ("time", f"{duration(result.seconds)} for all images, reading included"),
    ]
    pairs += [(f"batch of {measured.batch}", _speed(measured)) for measured in result.speeds]
    if result.speeds:
        pairs.append(("", "of the network alone: median and quartiles of repeated calls"))
    return pairs


def _speed(measured: Speed) -> str:
    low, high = measured.lower_quartile_seconds, measured.upper_quartile_seconds
    return (
        f"latency {_milliseconds(measured.median_seconds)} ms ({_milliseconds(low)} to "
        f"{_milliseconds(high)}, {measured.calls} calls), throughput "
        f"{speed(measured.images_per_second)} images/s"
    )


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.3g}" if seconds < 1 else f"{1000 * seconds:,.0f}"
