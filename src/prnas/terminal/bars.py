"""Progress bars for work of several stages."""

from contextlib import ExitStack

from prnas.io.progress import Advance, bar


class Bars(ExitStack):
    """One bar after the other, on standard error, for people only: `bars(what, done, total)`.

    While one is there, nothing may be printed to standard output.
    """

    _advance: Advance | None = None
    _what, _done = "", 0

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._advance is None or what != self._what:
            self.close()
            self._advance = self.enter_context(bar(what, total))
            self._what, self._done = what, 0
        self._advance(done - self._done)
        self._done = done
