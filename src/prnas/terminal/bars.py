"""Bars for work of several stages."""

from contextlib import ExitStack
from types import TracebackType

from prnas.io.progress import Bar, bar


class Bars:
    """One bar after the other, on standard error, for people only: `bars(what, done, total)`.

    While one is there, nothing may be printed to standard output.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._bar: Bar | None = None
        self._what = ""
        self._done = 0

    def __enter__(self) -> "Bars":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._bar is None or what != self._what:
            self._stack.close()
            self._bar = self._stack.enter_context(bar(what, total))
            self._what, self._done = what, 0
        self._bar.advance(done - self._done)
        self._done = done
