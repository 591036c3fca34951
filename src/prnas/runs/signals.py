"""Signals that ask a run to stop, or to save. Light: it is imported before anything heavy."""

import atexit
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

EXIT = 128  # exit codes of processes that a signal ended, as shells have them
LIFELINE = "PRNAS_LIFELINE"  # environment variable: stop when standard input ends


def interrupt(number: int) -> None:
    raise KeyboardInterrupt


def leave(number: int) -> None:
    """End the process here and now: an exception would first pass through code that is not Python.

    Nothing is harmed: files are written whole or not at all, and locks end with the process.
    """
    for stream in (1, 2):
        with suppress(OSError):
            if os.isatty(stream):
                os.write(stream, b"\x1b[?25h\n")  # a display may have hidden the cursor
    os._exit(EXIT + number)


second: Callable[[int], None] = interrupt  # what a second signal does; the commands leave
interrupted = False  # whether Ctrl-C came, whatever exception followed


def guard(runs: bool) -> None:
    """Guard a command, before anything heavy is imported: no signal ends in a traceback.

    A command that `runs` has written nothing until its run begins (`stop_signals`), and all after
    its end: it leaves at once, and SIGUSR1 asks for nothing. In another, Ctrl-C raises.
    """
    global second
    second = leave

    def handle(number: int, frame: FrameType | None) -> None:
        global interrupted
        interrupted = True
        if runs:
            leave(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handle)
    if runs:
        signal.signal(signal.SIGTERM, handle)
        if hasattr(signal, "SIGUSR1"):  # Windows has none
            signal.signal(signal.SIGUSR1, lambda number, frame: None)
    atexit.register(_ignore, runs)  # called last, since it came first


def follow_parent() -> None:
    """Stop, as by SIGTERM, at the end of standard input, if the parent process asks for it.

    The parent holds the other end of the pipe. So nothing outlives it, however it ends.
    """
    if os.environ.pop(LIFELINE, None) is None:  # taken away: it is not for processes of our own
        return

    def watch() -> None:
        with suppress(OSError):
            while os.read(0, 4096):
                pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="prnas-lifeline", daemon=True).start()


def leave_from_now() -> None:
    """All is done: what Python calls at its end would only turn a signal into a traceback."""
    signal.signal(signal.SIGINT, lambda number, frame: leave(number))


def _ignore(runs: bool) -> None:
    """Ignore signals in the last instant, in which Python takes its handlers away."""
    names = ("SIGINT", "SIGTERM", "SIGUSR1") if runs else ("SIGINT",)
    for name in names:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


class Signals:
    number = 0  # the signal that asks to stop
    save = False

    def take_save(self) -> bool:
        """Whether a checkpoint was asked for since the last time."""
        wanted, self.save = self.save, False
        return wanted


@contextmanager
def stop_signals() -> Iterator[Signals]:
    """Within it, SIGINT and SIGTERM ask to stop after the step; a second one stops at once.

    SIGUSR1, which batch schedulers send before they end a job, asks for a checkpoint.
    """
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if signals.number:
            second(number)
        signals.number = number

    def handle_save(number: int, frame: FrameType | None) -> None:
        signals.save = True

    stopping = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, handle) for number in stopping}
    if hasattr(signal, "SIGUSR1"):  # Windows has none
        before[signal.SIGUSR1] = signal.signal(signal.SIGUSR1, handle_save)
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
