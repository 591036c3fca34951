"""The functions of every exported Python file, in at most 88 columns.

The constants and the class are stand-ins for those that the file has of its own.
"""

import json
from pathlib import Path

import torch
from torch import Tensor, nn

CLASS_NAMES: list[str] = []
INPUT_SHAPE: list[int] = []
MEAN: list[float] = []
STD: list[float] = []
RAMP_LOGITS: list[float] = []


class Network(nn.Module): ...


def normalize(pixels: Tensor) -> Tensor:
    """Pixels from 0 to 1, n x C x H x W, as the network was trained on them."""
    mean, std = torch.tensor([MEAN, STD], device=pixels.device)[:, :, None, None]
    return (pixels - mean) / std


def read_safetensors(path: str | Path) -> dict[str, Tensor]:
    """A file's tensors: the length of the header, the header in JSON, the numbers."""
    data = bytearray(Path(path).read_bytes())
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    dtypes = {"F32": torch.float32, "I64": torch.int64}
    tensors: dict[str, Tensor] = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        numbers = data[start + begin : start + end]
        tensor = torch.frombuffer(numbers, dtype=dtypes[entry["dtype"]])
        tensors[name] = tensor.view(entry["shape"])
    return tensors


def load(weights: str | Path | None = None) -> Network:
    """The trained network, in evaluation mode; `weights`: if they lie elsewhere."""
    network = Network()
    path = weights or Path(__file__).with_suffix(".safetensors")
    network.load_state_dict(read_safetensors(path))
    return network.eval()


def main() -> None:
    """Try the file: its logits for the ramp are those that the export saw."""
    network = load()
    ramp = torch.linspace(0, 1, torch.Size(INPUT_SHAPE).numel()).view(1, *INPUT_SHAPE)
    with torch.inference_mode():
        logits = network(normalize(ramp))[0]
    expected = torch.tensor(RAMP_LOGITS)
    difference = (logits[: len(expected)] - expected).abs().max().item()
    print(f"{sum(weight.numel() for weight in network.parameters()):,} parameters")
    print(f"class of a ramp from dark to light: {CLASS_NAMES[logits.argmax()]}")
    print(f"its logits differ from those at the export by at most {difference:.1g}")
