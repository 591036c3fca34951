"""Export: a trained model as files that other tools load without prnas, each checked first."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from prnas.exporting.onnx import as_onnx, check_onnx
from prnas.exporting.python_file import as_python
from prnas.exporting.target import NORMALIZING, Format, Target, check_free, find_target, write
from prnas.exporting.torch_program import INPUT, as_program, describe
from prnas.exporting.verify import BATCHES, Agreement, compare, reference_batches
from prnas.io.errors import UserError
from prnas.models.model import CARD, WEIGHTS, Model, load, network_of, save_model, weights_of

CHECKED_WITH: dict[Format, str] = {
    "safetensors": "loaded again",
    "onnx": "run by onnxruntime",
    "pt2": "loaded again by PyTorch",
    "python": "run in a process without prnas",
}


@dataclass(frozen=True, slots=True)
class Exported:
    """An export: its files, its input, how it was checked, and how to load it elsewhere."""

    file_format: Format  #: The format.
    files: tuple[Path, ...]  #: The files that were written.
    takes: str  #: What it takes as its input, in words.
    checked: str  #: How it was checked, in words.
    largest_difference: float  #: Largest deviation of logits from the model's.
    largest_logit: float  #: Largest logit of the check.
    rounding: float  #: Largest deviation of the model's own logits from those in double precision.
    loading: tuple[str, ...]  #: Lines of Python that load it.


def export(
    model: Model | Path | str,
    path: Path | str,
    *,
    file_format: Format | None = None,
    normalize: bool = False,
    force: bool = False,
    progress: Callable[[str], object] = lambda text: None,
) -> Exported:
    """Write a trained model, or that of a path as for `prnas.load`, for others to load.

    The ending of `path` decides the format unless `file_format` does: a folder or .safetensors,
    .onnx, .pt2 (`torch.export`), or .py. `normalize` puts the normalisation into an ONNX file or a
    program, which then take pixels from 0 to 1. Nothing is written before the logits of what is to
    be written were compared with the model's; existing files only with `force`. `progress` is
    called with a text for each stage. A `UserError` says what is wrong. The model is not changed.
    """
    target = find_target(Path(path), file_format)
    if normalize and target.file_format not in NORMALIZING:
        raise UserError(
            f"normalisation goes into {' and '.join(NORMALIZING)} only: a Python file has a "
            "function for it, and safetensors hold weights"
        )
    check_free(target, force)
    if target.file_format == "onnx":
        check_onnx()
    ready = _copy(model) if isinstance(model, Model) else load(model)
    with tempfile.TemporaryDirectory(prefix="prnas-export-") as folder:
        progress("exporting and checking")
        contents, agreement = _made(ready, target, normalize, Path(folder))
    progress("writing")
    write(target, contents)
    sizes = " and ".join(map(str, BATCHES))
    return Exported(
        target.file_format,
        target.files,
        _takes(target.file_format, normalize),
        f"{CHECKED_WITH[target.file_format]}, on random images in batches of {sizes}",
        agreement.difference,
        agreement.logit,
        agreement.rounding,
        _loading(target),
    )


def _copy(model: Model) -> Model:
    """The same on the CPU, in single precision and for evaluation, without an auxiliary head."""
    network = network_of(model.card)
    network.load_state_dict(weights_of(model.network))
    return Model(network, model.card).eval()


def _made(
    model: Model, target: Target, normalize: bool, folder: Path
) -> tuple[tuple[bytes, ...], Agreement]:
    """The contents of the files, checked, and how well they agree."""
    batches = reference_batches(model)
    save_model(folder, model.network, model.card)
    weights, card = (folder / WEIGHTS).read_bytes(), (folder / CARD).read_bytes()
    match target.file_format:
        case "safetensors":
            again = load(folder)
            agreement = compare(
                batches, lambda batch: again(batch.pixels).detach(), "the loaded model"
            )
            return (weights, card), agreement
        case "onnx" | "pt2":
            make = as_onnx if target.file_format == "onnx" else as_program
            metadata = describe(model, card.decode(), normalize)
            data, agreement = make(model, normalize, metadata, batches)
            return (data,), agreement
        case "python":
            source, agreement = as_python(model, target.entry.stem, weights, batches, folder)
            return (weights, source), agreement


def _takes(file_format: Format, normalize: bool) -> str:
    if file_format == "safetensors":
        return "weights by name; the card has the cells, normalisation and class names"
    if file_format == "python":
        return "normalised images, as its normalize(pixels) makes them"
    return INPUT[normalize]


def _loading(target: Target) -> tuple[str, str]:
    path, module = repr(str(target.entry)), target.entry.stem
    weights = repr(str(target.files[0]))
    lines: dict[Format, tuple[str, str]] = {
        "safetensors": (
            f"model = prnas.load({path})",
            f"weights = safetensors.torch.load_file({weights})  # without prnas",
        ),
        "onnx": (
            f"session = onnxruntime.InferenceSession({path})",
            '(logits,) = session.run(None, {"images": images})',
        ),
        "pt2": (f"network = torch.export.load({path}).module()", "logits = network(images)"),
        "python": (f"from {module} import load, normalize", "logits = load()(normalize(pixels))"),
    }
    return lines[target.file_format]
