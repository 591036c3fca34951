"""`prnas predict`: the classes of images, predicted by a trained model."""

import csv
import io
import shlex
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from prnas.commands.evaluate import load_model
from prnas.commands.options import PredictOptions
from prnas.io.errors import UserError
from prnas.io.progress import bar
from prnas.models.predict import Prediction, check_card, find_images, predict_each
from prnas.terminal.amounts import counted, percent
from prnas.terminal.output import note, show_json, show_next, visible

USER_ERROR = 2
_WIDEST = 60  # Columns that paths and names of classes may take to be aligned.


def run(path: Path, images: Sequence[str], options: PredictOptions) -> None:
    """Print the classes of all images. Files that cannot be read are named, with exit code 2."""
    if options.csv and options.as_json:
        raise UserError("choose one of --csv and --json")
    if not images:
        raise UserError("name image files, or folders of them, after the model")
    if address := next((name for name in images if "://" in name), None):
        raise UserError(f"{address:.200} is a web address; only files can be read: download it")
    model = load_model(path, options.accelerator, options.threads)
    check_card(model.card)
    files = find_images(map(Path, images))
    if not files.paths and not files.broken:
        ignored = f" ({counted(files.ignored, 'file')} of other kinds)" if files.ignored else ""
        raise UserError(f"there are no images in {', '.join(images):.200}{ignored}")
    predictions: list[Prediction] = []
    num_broken = len(files.broken)
    widths = _width(map(str, files.paths)), _width(model.class_names)
    for error in files.broken:
        _complain(str(error))
    out = sys.stdout  # Under a progress bar, `sys.stdout` is another stream.
    with ExitStack() as stack:
        # In a terminal, the predictions themselves show the progress.
        progress = None
        if options.as_json or options.csv or not out.isatty():
            progress = stack.enter_context(bar("predicting", len(files.paths)))
        top = min(options.top, len(model.class_names))
        shown = visible if out.isatty() else str  # A script wants names as they are.
        if options.csv:
            print(_csv_line(_columns(top)), end="", file=out)
        results = predict_each(model, files.paths, top=top, batch=options.batch)
        for result in results:
            if not isinstance(result, Prediction):
                _complain(str(result))
                num_broken += 1
            elif options.as_json:
                predictions.append(result)
            elif options.csv:
                print(shown(_csv_line(_values(result))), end="", file=out)
            else:
                print(_line(result, *widths), file=out)
            if progress is not None:
                progress.advance()
    if options.as_json:
        show_json([prediction.to_json() for prediction in predictions])
    if files.ignored:
        note(f"ignored {counted(files.ignored, 'file')} of other kinds")
    if num_broken:
        sys.stdout.flush()
        sys.exit(USER_ERROR)
    if not options.as_json and not options.csv:
        show_next(f"prnas evaluate {shlex.quote(str(path))}")


def _line(prediction: Prediction, path_width: int, name_width: int) -> str:
    classes = "  ".join(
        f"{_in_line(score.name):{name_width}} {percent(score.probability):>6}"
        for score in prediction.classes
    )
    return f"{_in_line(str(prediction.path)):{path_width}}  {classes}"


def _columns(top: int) -> list[str]:
    """The head of the CSV: the class and its probability, then those of the next ones."""
    numbers = ["", *(f"_{number}" for number in range(2, top + 1))]
    return [
        "image",
        *(f"{name}{number}" for number in numbers for name in ("class", "probability")),
    ]


def _values(prediction: Prediction) -> list[str]:
    classes = [(score.name, repr(score.probability)) for score in prediction.classes]
    return [str(prediction.path), *(value for pair in classes for value in pair)]


def _csv_line(values: Sequence[str]) -> str:
    """A line of CSV; what a name's bytes cannot be as text is escaped, as a terminal shows it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([value.encode(errors="backslashreplace").decode() for value in values])
    return text.getvalue()


def _in_line(text: str) -> str:
    """`text` without line breaks: each image has one line, whatever its name."""
    return visible(text).replace("\n", "\\n")


def _width(texts: Iterable[str]) -> int:
    return min(max((len(_in_line(text)) for text in texts), default=0), _WIDEST)


def _complain(message: str) -> None:
    print(f"prnas: {visible(message)}", file=sys.stderr)
