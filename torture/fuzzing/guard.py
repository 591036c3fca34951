"""One command under guard: how it ended, how long it took, what it left behind."""

import contextlib
import io
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from prnas.cli import main
from torture.fuzzing.kinds import Arena

SECONDS = 20.0
BYTES = 1_000_000_000
MOST_SAID = 20_000
Listing = dict[str, tuple[int, int, int]]


class HangError(BaseException):
    """The time is over; no `except Exception` may swallow it."""


@dataclass(frozen=True)
class Outcome:
    """`problem` is empty if all is well."""

    code: int
    said: str
    seconds: float
    bytes: int  # by which the memory grew at its peak
    problem: str = ""


def guarded(arguments: Sequence[str], case: Path, arena: Arena, pure: bool) -> Outcome:
    """Run `prnas` with the arguments in this process, with `case` as the present folder."""
    around, inside = listing(arena.pristine.parent, without=case), listing(case)
    start, memory = time.perf_counter(), _reset_peak()
    code, said, problem = _run(arguments, case)
    seconds, grown = time.perf_counter() - start, max(0, _peak() - memory)
    problems = [problem] if problem else list(_ill_said(code, said))
    if arena.canary.exists():
        problems.append("code of the input was executed")
        arena.canary.rmdir() if arena.canary.is_dir() else arena.canary.unlink()
    if seconds > SECONDS:
        problems.append(f"took {seconds:.0f} s")
    if grown > BYTES:
        problems.append(f"took {grown / 1e9:.1f} GB of memory")
    if changed := differences(around, listing(arena.pristine.parent, without=case)):
        problems.append(f"touched what is not its own: {', '.join(changed[:5])}")
    if code == 2 and pure and (changed := differences(inside, listing(case))):
        problems.append(f"refused, but left behind: {', '.join(changed[:5])}")
    return Outcome(code, said, seconds, grown, "; ".join(problems))


def _run(arguments: Sequence[str], case: Path) -> tuple[int, str, str]:
    """The exit code, what was said on standard error, and an exception that escaped."""
    said = io.StringIO()
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(nowhere),
        contextlib.chdir(case),
        _alarm(),
    ):
        try:
            main(list(arguments))
        except SystemExit as exit_:
            return int(exit_.code or 0), said.getvalue(), ""
        except HangError as error:
            frames = "".join(traceback.format_tb(error.__traceback__)[-4:])
            return -1, said.getvalue(), f"no end within {SECONDS:.0f} s:\n{frames}"
        except BaseException:
            return -1, said.getvalue(), traceback.format_exc()
    return 0, said.getvalue(), ""


def _ill_said(code: int, said: str) -> Iterator[str]:
    if code not in (0, 2):
        yield f"exit code {code}"
    if "Traceback" in said or "Warning:" in said:
        yield f"a traceback or a warning: {said[:2000]}"
    if len(said) > MOST_SAID:
        yield f"{len(said)} characters on standard error"
    if any(not character.isprintable() for character in said.replace("\n", "")):
        yield "control characters on standard error"
    first = [line for line in said.splitlines() if not line.startswith("note: ")][:1]
    if code == 2 and not (first and first[0].startswith("prnas: ")):
        yield f"refused without a message of prnas: {said[:200]!r}"


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    def over(number: int, frame: FrameType | None) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, SECONDS, 1.0)  # again, should the first be swallowed
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def listing(folder: Path, without: Path | None = None) -> Listing:
    """Every file below a folder: kind, size, and when it was changed."""
    files: Listing = {}
    pending = [str(folder)]
    while pending:
        for entry in os.scandir(pending.pop()):
            if without is not None and entry.path == str(without):
                continue
            stat = entry.stat(follow_symlinks=False)
            is_folder = entry.is_dir(follow_symlinks=False)
            # A folder's own time changes with any file in it, which is listed by itself.
            files[entry.path] = (
                (stat.st_mode, 0, 0)
                if is_folder
                else (stat.st_mode, stat.st_size, stat.st_mtime_ns)
            )
            if is_folder:
                pending.append(entry.path)
    return files


def differences(before: Listing, after: Listing) -> list[str]:
    both = before.keys() | after.keys()
    return sorted(name for name in both if before.get(name) != after.get(name))


def _reset_peak() -> int:
    """Forget the peak so far; the memory that is taken now, in bytes."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS:")


def _peak() -> int:
    return _status("VmHWM:")


def _status(name: str) -> int:
    if sys.platform != "linux":
        return 0  # memory is watched on Linux only
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    return 0
