"""A study's folder: its plan, written out whole, and the runs of its jobs."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.io.atomic import write_atomically
from prnas.io.checked_files import read_file
from prnas.io.errors import FormatError, UserError, cannot, reading
from prnas.io.reading import check_header, parse_json
from prnas.io.yaml_files import dump_yaml
from prnas.runs.integrity import config_digest
from prnas.runs.names import CHECKPOINTS
from prnas.space import zoo
from prnas.space.genotype import Genotype
from prnas.studies.config import StudyConfig
from prnas.studies.names import RETRAIN, SEARCH, STUDY
from prnas.studies.plan import Plan, Row, plain

FORMAT, VERSION = "prnas-study", 1
_MOST_BYTES = 2**26
# Sections of a config that say only how or where it is computed.
_FREE = ("compute", "checkpoints", "description")


def is_study(folder: Path) -> bool:
    return (folder / STUDY).is_file()


def open_study(folder: Path, plan: Plan) -> None:
    """Write the plan to a new folder, or go on in one that has the same plan.

    A study may grow: rows, seeds and trainings can be added, and a row can change as long as
    nothing of it was computed. Everything else is refused before anything is written.
    """
    check_study(folder, plan)
    with cannot(f"write in {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        # First: what a kill or a full disk leaves is a study, and whoever opens it writes the rest.
        _write(folder / STUDY, _dumped(plan))
        for row in plan.rows:
            (folder / row.name).mkdir(exist_ok=True)
            if row.kind == "search":
                _write(folder / row.name / SEARCH, dump_yaml(plain(row.config)))
                continue
            for unit in plan.units(row):
                genotype = row.genotype(unit)
                assert genotype is not None
                _write(genotype_file(folder, row, unit), genotype.dumps())
        if plan.retrain is not None:
            _write(folder / RETRAIN, dump_yaml(plain(plan.retrain)))


def check_study(folder: Path, plan: Plan) -> None:
    """Refuse what `open_study` refuses; nothing is written."""
    if is_study(folder):
        _check_same(folder, read_plan(folder), plan)
    elif folder.exists() and (not folder.is_dir() or _is_used(folder)):
        raise UserError(
            f"{folder} is there already, and is no study: choose another with --runs or --name"
        )


def _is_used(folder: Path) -> bool:
    """Whether it holds anything; a plan that was killed while it was written is nothing."""
    return any(not path.name.startswith(f".{STUDY}.") for path in folder.iterdir())


def genotype_file(folder: Path, row: Row, unit: int) -> Path:
    """The file with the cells of a row that does not search."""
    return folder / row.name / f"seed-{unit}.json"


def _write(path: Path, text: str) -> None:
    """Write what is not there yet: several jobs of a study may start at the same moment."""
    data = text.encode()
    if not path.is_file() or path.read_bytes() != data:
        write_atomically(path, data)


def _dumped(plan: Plan) -> str:
    rows = {
        row.name: {
            "kind": row.kind,
            "config": plain(row.config),
            "cell": None if row.cell is None else row.cell.to_json(),
        }
        for row in plan.rows
    }
    content = {"study": plan.study.to_data(), "rows": rows, "retrain": plain(plan.retrain)}
    data = {"format": FORMAT, "version": VERSION, **content, "checksum": _checksum(content)}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def read_plan(folder: Path) -> Plan:
    """The plan of a study that was begun, as it was then; recipes may have changed since."""
    path = folder / STUDY
    with reading(path):
        content = check_header(parse_json(read_file(path, _MOST_BYTES).decode()), FORMAT, VERSION)
        if content.pop("checksum", None) != _checksum(content):
            raise FormatError(["it was changed or damaged; put the old one back"])
        study = StudyConfig.from_data(content["study"])
        rows = tuple(_read_row(study, name, row) for name, row in content["rows"].items())
        training = content["retrain"]
        retrain = None if training is None else RetrainConfig.from_data(training)
    return Plan(study, rows, retrain)


def _read_row(study: StudyConfig, name: str, data: Mapping[str, Any]) -> Row:
    config, cell = data["config"], data["cell"]
    source = next(row.cell for row in study.rows if row.name == name)
    return Row(
        name,
        data["kind"],
        None if config is None else SearchConfig.from_data(config),
        None if cell is None else Genotype.from_json(cell),
        source if source in zoo.names() else None,
    )


# ---------------------------------------------------------------- going on with another plan


def _check_same(folder: Path, old: Plan, new: Plan) -> None:
    advice = "give this study another --name, or put its file back"
    before = {row.name: row for row in old.rows}
    if old.study.first_seed != new.study.first_seed and any(map(_begun, _row_folders(folder, old))):
        raise UserError(
            f"the study in {folder} was begun with first_seed {old.study.first_seed}: {advice}"
        )
    for row in new.rows:
        old_row = before.get(row.name)
        if old_row is None or not _begun(folder / row.name):
            continue
        changed = _difference(_row_data(old_row), _row_data(row))
        if changed:
            raise UserError(
                f"row '{row.name}' of {folder} was begun with other {changed}; {advice}"
            )
    if old.retrain is None or new.retrain is None:
        return
    changed = _difference(_fixed(old.retrain.to_data()), _fixed(new.retrain.to_data()))
    if changed and any(_begun(path, "-training-") for path in _row_folders(folder, old)):
        raise UserError(f"the trainings of {folder} were begun with other {changed}; {advice}")


def _row_folders(folder: Path, plan: Plan) -> list[Path]:
    return [folder / row.name for row in plan.rows]


def _begun(row: Path, infix: str = "") -> bool:
    """Whether a run of a row has computed anything that was saved."""
    if not row.is_dir():
        return False
    return any(infix in path.name and _has_checkpoint(path) for path in row.glob("seed-*"))


def _has_checkpoint(run: Path) -> bool:
    return progress_of(run) > 0


def progress_of(run: Path) -> int:
    """The number of a run's newest checkpoint; 0: it has none."""
    try:
        names = [path.name for path in (run / CHECKPOINTS).iterdir()]
    except OSError:
        return 0
    return max((int(name) for name in names if name.isdecimal()), default=0)


def _row_data(row: Row) -> dict[str, Any]:
    config = None if row.config is None else _fixed(row.config.to_data())
    cell = None if row.cell is None else row.cell.to_json()
    return {"kind": row.kind, "cell": cell, **(config or {})}


def _fixed(data: Mapping[str, Any]) -> dict[str, Any]:
    """The sections of a config that say what is computed; the seed is each job's own."""
    return {key: value for key, value in data.items() if key not in (*_FREE, "seed", "genotype")}


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """The first differences of two configs in words; empty if there are none that matter."""
    if config_digest(old) == config_digest(new):
        return ""
    keys = sorted(_differing(old, new, ""), key=lambda key: key != "kind")
    return ", ".join(keys[:3]) + (", …" if len(keys) > 3 else "")


def _differing(old: Any, new: Any, path: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        a, b = cast(dict[str, Any], old), cast(dict[str, Any], new)
        for key in sorted({*a, *b}):
            yield from _differing(a.get(key), b.get(key), f"{path}.{key}" if path else key)
    elif old != new:
        yield path
