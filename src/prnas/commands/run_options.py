"""What `prnas search` and `prnas retrain` have in common on the command line."""

import json
import shlex
from pathlib import Path
from typing import Any

from prnas.io.errors import UserError
from prnas.runs.names import not_resumable
from prnas.terminal.output import show

RUNS = Path("runs")


def settings(values: dict[str, Any]) -> list[str]:
    """Overrides that set each value as it is: quoted, so that YAML makes no number of a name."""
    return [
        f"{key}={json.dumps(value, ensure_ascii=False)}"
        for key, value in values.items()
        if value is not None
    ]


def check_resume(folder: Path, typed: dict[str, Any], overrides: list[str]) -> None:
    """Refuse what a run that goes on cannot follow: the options in `typed` that have a value."""
    if not folder.is_dir():
        raise UserError(f"there is no run folder {folder}")
    refused = [name for name, value in typed.items() if value is not None]
    refused += [f"--set {one}" for one in not_resumable(overrides)]
    if refused:
        raise UserError(
            f"--resume goes on with the run's own config; leave out {', '.join(refused)}. "
            f"Only what it computes on and its checkpoints can change."
        )


def show_stopped(folder: Path | None, command: str) -> None:
    if folder is None:
        show("stopped; nothing was to be saved")
        return
    show("stopped; the state is saved. To go on:")
    show(f"  prnas {command} --resume {shlex.quote(str(folder))}")
