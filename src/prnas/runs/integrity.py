"""Checks of a run's files against its newest checkpoint. Light: it reads no tensors."""

import hashlib
import json
import os
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import prnas
from prnas.io.checked_files import digest, read_file
from prnas.io.errors import FormatError, UserError, cannot, reading
from prnas.io.reading import parse_json
from prnas.io.yaml_files import parse_yaml
from prnas.runs.names import CHECKPOINTS, CONFIG, ENVIRONMENT, RECORDS
from prnas.space.genotype import Genotype

FORMAT, VERSION = "prnas-checkpoint", 2
STATE, CHECKSUMS = "state.json", "checksums.json"  # In the folder of a checkpoint.
_MOST_BYTES = 2**26  # largest state.json: far more than any run's
# Parts of a config that may change in a resumed run: how it is computed, not what.
_CHANGEABLE_SECTIONS = ("compute", "checkpoints", "description")
_CHANGEABLE_DATA = ("root", "storage", "workers")


def config_digest(data: Mapping[str, Any]) -> str:
    """The SHA-256 of what a `config.yaml` says, without the parts that may change.

    `data` is the parsed file, never a config made from it: that would have the defaults of fields
    which later releases added, and which the file of an older release cannot know.
    """
    fixed = {key: value for key, value in data.items() if key not in _CHANGEABLE_SECTIONS}
    if isinstance(fixed.get("data"), Mapping):
        images = cast(Mapping[str, Any], fixed["data"])
        fixed["data"] = {key: images[key] for key in images if key not in _CHANGEABLE_DATA}
    try:
        text = json.dumps(fixed)
    except TypeError:  # YAML has dates and keys that no run writes
        return ""
    return hashlib.sha256(text.encode()).hexdigest()


def read_config_data(file: Path) -> dict[str, Any]:
    """A run's config file as plain data; a `UserError` names what is wrong with it."""
    with reading(file):
        data = parse_yaml(read_file(file, _MOST_BYTES).decode("utf-8-sig"))
    if not isinstance(data, dict):
        raise UserError(f"{file}: a config is a mapping of names to values")
    return cast(dict[str, Any], data)


def is_begun(run: Path) -> bool:
    """Whether there is something to go on with; a folder that was never finished is set aside."""
    if run.is_symlink():
        raise UserError(f"{run} is a link: put the run's folder itself there, or remove it")
    if not run.exists():
        return False
    if (run / CONFIG).is_file() and (run / RECORDS).is_file():
        return True
    os.replace(run, run.with_name(f"unfinished-{run.name}-{secrets.token_hex(4)}"))
    return False


def newest_state(run: Path) -> dict[str, Any]:
    """The state in the newest checkpoint that has a whole one; empty if there is none."""
    try:
        names = [path.name for path in (run / CHECKPOINTS).iterdir()]
    except OSError:
        return {}
    for name in sorted(filter(str.isdecimal, names), key=int, reverse=True):
        folder = run / CHECKPOINTS / name
        try:
            text = read_file(folder / STATE, _MOST_BYTES)
            sums = parse_json(read_file(folder / CHECKSUMS, _MOST_BYTES).decode())
            if sums[STATE] == hashlib.sha256(text).hexdigest():
                return _supported_version(folder, json.loads(text))
        except (OSError, ValueError, FormatError, KeyError, TypeError, RecursionError):
            continue  # damaged, or replaced by a newer one at this moment
    return {}


def _supported_version(checkpoint: Path, state: Any) -> dict[str, Any]:
    """A checkpoint's state; a `UserError` if its version may mean something else by it."""
    if not isinstance(state, dict):
        return {}
    fields = cast(dict[str, Any], state)
    if fields.get("format") == FORMAT and fields.get("version") != VERSION:
        raise UserError(
            f"{checkpoint} is a checkpoint of version {fields.get('version')!r:.60}; this release "
            f"reads version {VERSION}{written_by(checkpoint.parents[1])}"
        )
    return fields


def written_by(run: Path) -> str:
    """A line that names the release which wrote a run last; nothing if it is this one."""
    try:
        text = read_file(run / ENVIRONMENT, _MOST_BYTES).decode()
        version = str(parse_json(text)["sessions"][-1]["prnas"])
    except (OSError, ValueError, LookupError, TypeError):
        return ""  # the file only informs: without it, less is said
    if version == prnas.__version__ or not re.fullmatch(r"[\w.+!-]{1,40}", version):
        return ""
    return f"\nThe run was written by prnas {version}; this is prnas {prnas.__version__}"


def check_records(run: Path, file: Path) -> None:
    """Raise if a run's records are not those that its newest checkpoint knows."""
    saved: Any = newest_state(run).get("records")
    if not isinstance(saved, dict):
        return
    size, checksum = (cast(dict[str, Any], saved).get(key) for key in ("size", "sha256"))
    with cannot(f"read {file}"):
        actual = digest(file, size) if type(size) is int and size >= 0 else ""
    if actual != checksum:
        raise UserError(f"{file} is damaged: it is not what the run wrote. {_mend(run)}")


def check_genotype(run: Path, file: Path, genotype: Genotype) -> None:
    """Raise if a search's genotype, read from a file, is not the one in its checkpoint."""
    saved = newest_state(run).get("genotype")
    if saved is None:
        return
    with suppress(FormatError):
        if Genotype.from_json(saved) == genotype:  # in whichever way a release wrote it
            return
    raise UserError(f"{file} is damaged: it is not what the search found. {_mend(run)}")


def check_run_config(run: Path, file: Path, data: Mapping[str, Any]) -> None:
    """Raise if a run's config, as its file says it, is not the one that it was started with."""
    saved = newest_state(run).get("config")
    if saved is not None and saved != config_digest(data):
        raise UserError(
            f"{file} was changed or damaged: the run in {run} was started with another; "
            "put the old one back"
        )


def _mend(run: Path) -> str:
    return f"`prnas search --resume {run}` (or `prnas retrain --resume`) writes it anew"
