"""The problems of a study's jobs, for people: the message of each one's last attempt."""

import json
from pathlib import Path
from typing import Any

from prnas.io.checked_files import read_file
from prnas.studies.names import ATTEMPTS
from prnas.studies.plan import Plan

_MOST_BYTES = 2**28


def last_problems(folder: Path, plan: Plan) -> dict[int, str]:
    """The last problem of each job by number; a job that went well afterwards has none."""
    try:
        lines = read_file(folder / ATTEMPTS, _MOST_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return {}  # It only informs.
    messages: dict[str, str] = {}
    for line in lines:
        try:
            attempt: Any = json.loads(line)
            messages[str(attempt["job"])] = str(attempt["message"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue  # Torn by a kill.
    numbers = {job.path: job.number for job in plan.jobs}
    return {numbers[job]: text for job, text in messages.items() if job in numbers and text}
