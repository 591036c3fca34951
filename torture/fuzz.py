"""Spoilt inputs of every kind, by the thousand: a message and exit code 2, or all is well.

`python -m torture.fuzz --seed 1 --cases 3000 --kinds npz model` says how each kind fared. At the
first harm it stops with exit code 1, and says how to repeat the case and where its input is.
"""

import argparse
import faulthandler
import os
import resource
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from torture.fuzzing import command_lines, data_sets, model_files, run_folders, texts
from torture.fuzzing.guard import MOST_SAID, SECONDS, Outcome, guarded
from torture.fuzzing.kinds import Arena, Kind, Maker

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        *texts.KINDS,
        *run_folders.KINDS,
        *data_sets.KINDS,
        *model_files.KINDS,
        *command_lines.KINDS,
    )
}
SPARE_BYTES = 6 * 2**30  # of addresses: a bomb shall fail here, not take the machine with it
IN_PROCESSES = 3  # cases of each kind that are tried as real processes as well


def fuzz(kind: Kind, seed: int, cases: Sequence[int], folder: Path, tell: bool = True) -> int:
    """Try the cases of these numbers; how many were accepted. A `HarmError` tells of the first."""
    arena = Arena(folder / "pristine", folder / "EXECUTED")
    arena.pristine.mkdir(parents=True)
    case = folder / "case"
    maker = kind.prepare(arena)
    outcomes: list[Outcome] = []
    start = time.perf_counter()
    for number in cases:
        arguments = _made(maker, kind, seed, number, case)
        faulthandler.dump_traceback_later(6 * SECONDS, exit=True)  # stuck where no alarm helps
        outcome = guarded(arguments, case, arena, kind.pure)
        faulthandler.cancel_dump_traceback_later()
        problem = outcome.problem
        if not problem and kind.alone and len(outcomes) < IN_PROCESSES:
            arguments = _made(maker, kind, seed, number, case)
            problem = in_a_process(arguments, case, outcome.code)
        if problem:
            _made(maker, kind, seed, number, case)  # as it was before the command touched it
            raise HarmError(kind.name, seed, number, arguments, case, problem)
        outcomes.append(outcome)
    accepted = sum(outcome.code == 0 for outcome in outcomes)
    if tell and outcomes:
        longest = max(outcome.seconds for outcome in outcomes)
        print(
            f"{kind.name:10}  {len(outcomes):5} cases  {accepted:5} accepted  "
            f"{len(outcomes) - accepted:5} refused  longest {longest:5.2f} s"
            f"  memory +{max(outcome.bytes for outcome in outcomes) / 1e6:.0f} MB  "
            f"({time.perf_counter() - start:.0f} s)",
            flush=True,
        )
    return accepted


class HarmError(Exception):
    """What a case did that none may do."""

    def __init__(
        self, kind: str, seed: int, number: int, arguments: list[str], case: Path, problem: str
    ) -> None:
        super().__init__(
            f"{kind}, case {number} of seed {seed}: {problem}\n"
            f"  command: prnas {arguments!r:.2000}\n"
            f"  its input is in {case}\n"
            f"  again: python -m torture.fuzz --seed {seed} --kinds {kind} --only {number}"
        )


def _made(maker: Maker, kind: Kind, seed: int, number: int, case: Path) -> list[str]:
    shutil.rmtree(case, ignore_errors=True)
    case.mkdir()
    return maker(Random(f"{seed}/{kind.name}/{number}"), case)


def in_a_process(arguments: list[str], case: Path, code: int) -> str:
    """What is wrong with the same command as a process of its own."""
    if any("\0" in argument for argument in arguments):
        return ""  # no process can be given that
    try:
        done = subprocess.run(
            [sys.executable, "-m", "prnas", *arguments],
            cwd=case,
            capture_output=True,
            timeout=4 * SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "no end as a process of its own"
    except OSError as error:
        return "" if error.errno == 7 else str(error)  # 7: longer than any command line may be
    said = done.stderr.decode("utf-8", "replace")
    if done.returncode != code or "Traceback" in said or len(said) > 2 * MOST_SAID:
        return f"as a process of its own, exit code {done.returncode}, not {code}: {said[:2000]}"
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m torture.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--cases", type=int, default=3000, help="of each kind that is quick")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--only", type=int, help="the number of a single case")
    wanted = parser.parse_args(arguments)
    print(f"seed {wanted.seed}", flush=True)
    _limit_memory()
    os.environ["HOME"] = str(Path(tempfile.gettempdir(), "no-such-home"))
    folder = Path(tempfile.mkdtemp(prefix="prnas-fuzz-")).resolve()
    for name in wanted.kinds:
        kind = KINDS[name]
        number = max(1, int(wanted.cases * kind.share))
        cases = range(number) if wanted.only is None else [wanted.only]
        try:
            fuzz(kind, wanted.seed, cases, folder / name)
        except HarmError as harm:
            print(harm, flush=True)
            return 1
        shutil.rmtree(folder / name)
    shutil.rmtree(folder)
    return 0


def _limit_memory() -> None:
    import torch  # noqa: F401 - its libraries take addresses, which count

    if sys.platform == "linux":
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + SPARE_BYTES, resource.RLIM_INFINITY))


if __name__ == "__main__":
    sys.exit(main())
