"""Measures a table of latencies: every operation in every place of a final network, on a device.

What is measured takes turns, so that a slow moment of the machine meets all of it alike, and the
median of many turns counts. Networks of random cells are measured beside, to see how far sums of
the table are from the truth.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from statistics import quantiles

import torch
from torch import Tensor

from prnas.models.speed import synchronizer
from prnas.nets import operations
from prnas.nets.network import build
from prnas.nets.weights import construct
from prnas.space.analysis.sampling import random_genotype
from prnas.space.costs import Costs
from prnas.space.final_network import FinalNetwork
from prnas.space.genotype import Genotype
from prnas.space.latency import Check, LatencyFile, LatencyTable, Measured, key
from prnas.space.layer_size import Pixels
from prnas.space.operations import Operation, Skip, Zero
from prnas.space.shape import Output

WARM_UP_CALLS = 3
LEAST_SAMPLE = 200_000  # nanoseconds: shorter calls are timed several at a time
MOST_CALLS = 64  # in a sample
NETWORKS = 3  # Networks of random cells, to compare with the table.

# Operation, channels, pixels that it reads, stride.
SizedOperation = tuple[Operation, int, Pixels, int]


def sized_operations(
    network: FinalNetwork, candidates: Sequence[Operation]
) -> list[SizedOperation]:
    """The operations as such a network can have them, all different; skips are among them."""
    by_key: dict[str, SizedOperation] = {}
    for op in [*candidates, Skip()]:
        for cell in network.around[1]:
            for source in (0, network.shape.inputs):
                pixels, stride = cell.reads(source, network.shape)
                if not isinstance(op, Zero):
                    sized = (op, cell.plan.channels, pixels, stride)
                    by_key.setdefault(key(*sized), sized)
    return list(by_key.values())


def measure_in_turns(
    calls: Sequence[Callable[[], object]],
    repeats: int,
    synchronize: Callable[[], object] = lambda: None,
    clock: Callable[[], int] = time.perf_counter_ns,
    advance: Callable[[], object] = lambda: None,
) -> list[Measured]:
    """Nanoseconds of each call: `repeats` rounds, each with a sample of every call in turn.

    Before them, every call is made some times untimed. `synchronize` waits until the device is
    done; `advance` hears of each sample.
    """

    def timed(call: Callable[[], object], number: int) -> float:
        synchronize()
        start = clock()
        for _ in range(number):
            call()
        synchronize()
        return (clock() - start) / number

    numbers: list[int] = []
    for call in calls:
        timed(call, WARM_UP_CALLS)
        once = timed(call, 1)
        numbers.append(max(1, min(MOST_CALLS, int(LEAST_SAMPLE / max(once, 1)))))
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for call, number, times in zip(calls, numbers, samples, strict=True):
            times.append(timed(call, number))
            advance()
    return [_summary(times) for times in samples]


def _summary(times: Sequence[float]) -> Measured:
    both = [*times, *times] if len(times) == 1 else times  # quartiles need two
    lower, median, upper = quantiles(both, n=4, method="inclusive")
    return Measured(len(times), round(median), round(lower), round(upper))


@torch.inference_mode()
def measure_latencies(
    network: FinalNetwork,
    candidates: Sequence[Operation],
    device: torch.device,
    *,
    output: Output,
    repeats: int,
    seed: int = 0,
    environment: dict[str, str] | None = None,
    advance: Callable[[], object] = lambda: None,
) -> LatencyFile:
    """The latencies of one image in such a network; `output` is that of the search's cells."""
    sized = sized_operations(network, candidates)
    random = Random(seed)
    random.shuffle(sized)  # neighbours in a round are not of one kind
    inputs: dict[tuple[int, Pixels], Tensor] = {}
    calls = [_operation_call(operation, inputs, device) for operation in sized]

    def drawn(ops: Sequence[Operation]) -> Genotype:
        return random_genotype(ops, random, network.nodes, network.shape, output)

    genotypes = [drawn([Skip()]), *(drawn(candidates) for _ in range(NETWORKS))]
    calls += [_network_call(network, genotype, device) for genotype in genotypes]
    timings = measure_in_turns(calls, repeats, synchronizer(device), advance=advance)
    by_key = dict(zip((key(*operation) for operation in sized), timings, strict=False))
    network_times = [timing.median for timing in timings[len(sized) :]]
    times = {name: timing.median for name, timing in sorted(by_key.items())}
    bare = LatencyTable(network, 0, times)
    skips = Costs(network, bare).total(genotypes[0]).latency
    table = LatencyTable(network, max(0, network_times[0] - skips), times, device=str(device))
    costs = Costs(network, table)
    checks = tuple(
        Check(measured, costs.total(genotype).latency)
        for genotype, measured in zip(genotypes[1:], network_times[1:], strict=True)
    )
    return LatencyFile(table, environment or {}, dict(sorted(by_key.items())), checks)


def num_samples(network: FinalNetwork, candidates: Sequence[Operation], repeats: int) -> int:
    """The number of samples that a measurement takes."""
    return repeats * (len(sized_operations(network, candidates)) + 1 + NETWORKS)


def _operation_call(
    sized: SizedOperation, inputs: dict[tuple[int, Pixels], Tensor], device: torch.device
) -> Callable[[], object]:
    op, channels, pixels, stride = sized
    make = partial(operations.build, op, channels, stride, affine=True)
    module = construct(make, torch.Generator().manual_seed(0)).eval().to(device)
    images = inputs.get((channels, pixels))
    if images is None:
        images = inputs[channels, pixels] = _images(channels, pixels, device)
    return partial(module, images)


def _network_call(
    network: FinalNetwork, genotype: Genotype, device: torch.device
) -> Callable[[], object]:
    module = build(
        genotype,
        network.channels,
        network.cells,
        network.classes,
        stem=network.stem,
        output=network.output,
        input_channels=network.input_channels,
    )
    images = _images(network.input_channels, network.pixels, device)
    return partial(module.eval().to(device), images)


def _images(channels: int, pixels: Pixels, device: torch.device) -> Tensor:
    """One image of noise: zeros might be quicker than what networks compute with."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(1, channels, *pixels, generator=generator).to(device)
    return images.contiguous(memory_format=torch.channels_last)
