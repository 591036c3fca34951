"""Folders of runs with damaged files: gone on with, and reported."""

import hashlib
import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

from prnas.io.errors import UserError
from prnas.io.yaml_files import parse_yaml
from prnas.runs.checkpoint import CHECKSUMS, STATE, TENSORS
from prnas.runs.names import CONFIG, RECORDS
from torture.fuzzing import mutate, odd
from torture.fuzzing.data_sets import odd_file
from torture.fuzzing.kinds import Arena, Kind, Maker
from torture.fuzzing.made_runs import make_runs
from torture.fuzzing.tensor_files import spoilt_tensors
from torture.fuzzing.texts import spoilt_text


def _checkpoint(arena: Arena) -> Maker:
    runs = make_runs(arena.pristine)

    def make(random: Random, case: Path) -> list[str]:
        command = random.choice(sorted(runs))
        run = case / "run"
        shutil.copytree(random.choice(runs[command]), run)
        if random.random() < 0.6:
            forge(run, random)
        else:
            _damage(run, random, arena.canary)
        return [command, "--resume", str(run)]

    return make


def forge(run: Path, random: Random) -> None:
    """Another content of the newest checkpoint, with the checksums that fit it."""
    newest = max(folder for folder in (run / "checkpoints").iterdir() if folder.name.isdecimal())
    for folder in (run / "checkpoints").iterdir():
        if folder != newest:  # else it would be gone on with
            shutil.rmtree(folder)
    if random.random() < 0.6:
        state = json.loads((newest / STATE).read_bytes())
        head = {key: state.pop(key) for key in ("format", "version", "config", "data")}
        spoilt = mutate.replace_values(state, random)
        if isinstance(spoilt, dict) and random.random() < 0.95:
            spoilt = {**head, **spoilt}
        (newest / STATE).write_text(json.dumps(spoilt), encoding="utf-8")
    else:
        raw = (newest / TENSORS).read_bytes()
        (newest / TENSORS).write_bytes(spoilt_tensors(raw, random))
    sums = {
        name: hashlib.sha256((newest / name).read_bytes()).hexdigest()
        for name in (STATE, TENSORS, RECORDS)
    }
    (newest / CHECKSUMS).write_text(json.dumps(sums))


def _damage(run: Path, random: Random, canary: Path) -> None:
    """One or two files of the run spoilt, gone, or something else than files."""
    files = sorted(path for path in run.rglob("*") if path.is_file() and path.name != ".lock")
    for path in random.sample(files, random.choice((1, 1, 2))):
        raw = path.read_bytes()
        match random.randrange(8):
            case 0:
                path.unlink()
            case 1:
                odd_file(path, random)
            case 2 if path.suffix == ".jsonl":
                path.write_bytes(
                    raw + random.choice((b"[]\n", b"{", b"\xff\n", b'["0/0/0", -1]\n'))
                )
            case 3 if path.suffix in (".yaml", ".json"):
                path.write_bytes(spoilt_text(raw.decode(), random, [], canary))
            case 4:
                path.write_bytes(odd.pickled(canary))
            case _:
                path.write_bytes(mutate.spoil(raw, random, mutate.BINARY, []))
        if path.name == CONFIG and path.is_file() and _starts_much(path):
            path.write_bytes(raw)


def _starts_much(path: Path) -> bool:
    """Whether a config would have processes started, or a compiler, or files downloaded."""
    try:
        data: Any = parse_yaml(path.read_bytes()[:100_000].decode("utf-8", "replace"))
        compute, images = data["compute"], data["data"]
        return not (
            compute["devices"] == 1
            and compute["threads"] == 1
            and not compute["compile"]
            and images["workers"] == 2
            and images["storage"] == "auto"
            and str(images["name"]).startswith("npz:")
        )
    except (UserError, ValueError, KeyError, TypeError):
        return False  # it cannot be read, or says nothing of it


def _record(arena: Arena) -> Maker:
    runs = [run for several in make_runs(arena.pristine).values() for run in several]

    def make(random: Random, case: Path) -> list[str]:
        run = case / "run"
        source = random.choice(runs)
        shutil.copytree(source, run, ignore=shutil.ignore_patterns("checkpoints", "model"))
        if random.random() < 0.7:
            _spoil_records(run / RECORDS, random)
        else:
            _damage(run, random, arena.canary)
        if random.random() < 0.1:  # beside another
            return ["report", str(run), str(random.choice(runs)), "-o", str(case / "both.html")]
        figures = ["--figures", str(case / "figures")] if random.random() < 0.02 else []
        return ["report", str(run), *figures]

    return make


def _spoil_records(path: Path, random: Random) -> None:
    """Records that are JSON, but say odd things."""
    lines = path.read_bytes().splitlines()
    index = random.randrange(len(lines))
    spoilt = mutate.replace_values(json.loads(lines[index]), random)
    lines[index] = json.dumps(spoilt).encode()
    if random.random() < 0.2:
        random.shuffle(lines)
    if random.random() < 0.2:
        lines *= random.choice((2, 20))
    path.write_bytes(b"\n".join(lines) + b"\n")


# A resumed run notes that it was, whatever comes of it.
KINDS = (
    Kind("checkpoint", _checkpoint, share=0.1, pure=False),
    Kind("record", _record, share=0.5),
)
