"""The model card of the best network, for people: Markdown, in which no name is markup."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import prnas
from prnas.fitting.folder import FitState
from prnas.fitting.names import EXPORTS, PAGE
from prnas.fitting.verdict import in_percent
from prnas.models.card import ModelCard
from prnas.models.confusions import confusions

MOST_CLASSES, MOST_CONFUSIONS = 200, 10
TRAINED_WITH = ("augment", "mixup", "classes")  # Reasons of a plan that tell of the images.


def model_card(
    state: FitState, results: Mapping[str, Any], card: ModelCard, exported: Sequence[str] | Any
) -> str:
    best = next(network for network in results["networks"] if network["name"] == results["best"])
    sections = [
        _head(state, results, best),
        _data(state),
        _reading(card),
        _figures(results),
        _confusions(results),
        _use(card, list(exported)),
        _limits(state, best),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def safe(text: str, most: int = 200) -> str:
    """A name as Markdown shows it: on one line, and without any power over what is around it."""
    shown = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text[:most])
    shown = re.sub(r"([\\`*_\[\]<>|~&$])", r"\\\1", shown)
    return re.sub(r"^(\s*\d*)([#+\-.)=])", r"\1\\\2", shown)


def _head(state: FitState, results: Mapping[str, Any], best: Mapping[str, Any]) -> list[str]:
    size = f"{best['parameters']:,} parameters, {best['macs']:,} multiply-accumulates for an image"
    threads = state.request.threads or 1
    how = f"a batch of 1, {threads} thread{'' if threads == 1 else 's'}"
    latency = f"{best['latency']:.2g} ms for one image where it was trained ({how})"
    return [
        "# Model card",
        "",
        f"A classifier of images, made by prnas {prnas.__version__} within "
        f"{state.request.minutes:g} minutes (seed {state.request.seed}).",
        "",
        f"- Network: {safe(best['label'])}",
        f"- Size: {size}",
        f"- Latency: {latency}",
        "",
        *(f"{safe(text, 2000)}\n" for text in results["sentences"]),
    ]


def _data(state: FitState) -> list[str]:
    return [
        "## Data",
        "",
        f"- Set: {safe(state.request.data)}",
        *(f"- {safe(text, 2000)}" for text in state.look),
        *(
            f"- Training, {what}: {safe(why, 2000)}"
            for what, why in state.plan.reasons
            if what in TRAINED_WITH
        ),
    ]


def _reading(card: ModelCard) -> list[str]:
    channels, height, width = card.input_shape
    no_file = {"pixels": f"arrays of {channels} channels, which no image file has; from 0 to 1"}
    steps = card.reading or no_file
    names = card.class_names
    listed = [f"{index}. {safe(name)}" for index, name in enumerate(names[:MOST_CLASSES])]
    more = len(names) - len(listed)
    return [
        "## From a file to pixels",
        "",
        *(f"- {what.capitalize()}: {how}" for what, how in steps.items()),
        f"- Mean: {list(card.mean)}; std: {list(card.std)}",
        "",
        f"The input is a batch: n x {channels} x {height} x {width}. The output is logits; their "
        "softmax gives probabilities. The classes, from 0:",
        "",
        *listed,
        *([f"… and {more:,} more; `model/model.json` has all of them."] if more else []),
    ]


def _figures(results: Mapping[str, Any]) -> list[str]:
    lines = [
        "## Test",
        "",
        "On held-out images that neither trained nor chose anything; 95 % intervals after Wilson. "
        "The validation images chose the epoch, and the best network.",
        "",
        "| network | test accuracy | interval | validation | parameters | ms | epochs |",
        "|---|---|---|---|---|---|---|",
    ]
    for network in results["networks"]:
        low, high = network["interval_95"]
        mark = " (the best)" if network["name"] == results["best"] else ""
        cells = [
            f"{safe(network['label'])}{mark}",
            f"{in_percent(network['accuracy'])} ({network['correct']:,} of {network['images']:,})",
            f"{in_percent(low)} to {in_percent(high)}",
            in_percent(network["validation"]),
            f"{network['parameters']:,}",
            f"{network['latency']:.2g}",
            f"{network['epochs']} (best: {network['kept_epoch']})",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    error = results["calibration"]["ece"]
    return [*lines, "", f"Expected calibration error of the best: {100 * error:.1f} %."]


def _confusions(results: Mapping[str, Any]) -> list[str]:
    names, matrix = results["class_names"], results["confusion"]
    most_confused = confusions(tuple(map(tuple, matrix)), MOST_CONFUSIONS)
    if not most_confused:
        return ["## Confusions", "", "No test image was taken for another class."]
    headings = ["| class | taken for | times | of its images |", "|---|---|---|---|"]
    lines = ["## Confusions", "", *headings]
    for confusion in most_confused:
        total = sum(matrix[confusion.true])
        row = [
            safe(names[confusion.true]),
            safe(names[confusion.predicted]),
            f"{confusion.count}",
            f"{total}",
        ]
        lines.append(f"| {' | '.join(row)} |")
    return lines


def _use(card: ModelCard, files: Sequence[str]) -> list[str]:
    uses = {
        "net.py": "one file that needs only PyTorch (and its weights beside it): "
        "`from net import predict`, then `predict('picture.jpg')`, which needs Pillow",
        "net.onnx": "for onnxruntime and others; takes pixels from 0 to 1: the normalisation is "
        "within it",
    }
    return [
        "## Use",
        "",
        "- `prnas predict FOLDER picture.jpg`, with the folder of this card",
        *(f"- `{EXPORTS}/{name}`: {uses[name]}" for name in files if name in uses),
        f"- `{PAGE}`: the report",
    ]


def _limits(state: FitState, best: Mapping[str, Any]) -> list[str]:
    return [
        "## What it was not tested for",
        "",
        f"- Images of other origin than the {best['images']:,} of the test part: other cameras, "
        "lighting, places or times.",
        "- Images that show none of the classes, or several of them: it always names one.",
        "- Images that were changed to mislead it.",
        "- Fairness: whether it errs more often for some groups of people or things.",
        f"- Other trainings: the figures are of one seed ({state.request.seed}); the intervals "
        "tell how far the test images are a chance, not how far the training is.",
    ]
