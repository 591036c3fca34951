"""One thread against more, for supernets of several sizes: where a second thread begins to pay.

python -m benchmarks.threads [--repeats 5] [--threads 2]
"""

import argparse
from statistics import median

import torch

from benchmarks.measure import interleaved, ratio
from benchmarks.search_step import batches, our_step
from prnas.nets.supernet import build_supernet
from prnas.space.network_size import supernet_macs
from prnas.space.pools import Pools
from prnas.space.setting import INITIAL_POOL

# Channels, cells, pixels of a side, batch.
SIZES = [(8, 3, 8, 64), (8, 3, 16, 64), (8, 5, 16, 64), (8, 5, 16, 128), (16, 5, 16, 64)]
SIZES += [(16, 8, 32, 64)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    pools = Pools.initial(4, INITIAL_POOL)
    print(f"{options.repeats} turns; {options.threads} threads against one")
    for channels, cells, size, batch in SIZES:
        macs = supernet_macs(
            pools, channels, cells, 10, output="concat", input_channels=3, pixels=(size, size)
        )
        step = our_step(build_supernet(pools, channels, cells), batches(batch, size))

        def with_threads(number: int, step=step) -> None:
            torch.set_num_threads(number)
            step()

        seconds = interleaved(
            {"one": lambda: with_threads(1), "more": lambda: with_threads(options.threads)},
            options.repeats,
        )
        print(
            f"{channels:3} channels, {cells} cells, {size}x{size}, batch {batch:3}: "
            f"{macs * batch / 1e6:6.0f} million multiply-accumulates; a step takes "
            f"{median(seconds['one']):.3f} s with one, faster by {ratio(*seconds.values())}",
            flush=True,
        )


if __name__ == "__main__":
    main()
