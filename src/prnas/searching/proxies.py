"""Zero-cost proxies of cells in a search: as scores, or recorded beside parameters and MACs."""

import math
from typing import Any, get_args

import torch
from torch import Tensor

from prnas.config.search import SearchConfig
from prnas.config.searcher import Proxy
from prnas.data.augment import plain
from prnas.data.dataset import DataSet, Normalization
from prnas.nets.plain_network import network_of
from prnas.nets.proxies import nwot, synflow
from prnas.nets.weights import construct
from prnas.runs.preparation import torch_generator
from prnas.space.genotype import Genotype
from prnas.space.network_size import network_size

WORST = -1000.0  # stands for minus infinity: a score is finite
NAMES: tuple[Proxy, ...] = get_args(Proxy)


class Proxies:
    """Zero-cost proxies of networks at their first weights, which are drawn alike for all cells.

    nwot looks at some images of the architecture half, the same for all cells.
    """

    def __init__(
        self, config: SearchConfig, data: DataSet, half: Tensor, normalization: Normalization
    ) -> None:
        self._config, self._shape, self._classes = config, data.shape, data.num_classes
        order = torch.randperm(len(half), generator=torch_generator(config.seed, "proxies"))
        few = half[order[: config.searcher.proxy.images]]
        self._images = plain(data.train.fetch(few), normalization)
        self.num_images = len(few)

    def value(self, genotype: Genotype, proxy: Proxy) -> float:
        """One of them; `WORST` instead of minus infinity."""
        settings = self._config.searcher.proxy
        channels, height, width = self._shape
        size = (genotype, settings.channels, settings.cells, self._classes)
        options: dict[str, Any] = {"output": self._config.network.output}
        options["input_channels"] = channels
        if proxy in ("params", "macs"):
            total = network_size(*size, image_size=(height, width), **options)
            return float(total.parameters if proxy == "params" else total.macs)
        generator = torch_generator(self._config.seed, "proxy weights")
        network = construct(lambda: network_of(*size, **options), generator)
        network = network.to(self._images.device)
        if proxy == "nwot":
            value = nwot(network, self._images)
        else:
            value = synflow(network, (channels, height, width))
        return value if math.isfinite(value) else WORST

    def all(self, genotype: Genotype) -> dict[str, float]:
        """All of them, by name."""
        return {name: self.value(genotype, name) for name in NAMES}
