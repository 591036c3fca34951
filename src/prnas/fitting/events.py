"""The events of a fit, for those who watch it. Watching changes nothing."""

from collections.abc import Sequence
from pathlib import Path

from prnas.fitting.folder import FitState
from prnas.runs.events import Callback


class Listener:
    """Hears of a fit's stages. Override what you need."""

    def on_look(self, sentences: Sequence[str]) -> None:
        """The images have been looked at."""

    def on_measuring(self, what: str) -> None:
        """Some steps are being measured."""

    def on_plan(self, state: FitState, folder: Path | None) -> None:
        """All is decided but the trainings' epochs; `folder` is `None` if it ends here."""

    def on_stage(self, name: str, number: int, of: int) -> None:
        """A stage begins: a search or a training, or the end."""

    def on_message(self, text: str) -> None:
        """There is something that a person should know."""

    def callbacks(self, stage: str) -> Sequence[Callback]:
        """Callbacks for the run of a stage."""
        return ()
