"""Progress bars for work of several stages."""

from contextlib import ExitStack

from prnas.io.progress import Bar, bar


class Bars(ExitStack):
    """One bar after the other, on standard error, for people only: `bars(what, done, total)`.

    While one is there, nothing may be printed to standard output.
    """

    _bar: Bar | None = None
    _what, _done = "", 0

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._bar is None or what != self._what:
            self.close()
            self._bar = self.enter_context(bar(what, total))
            self._what, self._done = what, 0
        self._bar.advance(done - self._done)
        self._done = done
