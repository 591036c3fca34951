"""The events of a fit, for those who watch it. Watching changes nothing."""

from collections.abc import Sequence
from pathlib import Path

from prnas.fitting.folder import FitState
from prnas.io.errors import suggestion
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


_HOOKS = frozenset(name for name in vars(Listener) if name.startswith("on_"))


def check_listener(listener: object) -> None:
    """Raise a `TypeError` for what is no listener, and for a hook that no fit would call."""
    if isinstance(listener, type) and issubclass(listener, Listener):
        name = listener.__name__
        raise TypeError(f"{name} is a class; a listener is an object of it: {name}()")
    if not isinstance(listener, Listener):
        raise TypeError(
            f"a listener must be a prnas.fitting.events.Listener object, got {listener!r:.200}"
        )
    for name in dir(listener):
        if name.startswith("on_") and name not in _HOOKS:
            raise TypeError(
                f"{type(listener).__name__}.{name} would never be called: there is no such "
                f"event.{suggestion(name, _HOOKS)}"
            )
