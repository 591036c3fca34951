"""Whether bars are shown: commands say so, and functions that are called from Python show none."""

from contextvars import ContextVar

bars: ContextVar[bool] = ContextVar("bars", default=False)
