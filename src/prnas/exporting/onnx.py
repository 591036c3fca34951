"""ONNX: written by PyTorch's exporter, and run by onnxruntime before it is called done."""

# pyright: reportMissingTypeStubs=false

import importlib
from typing import Any

import torch
from torch import Tensor

from prnas.exporting.torch_program import SHAPES, first_line, quiet, trace
from prnas.exporting.verify import Agreement, ReferenceBatch, compare
from prnas.io.errors import UserError
from prnas.io.extras import EXTRAS, how_to_install
from prnas.models.model import Model

MOST_BYTES = 2_000_000_000  # largest file: protobuf's limit is 2 GiB


def check_onnx() -> None:
    """A `UserError` if a package is missing."""
    missing: list[str] = []
    for name in EXTRAS["onnx"].packages:
        try:
            importlib.import_module(name)
        except ImportError:
            missing.append(name)
    if missing:
        raise UserError(
            f"ONNX needs {', '.join(missing)}, which cannot be imported: "
            f"{how_to_install('onnx', missing)}"
        )


def as_onnx(
    model: Model, normalize: bool, metadata: dict[str, str], batches: list[ReferenceBatch]
) -> tuple[bytes, Agreement]:
    """The file, and how far its logits are from the model's; a `UserError` if too far."""
    size = sum(tensor.nbytes for tensor in model.state_dict().values())
    if size > MOST_BYTES:
        raise UserError(f"an ONNX file holds 2 GB at most; the weights have {size / 1e9:.1f} GB")
    try:
        data = _to_onnx(model, normalize, metadata)
        session = _session(data)
    except UserError:
        raise
    except Exception as error:
        reason = first_line(error)
        raise UserError(f"this network cannot be exported to ONNX: {reason}") from error

    def compute(batch: ReferenceBatch) -> Tensor:
        images = batch.inputs(normalize).numpy()
        return torch.from_numpy(session.run(["logits"], {"images": images})[0])

    return data, compare(batches, compute, "onnxruntime")


def _to_onnx(model: Model, normalize: bool, metadata: dict[str, str]) -> bytes:
    import onnx

    with quiet():
        program = torch.onnx.export(
            trace(model, normalize),
            dynamo=True,
            dynamic_shapes=SHAPES,  # again, for the name of the dimension
            verbose=False,
            input_names=["images"],
            output_names=["logits"],
        )
    assert program is not None
    proto: Any = program.model_proto
    # Notes for the exporter's own developers, with names of files on this machine.
    for node in proto.graph.node:
        del node.metadata_props[:]
    for value in (*proto.graph.value_info, *proto.graph.input, *proto.graph.output):
        del value.metadata_props[:]
    onnx.helper.set_model_props(proto, metadata)
    onnx.checker.check_model(proto)
    return proto.SerializeToString()


def _session(data: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # Errors only.
    options.intra_op_num_threads = torch.get_num_threads()
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
