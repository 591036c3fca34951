"""Callbacks of every run with a folder: they write TensorBoard's events and the report."""

from collections.abc import Sequence

from prnas.report.page_callback import ReportCallback
from prnas.report.tensorboard import TensorboardCallback, available
from prnas.runs.events import Callback


def with_default_callbacks(callbacks: Sequence[Callback]) -> list[Callback]:
    """The callbacks, after those that write: they may speak of what was written."""

    def say(text: str) -> None:
        for callback in callbacks:
            callback.on_message(text)

    writers: list[Callback] = [ReportCallback(say)]
    if available():
        writers.append(TensorboardCallback())
    return [*writers, *callbacks]
