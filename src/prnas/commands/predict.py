"""`prnas predict`: what a trained model takes images for."""

import shlex
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from prnas.commands.evaluate import check_batch
from prnas.io.errors import UserError
from prnas.models.inference import choose_device
from prnas.models.model import load
from prnas.models.predict import Answer, check_card, each, find_images
from prnas.terminal.amounts import percent
from prnas.terminal.bars import Bars
from prnas.terminal.output import show_json, show_next, visible

USER_ERROR = 2
_WIDEST = 60  # columns that paths and names of classes may take to be aligned


def run(
    model_path: Path,
    paths: list[Path],
    top: int,
    batch: int,
    accelerator: str,
    threads: int | None,
    as_json: bool,
) -> None:
    """Tell the classes of all images; what cannot be read is named, and the exit code is then 2."""
    check_batch(batch)
    if top < 1:
        raise UserError(f"--top must be 1 or more, got {top}")
    if not paths:
        raise UserError("name image files, or folders of them, after the model")
    device = choose_device(accelerator, threads)
    model = load(model_path).to(device)
    check_card(model.card)
    found = find_images(paths)
    if not found.paths and not found.broken:
        ignored = f" ({_files(found.ignored)} of other kinds)" if found.ignored else ""
        raise UserError(f"there are no images in {', '.join(map(str, paths))!s:.200}{ignored}")
    answers: list[Answer] = []
    num_broken = len(found.broken)
    widths = _width(map(str, found.paths)), _width(model.class_names)
    for error in found.broken:
        _complain(str(error))
    out = sys.stdout  # a bar would catch what is printed meanwhile
    with ExitStack() as stack:
        # In a terminal, the answers themselves show how far it is.
        bars = stack.enter_context(Bars()) if as_json or not out.isatty() else None
        for number, one in enumerate(each(model, found.paths, top=top, batch=batch), 1):
            if not isinstance(one, Answer):
                _complain(str(one))
                num_broken += 1
            elif as_json:
                answers.append(one)
            else:
                print(_line(one, *widths), file=out)
            if bars is not None:
                bars("looking at images", number, len(found.paths))
    if as_json:
        show_json([one.to_json() for one in answers])
    if found.ignored:
        print(f"note: ignored {_files(found.ignored)} of other kinds", file=sys.stderr)
    if num_broken:
        sys.stdout.flush()
        sys.exit(USER_ERROR)
    if not as_json:
        show_next(f"prnas evaluate {shlex.quote(str(model_path))}")


def _line(answer: Answer, path_width: int, name_width: int) -> str:
    guesses = "  ".join(
        f"{_shown(one.name):{name_width}} {percent(one.probability):>6}" for one in answer.guesses
    )
    return f"{_shown(str(answer.path)):{path_width}}  {guesses}"


def _shown(text: str) -> str:
    return visible(text).replace("\n", "\\n")  # a line is an image, whatever it is called


def _width(texts: Iterable[str]) -> int:
    return min(max((len(_shown(one)) for one in texts), default=0), _WIDEST)


def _files(number: int) -> str:
    return "1 file" if number == 1 else f"{number:,} files"


def _complain(message: str) -> None:
    print(f"prnas: {visible(message)}", file=sys.stderr)
