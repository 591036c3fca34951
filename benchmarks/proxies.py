"""How well zero-cost proxies agree with the truth of NAS-Bench-201, beside parameters and MACs.

    python -m benchmarks.proxies --cells 200 --data cifar10     # or --data digits: no download

Kendall's tau-b between what is known of random cells before any training and their true test
accuracy after 200 epochs on CIFAR-10, with a bootstrap interval over cells; and the truth about the
cell that is best by it. Networks are those of the table: 15 cells, 16 channels.
"""

import argparse
import math
from random import Random

import torch
from torch import Tensor

from benchmarks.truth import tau_of
from prnas.config.sections import ImagesConfig
from prnas.data.augment import plain
from prnas.data.dataset import load, normalization
from prnas.io.errors import FormatError, UserError
from prnas.nets.plain_network import network_of
from prnas.nets.proxies import nwot, synflow
from prnas.nets.weights import construct
from prnas.space.nasbench201 import table
from prnas.space.nasbench201.cells import NUM_CELLS, genotype_of, string_of
from prnas.space.nasbench201.truth import CELLS, CHANNELS
from prnas.space.network_size import network_size


def known_of(index: int, images: Tensor, seed: int, channels: int, cells: int) -> dict[str, float]:
    """What can be told of a cell before any training."""
    genotype = genotype_of(index)
    generator = torch.Generator().manual_seed(seed)
    options = {"output": "last", "input_channels": images.shape[1]}
    network = construct(
        lambda: network_of(genotype, channels, cells, 10, **options),  # pyright: ignore
        generator,
    )
    size = network_size(genotype, CHANNELS, CELLS, 10, output="last")
    rows, columns = images.shape[2:]
    return {
        "nwot": nwot(network, images),
        "synflow": synflow(network, (images.shape[1], rows, columns)),
        "parameters": size.parameters,
        "MACs": size.macs,
    }


def finite(values: list[float]) -> list[float]:
    """What is minus infinity ranks last."""
    least = min((value for value in values if math.isfinite(value)), default=0.0)
    return [value if math.isfinite(value) else least - 1 for value in values]


def main() -> None:
    text = __doc__ or ""
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of cells, images and weights")
    parser.add_argument("--data", default="cifar10")
    parser.add_argument("--images", type=int, default=64, help="that nwot looks at")
    parser.add_argument("--channels", type=int, default=CHANNELS)
    parser.add_argument("--depth", type=int, default=CELLS, help="cells of a network")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    try:
        data = load(ImagesConfig(name=options.data), torch.device("cpu"))
    except (UserError, FormatError) as error:
        raise SystemExit(str(error)) from None
    generator = torch.Generator().manual_seed(options.seed)
    every = torch.randperm(len(data.train), generator=generator)
    images = plain(data.train.fetch(every[: options.images]), normalization(data.train, every))
    indices = Random(options.seed).sample(range(NUM_CELLS), options.cells)
    proxies = [
        known_of(index, images, options.seed, options.channels, options.depth) for index in indices
    ]
    truth = [table.column("e200_test_c10")[index] / table.UNITS for index in indices]
    for name in proxies[0]:
        values = finite([values_of_cell[name] for values_of_cell in proxies])
        best = max(range(len(values)), key=values.__getitem__)
        said = f"best by it: {truth[best]:.2f} %, {string_of(indices[best])}"
        print(f"{name:>10}  tau {tau_of(values, truth)}  {said}", flush=True)
    print(f"{len(indices)} cells; the best has {max(truth):.2f} %, their mean is "
          f"{sum(truth) / len(truth):.2f} %")  # fmt: skip


if __name__ == "__main__":
    main()
