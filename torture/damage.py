"""Power loss, simulated: every file of the newest checkpoint truncated, emptied, zeroed, flipped.

python -m torture.damage [--flips 5] [--seed N]

The run says what it found, falls back to the checkpoint before, and ends as if nothing had been.
"""

import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from tests.support.real_processes import progress_of
from tests.support.watching import assert_same_run
from torture.small_runs import Kind, kinds
from torture.torturer import torturer

WAYS = ("truncated", "emptied", "zeroed", "missing")


def torture(folder: Path, random: Random, flips: int) -> dict[str, Any]:
    """Every way once, and `flips` bits, for each file of the newest checkpoint of both kinds."""
    counts = Counter[str]()
    for kind in kinds(folder):
        stopped = _stopped(kind)
        newest = max(path.name for path in (stopped / "checkpoints").iterdir())
        names = sorted(path.name for path in (stopped / "checkpoints" / newest).iterdir())
        cases = [(name, way) for name in names for way in (*WAYS, *["flipped"] * flips)]
        for number, (name, way) in enumerate(cases):
            run = folder / "runs" / f"{kind.command}-{number}"
            shutil.copytree(stopped, run)
            _damage(run / "checkpoints" / newest / name, way, random)
            _leave_rubbish(run, random)
            child = kind.go_on(run)
            assert child.wait() == 0, f"{name} {way}:\n{child.said}"
            assert "is damaged" in child.said, f"{name} {way}: no message\n{child.said}"
            named = name in child.said or name == "checksums.json"  # which accuses the others
            assert named, f"{name} {way}: not named\n{child.said}"
            assert_same_run(run, kind.reference)
            assert (run / "checkpoints" / f"broken-{newest}").is_dir()
            counts[way] += 1
            shutil.rmtree(run)
    return dict(counts)


def _stopped(kind: Kind) -> Path:
    """A run that was stopped half way."""
    child = kind.begin("stopped")
    run = kind.folder / "runs" / "stopped"
    while progress_of(run) < 6:
        assert child.poll() is None, child.said
        time.sleep(0.005)
    child.send(signal.SIGTERM)
    assert child.wait() == 143, child.said
    target = kind.folder / "runs" / f"stopped-{kind.command}"
    run.rename(target)
    return target


def _damage(path: Path, way: str, random: Random) -> None:
    data = bytearray(path.read_bytes())
    match way:
        case "truncated":
            path.write_bytes(data[: random.randrange(len(data))])
        case "emptied":
            path.write_bytes(b"")
        case "zeroed":
            path.write_bytes(bytes(len(data)))
        case "missing":
            path.unlink()
        case _:
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
            path.write_bytes(data)


def _leave_rubbish(run: Path, random: Random) -> None:
    """What a kill may leave: files half written."""
    partial = run / "checkpoints" / ".unfinished-000999"
    partial.mkdir()
    (partial / "tensors.safetensors").write_bytes(random.randbytes(1000))
    (run / ".genotype.json.0123abcd.tmp").write_bytes(b"{")
    with (run / "records.jsonl").open("ab") as file:
        file.write(b'{"type":"epo')


if __name__ == "__main__":
    torturer(__doc__, torture, flips=5)
