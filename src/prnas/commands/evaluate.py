"""`prnas evaluate`: how well a trained model does, what it confuses, how quick it is."""

import json
import shlex
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import prnas
from prnas.commands.pictures import check_picture, save_picture
from prnas.config.overrides import apply_overrides
from prnas.data import dataset as images
from prnas.drawing.confusion import draw_confusion
from prnas.drawing.picture import Picture
from prnas.io.errors import UserError
from prnas.io.text import write_text
from prnas.models.evaluate import Evaluation, evaluate
from prnas.models.inference import choose_device
from prnas.models.matching_data import check_fit, data_config, data_settings
from prnas.models.model import CARD, FOLDER, WEIGHTS, Model, load
from prnas.models.speed import Speed
from prnas.terminal.amounts import duration, percent, speed
from prnas.terminal.output import facts, show, show_heading, show_next, table, visible

RESULT, PICTURE = "evaluation.json", "confusion.svg"
MOST_BATCH = 1_000_000
_CLASSES, _CONFUSIONS = 20, 5  # that are told


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was typed."""

    model: Path
    data: str | None
    data_root: str | None
    part: Literal["test", "train", "all"]
    overrides: list[str]
    batch: int
    out: Path | None
    picture: Path | None
    speed: bool
    accelerator: str
    threads: int | None
    as_json: bool


def run(wanted: Wanted) -> None:
    """Test a model and tell. All that can be wrong with the words is found first."""
    check_batch(wanted.batch)
    if wanted.picture is not None:
        check_picture(wanted.picture)
    if wanted.out is not None and wanted.out.exists() and not wanted.out.is_dir():
        raise UserError(f"--out: {wanted.out} is not a folder")
    device = choose_device(wanted.accelerator, wanted.threads)
    model = load(wanted.model).to(device)
    loaded = _load(model, wanted, device)
    try:
        check_fit(model.card, loaded)
        from prnas.terminal.bars import Bars

        with _made(wanted.out), Bars() as bars:
            found = evaluate(
                model,
                loaded,
                part=wanted.part,
                batch=wanted.batch,
                speed=wanted.speed,
                progress=bars,
            )
    finally:
        loaded.close()
    text = as_text(wanted.model, found)
    if wanted.as_json:
        print(text)
    else:
        _show(wanted.model, model, found)
    _write(wanted, found, text)
    if not wanted.as_json:
        _show_next(wanted)


def check_batch(batch: int) -> None:
    if not 1 <= batch <= MOST_BATCH:
        raise UserError(f"--batch must be from 1 to {MOST_BATCH:,}, got {batch}")


def as_text(path: Path, found: Evaluation) -> str:
    """The evaluation as JSON, with a line for each row of the confusion matrix."""
    import torch

    about = {"model": str(path), "prnas": prnas.__version__, "torch": str(torch.__version__)}
    data = about | found.to_json()
    rows = ",\n".join(f"  {json.dumps(row)}" for row in data.pop("confusion"))
    head = json.dumps(data, indent=1, ensure_ascii=False).removesuffix("\n}")
    return f'{head},\n "confusion": [\n{rows}\n ]\n}}'


def _load(model: Model, wanted: Wanted, device: Any) -> images.DataSet:
    settings = data_settings(model.card, wanted.data, wanted.data_root)
    changed = apply_overrides({"data": settings}, wanted.overrides, lambda _: None)
    return images.load(data_config(model.card, changed["data"]), device, _note)


def _note(text: str) -> None:
    print(f"note: {visible(text)}", file=sys.stderr)


@contextmanager
def _made(folder: Path | None) -> Generator[None]:
    """Make the folder, which may fail, before the work; if the work fails, it goes again."""
    new = folder is not None and not folder.exists()
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot make the folder {folder}: {error.strerror}") from None
    try:
        yield
    except BaseException:
        if folder is not None and new:
            with suppress(OSError):
                folder.rmdir()
        raise


def _write(wanted: Wanted, found: Evaluation, text: str) -> None:
    targets = [wanted.out / PICTURE] if wanted.out is not None else []
    targets += [wanted.picture] if wanted.picture is not None else []
    if targets and not wanted.as_json:
        show("")
    if wanted.out is not None:
        write_text(wanted.out / RESULT, text + "\n")
        if not wanted.as_json:
            show(f"wrote {wanted.out / RESULT}")
    picture: Picture | None = None
    for target in targets:
        picture = picture or draw_confusion(
            found.confusion, found.class_names, _title(wanted.model, found)
        )
        save_picture(picture, target, quiet=wanted.as_json)


def _title(path: Path, found: Evaluation) -> str:
    return f"{_name(path)} on {_data(found)}: {percent(found.top1)} right"


def _name(path: Path) -> str:
    """The run that a model is from, or its folder."""
    whole = path.absolute()
    if whole.name in (WEIGHTS, CARD):
        whole = whole.parent
    return whole.parent.name if whole.name == FOLDER else whole.name


def _data(found: Evaluation) -> str:
    return f"{found.data}, {'both parts' if found.part == 'all' else f'{found.part} part'}"


def _show(path: Path, model: Model, found: Evaluation) -> None:
    show_heading(_data(found))
    show(facts(_facts(path, model, found)))
    ranked = sorted(
        (one for one in found.classes if one.images), key=lambda one: one.right / one.images
    )
    rows = [
        [one.name, f"{one.images:,}", f"{one.right:,}", percent(one.accuracy)]
        for one in ranked[:_CLASSES]
    ]
    show("", table(["class", "images", "right", "accuracy"], rows, right=(1, 2, 3)))
    if more := len(ranked) - len(rows):
        show(f"... and {more} classes that are recognised more often")
    if none := len(found.classes) - len(ranked):
        show(f"{none} {'class has' if none == 1 else 'classes have'} no images")
    show("")
    names = found.class_names
    for one in found.confusions(_CONFUSIONS):
        total = sum(found.confusion[one.true])
        show(
            f"'{names[one.true]}' was taken for '{names[one.predicted]}': {one.count:,} of "
            f"{total:,} ({percent(one.share)})"
        )
    if found.right == found.images:
        show("no image was taken for another class")


def _facts(path: Path, model: Model, found: Evaluation) -> list[tuple[str, str]]:
    parameters = sum(one.numel() for one in model.parameters())
    low, high = found.top1_interval
    threads = f"{found.threads} thread" + ("s" if found.threads > 1 else "")
    pairs = [
        ("model", f"{path} ({parameters:,} parameters)"),
        ("images", f"{found.images:,} in {len(found.class_names)} classes"),
        (
            "top-1",
            f"{percent(found.top1)} ({found.right:,} right; 95 % interval {percent(low)} to "
            f"{percent(high)})",
        ),
    ]
    if found.top5 is not None:
        pairs.append(("top-5", percent(found.top5)))
    pairs += [
        ("loss", f"{found.loss:.4f} (mean cross-entropy)"),
        ("device", found.device + (f", {threads}" if found.device == "cpu" else "")),
        (
            "time",
            f"{duration(found.seconds)} for all images, reading included",
        ),
    ]
    for one in found.speeds:
        pairs.append((f"batch of {one.batch}", _speed(one)))
    if found.speeds:
        pairs.append(("", "of the network alone: median and quartiles of repeated calls"))
    return pairs


def _speed(one: Speed) -> str:
    low, high = one.lower_quartile_seconds, one.upper_quartile_seconds
    return (
        f"latency {_milliseconds(one.median_seconds)} ms ({_milliseconds(low)} to "
        f"{_milliseconds(high)}, {one.calls} calls), throughput {speed(one.images_per_second)} "
        "images/s"
    )


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.3g}" if seconds < 1 else f"{1000 * seconds:,.0f}"


def _show_next(wanted: Wanted) -> None:
    name = shlex.quote(str(wanted.model))
    if wanted.out is None:
        show_next(f"prnas evaluate {name} -o evaluation")
    show_next(f"prnas predict {name} IMAGE")
