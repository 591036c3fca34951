"""The Python file with its weights, tried in a process that has neither prnas nor safetensors."""

import json
import os
import subprocess
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from prnas.exporting.python_source import python_source
from prnas.exporting.verify import Agreement, ReferenceBatch, compare
from prnas.io.errors import UserError
from prnas.models.model import Model

RAMP_LOGITS = 5
TRIAL = """
import sys
sys.modules["prnas"] = sys.modules["safetensors"] = None
sys.path.insert(0, sys.argv[1])
import importlib, json, torch
file = importlib.import_module(sys.argv[2])
network = file.load()
batches = file.read_safetensors(sys.argv[3])
with torch.inference_mode():
    logits = {k: network(file.normalize(pixels)).tolist() for k, pixels in batches.items()}
print(json.dumps(logits))
"""


def as_python(
    model: Model, name: str, weights: bytes, batches: list[ReferenceBatch], folder: Path
) -> tuple[bytes, Agreement]:
    """The file `name.py`, and how far its logits are from the model's; tried in `folder`."""
    source = python_source(model.card, name, _ramp_logits(model)).encode()
    (folder / f"{name}.py").write_bytes(source)
    (folder / f"{name}.safetensors").write_bytes(weights)
    logits = _run(folder, name, batches)
    return source, compare(batches, lambda batch: logits[len(batch.pixels)], f"{name}.py")


def _ramp_logits(model: Model) -> list[float]:
    shape = torch.Size(model.card.input_shape)
    with torch.inference_mode():
        logits = model(torch.linspace(0, 1, shape.numel()).view(1, *shape))
    # Nine digits tell all numbers of single precision apart.
    return [float(f"{logit:.9g}") for logit in logits[0, :RAMP_LOGITS].tolist()]


def _run(folder: Path, name: str, batches: list[ReferenceBatch]) -> dict[int, Tensor]:
    """The logits that the file gives, by the size of the batch."""
    images = folder / "0.safetensors"  # No module can have this name.
    save_file({str(len(batch.pixels)): batch.pixels for batch in batches}, images)
    command = [sys.executable, "-c", TRIAL, str(folder), name, str(images)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    # Python itself, on a file that was just written here.
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise UserError(f"the check failed, nothing was written: {name}.py ends with {last:.200}")
    printed = json.loads(done.stdout.strip().rpartition(b"\n")[2])
    return {int(size): torch.tensor(logits) for size, logits in printed.items()}
