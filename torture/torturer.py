"""What every kind of torture's command line has: a seed that is printed, and a folder that goes."""

import argparse
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any


def torturer(doc: str | None, act: Callable[..., dict[str, Any]], **numbers: int) -> None:
    """Run `act(folder, random, **numbers)` and print the figures that it returns.

    If it raises, its folder stays, and is named.
    """
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    given = vars(parser.parse_args())
    seed = given.pop("seed")
    folder = Path(tempfile.mkdtemp(prefix="prnas-torture-"))
    print(f"{parser.description} seed {seed}", flush=True)
    start = time.perf_counter()
    try:
        facts = act(folder, Random(seed), **given)
    except BaseException:
        print(f"FAILED with seed {seed}; what is left is in {folder}", flush=True)
        raise
    for name, value in facts.items():
        print(f"  {name}: {value}")
    print(f"  all as promised, after {time.perf_counter() - start:.0f} s", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
