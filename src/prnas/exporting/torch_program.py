"""A `torch.export` program: the graph and its weights, loaded by PyTorch alone."""

import io
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.export import Dim, ExportedProgram

from prnas.exporting.verify import Agreement, ReferenceBatch, compare
from prnas.io.errors import UserError
from prnas.models.model import Model

SHAPES = ({0: Dim("batch", min=1)},)
INPUT = {
    True: "pixels from 0 to 1",
    False: "normalised images: (pixels from 0 to 1 - mean) / std, for each channel",
}


def as_program(
    model: Model, normalize: bool, metadata: dict[str, str], batches: list[ReferenceBatch]
) -> tuple[bytes, Agreement]:
    """The file, and how far its logits are from the model's; a `UserError` if too far."""
    buffer = io.BytesIO()
    with quiet():
        torch.export.save(trace(model, normalize), buffer, extra_files=metadata)
        buffer.seek(0)
        program = torch.export.load(buffer).module()
        with torch.inference_mode():
            agreement = compare(
                batches, lambda batch: program(batch.inputs(normalize)), "the program"
            )
    return buffer.getvalue(), agreement


def trace(model: Model, normalize: bool) -> ExportedProgram:
    """The model's graph, for batches of any size; without the paths of this machine."""
    module: nn.Module = model if normalize else model.network
    images = torch.zeros(2, *model.card.input_shape)
    try:
        program = torch.export.export(module, (images,), dynamic_shapes=SHAPES)
    except Exception as error:
        raise UserError(f"PyTorch cannot export this network: {first_line(error)}") from error
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)
    return program


def describe(model: Model, card: str, normalize: bool) -> dict[str, str]:
    """Metadata of a graph: names of classes, normalisation, and the model's card."""
    return {
        "class_names": json.dumps(model.class_names, ensure_ascii=False),
        "mean": json.dumps(model.card.mean),
        "std": json.dumps(model.card.std),
        "input": INPUT[normalize],
        **({"reading": json.dumps(model.card.reading)} if model.card.reading else {}),
        "model.json": card,
    }


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the exporters' notes on their own progress and future."""
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logger.setLevel(level)


def first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200] or type(error).__name__
