"""A search's training written down plainly, without the engine: what it must be equal to."""

from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prnas.config.search import SearchConfig
from prnas.data.augment import Augmentation
from prnas.data.dataset import load, normalization
from prnas.data.streams import Stream
from prnas.nets.supernet import Supernet, build_supernet
from prnas.runs.preparation import cosine, seed_for, torch_generator
from prnas.searching.search import split_halves
from prnas.space.pools import Pools


def first_cycle(config: SearchConfig, batch: int, world: int = 1) -> Supernet:
    """The supernet after the first cycle's training, with `world` processes of a fixed batch."""
    data = load(config.data, torch.device("cpu"))
    indices = split_halves(config, data)
    used = torch.cat(list(indices.values())).sort().values
    augment = Augmentation(
        config.data.flip,
        config.data.crop_padding,
        config.data.cutout,
        normalization(data.train, used),
    )
    streams = {
        part: Stream(data.train, own, seed_for(config.seed, "stream", part))
        for part, own in indices.items()
    }
    generators = {part: torch_generator(config.seed, f"augment {part}") for part in indices}
    net = build_supernet(
        Pools.initial(config.network.nodes, config.space.initial_pool),
        config.network.channels,
        config.network.cells,
        len(data.class_names),
        input_channels=data.shape[0],
        generator=torch_generator(config.seed, "weights"),
    )
    net.train()
    w, a = config.weights, config.architecture
    optimizers = {
        "weights": torch.optim.SGD(
            net.weight_parameters(), w.lr, w.momentum, weight_decay=w.weight_decay
        ),
        "architecture": torch.optim.Adam(
            net.architecture_parameters(),
            _architecture_rate(config, len(indices["weights"]), batch * world),
            a.betas,
            weight_decay=a.weight_decay,
        ),
    }
    cycle = config.schedule.cycles[0]
    seen = 0
    for epoch in range(cycle.epochs):
        for group in optimizers["weights"].param_groups:
            group["lr"] = cosine(w.lr, w.lr_min, epoch, cycle.epochs)
        while seen < (epoch + 1) * len(indices["weights"]):
            parts = ["weights"] if epoch < cycle.grace_epochs else ["architecture", "weights"]
            # Processes differ by the running statistics of their own images, until a step ends.
            nets = [net, *(deepcopy(net) for _ in range(world - 1))]
            for part in parts:
                images, labels = streams[part].next(batch * world)
                images = augment(images, generators[part])
                gradients = [
                    _gradients(replica, images[cut], labels[cut])
                    for replica, cut in zip(nets, _cuts(batch, world), strict=True)
                ]
                chosen = {id(p) for p in getattr(net, _NAMES[part])()}
                for index, parameter in enumerate(net.parameters()):
                    parameter.grad = None
                    if id(parameter) in chosen:
                        parameter.grad = torch.stack(
                            [gradient[index] for gradient in gradients]
                        ).mean(0)
                norm = (w if part == "weights" else a).gradient_norm
                nn.utils.clip_grad_norm_(getattr(net, _NAMES[part])(), norm)
                optimizers[part].step()
                with torch.no_grad():
                    for other in nets[1:]:
                        for mine, his in zip(other.parameters(), net.parameters(), strict=True):
                            mine.copy_(his)
            _average_buffers(nets)
            seen += batch * world
    return net


def _architecture_rate(config: SearchConfig, images: int, batch: int) -> float:
    """If it is not given, the travel over the number of architecture steps, which are counted."""
    if config.architecture.lr != "auto":
        return config.architecture.lr
    cycle, seen, steps = config.schedule.cycles[0], 0, 0
    for epoch in range(cycle.epochs):
        while seen < (epoch + 1) * images:
            seen += batch
            steps += epoch >= cycle.grace_epochs
    return config.architecture.travel / steps


_NAMES = {"weights": "weight_parameters", "architecture": "architecture_parameters"}


def _cuts(batch: int, world: int) -> list[slice]:
    return [slice(rank * batch, (rank + 1) * batch) for rank in range(world)]


def _gradients(net: Supernet, images: Tensor, labels: Tensor) -> list[Tensor]:
    for parameter in net.parameters():
        parameter.grad = None
    F.cross_entropy(net(images), labels).backward()
    return [
        torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.clone()
        for parameter in net.parameters()
    ]


@torch.no_grad()
def _average_buffers(nets: list[Supernet]) -> None:
    for buffers in zip(*(net.buffers() for net in nets), strict=True):
        if buffers[0].is_floating_point():
            buffers[0].copy_(sum(buffers) / len(buffers))
