"""The text of an exported Python file, in pieces: `python_source` joins those that are needed.

Lines have at most 88 columns, and two blank lines go between pieces. `$name` is filled in.
"""

DOCSTRING = '''\
"""$title

$about

    from $name import load, normalize

    network = load()
    logits = network(normalize(pixels))  # pixels from 0 to 1, n x $shape

$files
"""
'''
ABOUT = "$origin Made by prnas $version. PyTorch is all that it needs:"
FILES = (
    "The weights are in $name.safetensors, beside this file; `python $name.py` tries them. "
    "Drop-path and the auxiliary head, which only training needs, are left out."
)

LEGEND = """\
# The two cells. A line is a node: it adds up two operations, each on the state that is
# given with it. States 0 and 1 are the outputs of the two cells before; the nodes
# follow. In a reduction cell, operations on states 0 and 1 have stride 2. What the
# names mean is in OPERATIONS, below."""

RELU_CONV_BN = '''\
class ReluConvBN(nn.Module):
    """ReLU, 1 x 1 convolution, BN: brings a cell's input to its number of channels."""

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, 1, bias=False)
        self.bn = nn.BatchNorm2d(c_out)

    def forward(self, x: Tensor) -> Tensor:
        return self.bn(self.conv(F.relu(x)))
'''

FACTORIZED_REDUCTION = '''\
class FactorizedReduction(nn.Module):
    """ReLU, two 1 x 1 convolutions of stride 2, the second a pixel further, BN."""

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__()
        half = c_out // 2
        self.first = nn.Conv2d(c_in, half, 1, stride=2, bias=False)
        self.second = nn.Conv2d(c_in, c_out - half, 1, stride=2, bias=False)
        self.bn = nn.BatchNorm2d(c_out)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(x)
        # From the second row and column on; zeros make up for them at the end.
        shifted = F.pad(x, (-1, 1, -1, 1))
        return self.bn(torch.cat([self.first(x), self.second(shifted)], dim=1))
'''

SEPARABLE_CONV = '''\
class SeparableConv(nn.Module):
    """ReLU, depthwise convolution (dilated), pointwise 1 x 1 convolution, BN."""

    def __init__(
        self, c_in: int, c_out: int, kernel: int, stride: int, dilation: int
    ) -> None:
        super().__init__()
        padding = dilation * (kernel - 1) // 2
        self.depthwise = nn.Conv2d(
            c_in, c_in, kernel, stride, padding, dilation, groups=c_in, bias=False
        )
        self.pointwise = nn.Conv2d(c_in, c_out, 1, bias=False)
        self.bn = nn.BatchNorm2d(c_out)

    def forward(self, x: Tensor) -> Tensor:
        return self.bn(self.pointwise(self.depthwise(F.relu(x))))


def conv(
    channels: int,
    stride: int,
    kernel: int,
    dilation: int = 1,
    expansions: Sequence[int] = (),
) -> nn.Module:
    """A chain of separable convolutions, one more than there are expansions.

    Between them are `expansions` times as many channels. The first has the stride.
    """
    widths = [channels, *(channels * times for times in expansions), channels]
    return nn.Sequential(
        *(
            SeparableConv(c_in, c_out, kernel, stride if i == 0 else 1, dilation)
            for i, (c_in, c_out) in enumerate(pairwise(widths))
        )
    )
'''

CONV_1X7_7X1 = '''\
class Conv1x7x1(nn.Module):
    """ReLU, 1 x 7 and 7 x 1 convolutions, BN."""

    def __init__(self, channels: int, stride: int) -> None:
        super().__init__()
        self.row = nn.Conv2d(
            channels, channels, (1, 7), (1, stride), (0, 3), bias=False
        )
        self.column = nn.Conv2d(
            channels, channels, (7, 1), (stride, 1), (3, 0), bias=False
        )
        self.bn = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.bn(self.column(self.row(F.relu(x))))
'''

OPERATIONS_COMMENT = "Each makes a module, from the number of channels and the stride."

MAX_POOL = """\
def max_pool(channels: int, stride: int, kernel: int) -> nn.Module:
    return nn.MaxPool2d(kernel, stride, padding=kernel // 2)
"""

AVG_POOL = """\
def avg_pool(channels: int, stride: int, kernel: int) -> nn.Module:
    return nn.AvgPool2d(kernel, stride, kernel // 2, count_include_pad=False)
"""

SKIP = """\
def skip(channels: int, stride: int) -> nn.Module:
    return nn.Identity() if stride == 1 else FactorizedReduction(channels, channels)
"""

CELL = '''\
class Cell(nn.Module):
    """The nodes of one of the tables above, on the outputs of the two cells before."""

    def __init__(
        self,
        reduces: bool,
        after_reduction: bool,
        c_before_last: int,
        c_last: int,
        channels: int,
    ) -> None:
        super().__init__()
        nodes = REDUCTION if reduces else NORMAL
        self.output = REDUCTION_OUTPUT if reduces else NORMAL_OUTPUT
        # After a reduction, the older of the two inputs is still twice as large.
        first = FactorizedReduction if after_reduction else ReluConvBN
        self.preprocess = nn.ModuleList(
            [first(c_before_last, channels), ReluConvBN(c_last, channels)]
        )
        self.inputs = [[state for _, state in node] for node in nodes.values()]
        self.operations = nn.ModuleList(
            nn.ModuleList(
                OPERATIONS[name](channels, 2 if reduces and state < 2 else 1)
                for name, state in node
            )
            for node in nodes.values()
        )

    def forward(self, before_last: Tensor, last: Tensor) -> Tensor:
        states = [self.preprocess[0](before_last), self.preprocess[1](last)]
        for (i, j), (first, second) in zip(self.inputs, self.operations):
            states.append(first(states[i]) + second(states[j]))
        return $joined
'''
JOINED = {
    "concat": "torch.cat([states[i] for i in self.output], dim=1)",
    "mean": "torch.stack([states[i] for i in self.output]).mean(dim=0)",
}
OUTPUT_COMMENT = {
    "concat": "the states that are concatenated",
    "mean": "the states whose mean is the output",
}
OUTPUT_CHANNELS = {"concat": "channels * len(cell.output)", "mean": "channels"}

CIFAR_STEM = '''\
class Stem(nn.Module):
    """A 3 x 3 convolution and BN: the first cell reads its output twice."""

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(c_out)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        x = self.bn(self.conv(images))
        return x, x
'''

IMAGENET_STEM = '''\
class Stem(nn.Module):
    """Convolutions of stride 2: the first cell reads after two and after three."""

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__()
        self.quarter = nn.Sequential(
            nn.Conv2d(c_in, c_out // 2, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(c_out // 2),
            nn.ReLU(),
            nn.Conv2d(c_out // 2, c_out, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(c_out),
        )
        self.eighth = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(c_out, c_out, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(c_out),
        )

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        quarter = self.quarter(images)
        return quarter, self.eighth(quarter)
'''
STEMS = {"cifar": CIFAR_STEM, "imagenet": IMAGENET_STEM}
STEM_CHANNELS = {"cifar": "3 * channels", "imagenet": "channels"}
FIRST_AFTER_REDUCTION = {
    "cifar": "after_reduction = False",
    "imagenet": "after_reduction = True  # the stem's outputs differ in size",
}

NETWORK = '''\
class Network(nn.Module):
    """Normalised images, n x C x H x W of any size, to logits, n x classes."""

    def __init__(
        self,
        channels: int = CHANNELS,
        cells: int = CELLS,
        classes: int = len(CLASS_NAMES),
        input_channels: int = INPUT_SHAPE[0],
    ) -> None:
        super().__init__()
        before_last = last = $stem_channels
        $after_reduction
        self.stem = Stem(input_channels, last)
        self.cells = nn.ModuleList()
        for place in range(cells):
            reduces = place in (cells // 3, 2 * cells // 3)
            if reduces:
                channels *= 2
            cell = Cell(reduces, after_reduction, before_last, last, channels)
            self.cells.append(cell)
            before_last, last = last, $output_channels
            after_reduction = reduces
        self.classifier = nn.Linear(last, classes)

    def forward(self, images: Tensor) -> Tensor:
        before_last, last = self.stem(images)
        for cell in self.cells:
            before_last, last = last, cell(before_last, last)
        return self.classifier(last.mean(dim=(2, 3)))
'''

USE = '''\
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
    tensors = {}
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
'''

MAIN = """\
if __name__ == "__main__":
    network = load()
    ramp = torch.linspace(0, 1, torch.Size(INPUT_SHAPE).numel()).view(1, *INPUT_SHAPE)
    with torch.inference_mode():
        logits = network(normalize(ramp))
    found = logits[0, : len(RAMP_LOGITS)]
    difference = (found - torch.tensor(RAMP_LOGITS)).abs().max().item()
    print(f"{sum(one.numel() for one in network.parameters()):,} parameters")
    print(f"class of a ramp from dark to light: {CLASS_NAMES[logits.argmax()]}")
    print(f"its logits differ from those at the export by at most {difference:.1g}")
"""
RAMP_COMMENT = "The first logits for an image that goes evenly from 0 to 1: to try the file."
