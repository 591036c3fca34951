"""What a run's newest checkpoint says of its other files, so that damage does not pass unseen.

Light: it reads a checkpoint's state, not its tensors.
"""

import errno
import hashlib
import json
from pathlib import Path
from typing import Any, cast

from prnas.config.search import RunConfig
from prnas.io.checked_files import digest
from prnas.io.errors import FormatError, UserError
from prnas.io.reading import parse_json

CHECKPOINTS, STATE, CHECKSUMS = "checkpoints", "state.json", "checksums.json"
_MOST_BYTES = 2**26  # of a state: far more than any run's


def config_digest(config: RunConfig) -> str:
    """Of all that a run is; where and how it is computed may change."""
    told = config.to_data()
    for section in ("compute", "checkpoints", "description"):
        del told[section]
    for how in ("root", "storage", "workers"):
        del told["data"][how]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def newest_state(run: Path) -> dict[str, Any]:
    """The state in the newest checkpoint that has a whole one; empty if there is none."""
    try:
        names = [path.name for path in (run / CHECKPOINTS).iterdir()]
    except OSError:
        return {}
    for name in sorted((one for one in names if one.isdecimal()), key=int, reverse=True):
        folder = run / CHECKPOINTS / name
        try:
            text = _beginning(folder / STATE, _MOST_BYTES)
            sums = parse_json(_beginning(folder / CHECKSUMS, _MOST_BYTES).decode())
            if sums[STATE] == hashlib.sha256(text).hexdigest():
                state = json.loads(text)
                return cast(dict[str, Any], state) if isinstance(state, dict) else {}
        except (OSError, ValueError, FormatError, KeyError, TypeError, RecursionError):
            continue  # damaged, or replaced by a newer one at this moment
    return {}


def check_records(run: Path, file: Path) -> None:
    """Raise if a run's records are not those that its newest checkpoint knows."""
    known: Any = newest_state(run).get("records")
    if not isinstance(known, dict):
        return
    size, checksum = (cast(dict[str, Any], known).get(key) for key in ("size", "sha256"))
    try:
        have = digest(file, size) if type(size) is int and size >= 0 else ""
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from None
    if have != checksum:
        raise UserError(f"{file} is damaged: it is not what the run wrote. {_mend(run)}")


def check_genotype(run: Path, file: Path, found: Any) -> None:
    """Raise if a search's genotype (as JSON's values) is not the one in its checkpoint."""
    known = newest_state(run).get("genotype")
    if known is not None and found != known:
        raise UserError(f"{file} is damaged: it is not what the search found. {_mend(run)}")


def check_run_config(run: Path, file: Path, config: RunConfig) -> None:
    """Raise if a run's config is not the one that it was started with."""
    known = newest_state(run).get("config")
    if known is not None and known != config_digest(config):
        raise UserError(
            f"{file} was changed or damaged: the run in {run} was started with another; "
            "put the old one back"
        )


def _beginning(path: Path, most: int) -> bytes:
    if not path.is_file():  # a pipe might never end
        raise OSError(errno.EINVAL, "it is no plain file", str(path))
    with path.open("rb") as file:
        return file.read(min(most, path.stat().st_size))


def _mend(run: Path) -> str:
    return f"`prnas search --resume {run}` (or `prnas retrain --resume`) writes it anew"
