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


def read(path: str | Path) -> Tensor:
    """An image file as pixels from 0 to 1, 1 x C x H x W; Pillow reads it.

    Upright by its EXIF tag, transparent parts on white, 16 bits cut to 8. The middle,
    as much as has the network's proportions, is resized with Pillow's bilinear filter.
    Colours are red, green, blue; grey is 0.299 red + 0.587 green + 0.114 blue.
    """
    from PIL import Image, ImageOps

    formats = ["BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP"]
    channels, rows, columns = INPUT_SHAPE
    with Image.open(path, formats=formats) as image:
        deep = image.mode == "I" and image.format in ("PNG", "PPM")
        if image.mode in ("I", "F") and not deep:
            raise ValueError(f"{path}: 32-bit pixels have no fixed range")
        side = 2 * max(rows, columns)
        image.draft(None, (side, side))  # large JPEGs decode at a fraction
        image = ImageOps.exif_transpose(image)
        if image.mode.startswith("I"):  # 16 bits
            numbers = bytearray(image.convert("I").tobytes())
            values = torch.frombuffer(numbers, dtype=torch.int32) >> 8
            image = Image.frombytes("L", image.size, bytes(values.tolist()))
        opaque = channels == 1 and image.mode in ("1", "L")
        if image.has_transparency_data and not opaque:
            white = Image.new("RGBA", image.size, "white")
            image = Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")
        image = image.convert("L" if channels == 1 else "RGB")
    width, height = image.size
    if (height, width) != (rows, columns):
        if width * rows <= height * columns:
            across, down = float(width), width * rows / columns
        else:
            across, down = height * columns / rows, float(height)
        left, top = (width - across) / 2, (height - down) / 2
        box = (left, top, min(left + across, width), min(top + down, height))
        image = image.resize((columns, rows), Image.Resampling.BILINEAR, box)
    pixels = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
    return pixels.view(1, rows, columns, channels).permute(0, 3, 1, 2) / 255


def predict(path: str | Path, net: Network | None = None) -> list[tuple[str, float]]:
    """The classes of an image file with their probabilities, the most probable first.

    Without a network, the weights are loaded each time.
    """
    network = load() if net is None else net
    with torch.inference_mode():
        logits = network(normalize(read(path)))[0].double()
    order = logits.argsort(descending=True, stable=True).tolist()
    probabilities = logits.softmax(0).tolist()
    return [(CLASS_NAMES[index], probabilities[index]) for index in order]


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
