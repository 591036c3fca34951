"""The names in a run's folder, and rules for a run's name and overrides. Light: no torch."""

import re
from collections.abc import Sequence

from prnas.io.errors import UserError
from prnas.models.names import FOLDER as MODEL

CONFIG, RECORDS, GENOTYPE = "config.yaml", "records.jsonl", "genotype.json"
ENVIRONMENT, DECISIONS, LOCK = "environment.json", "batch-decisions.jsonl", ".lock"
CHECKPOINTS, REPORT, TENSORBOARD = "checkpoints", "report.html", "tensorboard"
GROUP = "group.json"  # In the folder of the runs with several seeds.
# Everything that a run or one of its callbacks may write.
WRITTEN_BY_A_RUN = {
    *(CONFIG, RECORDS, GENOTYPE, ENVIRONMENT, DECISIONS, LOCK),
    *(CHECKPOINTS, MODEL, REPORT, TENSORBOARD),
}
# Sections of the config that a resumed run may change: how it is computed, not what.
CHANGEABLE = ("compute.", "checkpoints.")


def not_resumable(overrides: Sequence[str]) -> list[str]:
    """The overrides that a resumed run cannot follow."""
    return [override for override in overrides if not override.startswith(CHANGEABLE)]


def check_name(name: str, what: str = "a run's name") -> None:
    """Refuse a name that is not a plain folder name."""
    if not re.fullmatch(r"\w[\w .+-]{0,100}", name):
        raise UserError(
            f"{what} is a folder's name, without a path: a letter or digit first, then those, "
            f"blanks and _.+-; got {name!r:.60}"
        )
