"""SIGKILL at random moments, over whole fits, until every one is done.

python -m torture.fits [--kills 60] [--seed N]

Kills come after a random time; at a random sync or rename of a file, which may be the plan, the
results or the page of the fit; or with a record of one of its runs half written. What was measured
before a kill must not be measured again.
"""

import json
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from prnas.fitting import fit
from prnas.fitting.folder import read_state
from prnas.fitting.names import CARD, PAGE, RESULTS, SEARCH
from tests.support.made_fits import IMAGES, NAMES, SaidMeter, made_folder
from tests.support.settings import write_images
from tests.support.watching import assert_same_run
from torture.children import Child, kill_at_call, kill_in_record, start
from torture.torturer import torturer

LONGEST = 4.0  # seconds until a kill


def torture(folder: Path, random: Random, kills: int) -> dict[str, Any]:
    """So many kills; raises if a fit does not end as the undisturbed one did."""
    counts = Counter[str]()
    images, runs = write_images(folder / "images.npz", IMAGES), folder / "runs"
    reference = made_folder(images, runs, "reference")
    child = _session(reference, folder)
    assert child.wait() == 0, child.said
    while counts["kills"] < kills:
        run = made_folder(images, runs, f"fit-{counts['fits']}")
        way, child = _disturbed(run, folder, random)
        while child.wait() != 0:
            assert child.code == -9, f"exit code {child.code}:\n{child.said}"
            counts["kills"] += 1
            counts[f"  {way}"] += 1
            way, child = _disturbed(run, folder, random)
        _assert_same(run, reference)
        counts["fits"] += 1
    return dict(counts)


def _session(run: Path, folder: Path, prepare: Any = lambda: None) -> Child:
    """A process that goes on with a fit; its times are said, and nothing is exported."""
    measured = read_state(run).trainings is not None

    def prepared() -> None:
        fit.Meter = lambda: SaidMeter(not measured)  # type: ignore[assignment, misc]
        fit.write_exports = lambda model, folder, say: {"net.py": ()}
        prepare()

    return start(["fit", "--resume", run, "--quiet"], folder, prepared)


def _disturbed(run: Path, folder: Path, random: Random) -> tuple[str, Child]:
    """A session that may be killed on its way, and how."""
    way = random.choice(["after a time", "at a file", "in a record"])
    if way != "after a time":
        number = random.randint(1, 150 if way == "at a file" else 8)
        kill = kill_at_call if way == "at a file" else kill_in_record
        return way, _session(run, folder, kill(number))
    child = _session(run, folder)
    end = time.monotonic() + random.uniform(0, LONGEST)
    while child.poll() is None and time.monotonic() < end:
        time.sleep(0.001)
    child.kill()
    return way, child


def _assert_same(run: Path, reference: Path) -> None:
    for name in (SEARCH, *NAMES):
        assert_same_run(run / name, reference / name)
    assert read_state(run) == read_state(reference)
    assert _results(run) == _results(reference)
    model = Path("model") / "model.safetensors"
    assert (run / model).read_bytes() == (reference / model).read_bytes()
    assert all((run / name).is_file() for name in (PAGE, CARD))


def _results(run: Path) -> dict[str, Any]:
    """But for times, and the checksum over them."""
    results = json.loads((run / RESULTS).read_text(encoding="utf-8"))
    del results["checksum"]
    for network in results["networks"]:
        del network["seconds"]
    return results


if __name__ == "__main__":
    torturer(__doc__, torture, kills=60)
