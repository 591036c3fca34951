"""What every run with a folder writes besides: TensorBoard's events and the report."""

from collections.abc import Callable, Sequence

from prnas.report.page_callback import ReportCallback, TrainingReport
from prnas.report.tensorboard_callback import TensorboardCallback, TrainingTensorboard
from prnas.runs.callbacks import Callback, TrainingCallback, Watcher


def for_search(callbacks: Sequence[Callback]) -> list[Callback]:
    """The callbacks, with those that write into a search's folder; these come first, so that the
    others can tell of what was written."""
    return [ReportCallback(_to(callbacks)), *TensorboardCallback.if_available(), *callbacks]


def for_training(callbacks: Sequence[TrainingCallback]) -> list[TrainingCallback]:
    """As `for_search`, for a training."""
    return [TrainingReport(_to(callbacks)), *TrainingTensorboard.if_available(), *callbacks]


def _to(callbacks: Sequence[Watcher]) -> Callable[[str], None]:
    def say(text: str) -> None:
        for one in callbacks:
            one.on_message(text)

    return say
