"""SIGINT and SIGTERM at random moments, from the first instruction on; twice; SIGUSR1 between.

python -m torture.signals [--signals 60] [--seed N]

Every session is a new process of Python, so that the imports are among the moments. It must end
within seconds, with the documented exit code, and what it saved must go on to the same end.
"""

import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from tests.support.watching import assert_same_run
from torture.small_runs import Kind, kinds
from torture.torturer import torturer

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
LONGEST = 30.0  # seconds from a signal to the end
START = 0.5  # seconds in which Python itself is up, with time to spare


def torture(folder: Path, random: Random, signals: int) -> dict[str, Any]:
    counts = Counter[str]()
    seconds: list[float] = []
    both = kinds(folder)
    while counts["signals"] < signals:
        kind = both[counts["runs"] % 2]
        run = folder / "runs" / f"run-{counts['runs']}"
        while not _session(kind, run, random, counts, seconds):
            pass
        assert_same_run(run, kind.reference)
        counts["runs"] += 1
    slowest = f"{median(seconds):.2f} s, at most {max(seconds):.2f} s"
    return {**counts, "from a signal to the end, median": slowest}


def _session(
    kind: Kind, run: Path, random: Random, counts: Counter[str], seconds: list[float]
) -> bool:
    """One process, with a signal after a random time; whether the run was done before."""
    begun = (run / "records.jsonl").is_file()
    arguments = [kind.command, "--resume", run] if begun else kind.arguments(run.name)
    process = subprocess.Popen(
        [sys.executable, "-m", "prnas", *map(str, arguments)],
        cwd=kind.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    number = random.choice([signal.SIGINT, signal.SIGTERM])
    twice = random.random() < 0.3
    begun_at = time.monotonic()
    end = begun_at + random.uniform(0, 8)
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
        if random.random() < 0.002 and time.monotonic() > begun_at + START:
            process.send_signal(signal.SIGUSR1)
            counts["SIGUSR1"] += 1
    sent = time.monotonic()
    process.send_signal(number)
    if twice:
        time.sleep(random.uniform(0, 0.1))
        process.send_signal(number)
    said, _ = process.communicate(timeout=LONGEST)
    assert "Traceback" not in said, said
    if process.returncode == 0:
        return True
    counts["signals"] += 1
    counts["  twice"] += twice
    seconds.append(time.monotonic() - sent)
    # A signal before Python itself is up ends the process as it ends any other.
    early = sent - begun_at < START
    codes = (CODES[number], -number) if early else (CODES[number],)
    assert process.returncode in codes, f"{process.returncode}:\n{said}"
    counts["  before Python was up"] += process.returncode == -number
    return False


if __name__ == "__main__":
    torturer(__doc__, torture, signals=60)
