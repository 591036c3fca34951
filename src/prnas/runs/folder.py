"""A run's folder: config, environment, records, checkpoints, genotype; never overwritten."""

import json
import os
import time
import zlib
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from prnas.config.recipes import KINDS, task_of
from prnas.config.sections import RunConfig
from prnas.io.atomic import remove_leftovers, sync_folder, write_atomically
from prnas.io.checked_files import read_file
from prnas.io.errors import FormatError, UserError, cannot
from prnas.io.reading import parse_json
from prnas.io.yaml_files import dump_yaml
from prnas.runs import names
from prnas.runs.checkpoint import Checkpoint, Checkpoints
from prnas.runs.environment import environment
from prnas.runs.integrity import config_digest, read_config_data, written_by
from prnas.runs.preparation import check_same
from prnas.runs.record_lines import to_line
from prnas.runs.record_versions import VERSION, header_line, version_of
from prnas.runs.records import Record
from prnas.runs.records_file import DAMAGED, RecordsFile
from prnas.space.genotype import Genotype

C = TypeVar("C", bound=RunConfig)
Session = Mapping[str, Any]  # the command and the device, for `environment.json`
D = TypeVar("D", int, str)
_MOST_TEXT = 16_000_000  # bytes of a config or an environment
_OWN = names.WRITTEN_BY_A_RUN | {f"old-{names.DECISIONS}", f"{DAMAGED}{names.RECORDS}"}


def locked(path: Path, name: str = names.LOCK) -> FileLock:
    """The lock of a folder, by the name of its file, which this process has from now on."""
    lock = FileLock(path / name)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise UserError(
            f"another process is running in {path}; wait for it, or stop it first"
        ) from None
    except OSError as error:
        raise UserError(f"cannot write in {path}: {error.strerror}") from None
    return lock


class RunFolder:
    """The folder of one run, locked for this process as long as it is open."""

    def __init__(self, path: Path, config: RunConfig, config_digest: str) -> None:
        """`config_digest`: of what the run's config file says."""
        self.path, self.config, self.config_digest = path, config, config_digest
        self.checkpoints = Checkpoints(path / names.CHECKPOINTS, config.checkpoints.keep)
        self._lock = locked(path)
        self.warn: Callable[[str], None] = lambda text: None
        self._records: RecordsFile | None = None
        self._records_version = VERSION
        # Held open, so that another folder of the same name can be distinguished from this one.
        self._handle = os.open(path, os.O_RDONLY) if hasattr(os, "O_DIRECTORY") else None

    @classmethod
    def create(
        cls, runs: Path, name: str | None, recipe: str, config: RunConfig, session: Session
    ) -> "RunFolder":
        """A new folder. An existing one is never touched: the new one gets another name."""
        with cannot(f"make a run folder in {runs}"):
            path, data = new_folder(runs, name, recipe, config.seed), config.to_data()
            run = cls(path, config, config_digest(data))
            run._write(names.CONFIG, dump_yaml(data))
            run._add_session(session)
            run._open_records(b"")
            sync_folder(runs)
        return run

    @classmethod
    def open(
        cls, path: Path, config: RunConfig, session: Session, forget_batches: bool = False
    ) -> "RunFolder":
        """The folder of a run that is to go on, with its config as `read_config` gave it.

        `forget_batches`: decisions about the batch so far were wrong, and are set aside.
        """
        check_plain(path)
        run = cls(path, config, config_digest(read_config_data(path / names.CONFIG)))
        try:
            remove_leftovers(path)
            run.checkpoints.remove_leftovers()
            run._add_session(session)
            if forget_batches and (path / names.DECISIONS).exists():
                os.replace(path / names.DECISIONS, path / f"old-{names.DECISIONS}")
        except OSError as error:
            run.close()
            raise UserError(f"cannot write in {path}: {error.strerror}") from None
        return run

    def newest_checkpoint(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest whole checkpoint, records as they were then; and what is damaged.

        A `UserError` if it is of another config than this folder's.
        """
        checkpoint, problems = self.checkpoints.newest()
        if problems and checkpoint is None:
            raise UserError("; ".join(problems) + ". No checkpoint of this run is whole.")
        if checkpoint is None and self._has_results():
            raise UserError(
                f"{self.path} has results, but no checkpoint to go on from; it is left as it is"
            )
        if checkpoint is not None:
            check_same("config", checkpoint.state, self.config_digest)
        self._open_records(checkpoint.records if checkpoint else b"")
        return checkpoint, problems

    def _has_results(self) -> bool:
        """Whether it ever got as far as what comes after a checkpoint, such as an epoch's end."""
        text = self._read(names.RECORDS)
        return (self.path / names.GENOTYPE).exists() or any(
            f'"type":"{kind}"' in text for kind in ("epoch", "training", "evaluation")
        )

    def _read(self, name: str) -> str:
        """A file of the run; one that is too large to be true is refused."""
        with cannot(f"read {self.path / name}"), suppress(FileNotFoundError):
            return read_file(self.path / name, _MOST_TEXT).decode(errors="replace")
        return ""

    def save(self, checkpoint: Checkpoint) -> None:
        """Save a checkpoint, to which the folder adds its records."""
        assert self._records is not None
        command = f"prnas {self.config.task} --resume {self.path}"
        hint = f". The one before it is kept: `{command}` goes on from it."
        with self.writing(f"save a checkpoint in {self.checkpoints.folder}", hint):
            self._records.sync()
            state = {**checkpoint.state, "records": self._records.state()}
            self.checkpoints.save(Checkpoint(state, checkpoint.tensors, self._records.content))

    def record(self, record: Record) -> None:
        assert self._records is not None
        with self.writing(f"write {self.path / names.RECORDS}"):
            begin = "" if self._records.size else header_line()
            self._records.write((begin + to_line(record, self._records_version)).encode())

    def _open_records(self, content: bytes) -> None:
        """Go on after `content`, in its version; records that have not begun get the newest."""
        try:
            first = content.partition(b"\n")[0].decode()
            self._records_version = version_of(first)[0] if content else VERSION
        except (FormatError, UnicodeDecodeError) as error:
            file = self.path / names.RECORDS
            raise UserError(f"{file}, line 1: {error}{written_by(self.path)}") from None
        self._records = RecordsFile(
            self.path / names.RECORDS, content, lambda text: self.warn(text)
        )

    def _check_there(self) -> None:
        """Raise if the folder went away: a run that was deleted must not come back in pieces."""
        try:
            here = self.path.stat()
            if self._handle is None or os.path.samestat(here, os.fstat(self._handle)):
                return
        except OSError:
            pass
        raise UserError(
            f"{self.path} is no longer there: it was moved or deleted while the run wrote in it. "
            f"If it was moved, `prnas {self.config.task} --resume` goes on in its new folder."
        )

    def log_decision(self, key: str, decision: int | str) -> None:
        """Note a decision that a resumed run has to repeat: a batch size, or how to compute."""
        path = self.path / names.DECISIONS
        with self.writing(f"write {path}"), path.open("a", encoding="utf-8") as file:
            # The line break comes first: the line before may have been torn by a kill.
            file.write("\n" + json.dumps([key, decision, _check_sum(key, decision)]))

    def _decisions(self, kind: type[D]) -> Iterator[tuple[str, D]]:
        """All decisions of a type, by their position; torn and damaged lines are left out."""
        for line in self._read(names.DECISIONS).splitlines():
            try:
                key, decision, check_sum = parse_json(line)
            except (FormatError, ValueError, TypeError):
                continue
            types = (type(key), type(decision))
            if types == (str, kind) and check_sum == _check_sum(key, decision):
                yield key, decision

    def execution_decisions(self) -> dict[str, str]:
        """The recorded choices between ways to compute supernets, by position."""
        return dict(self._decisions(str))

    def batch_decisions(self) -> dict[str, list[int]]:
        """All decisions about the batch size so far, by their position.

        Where memory ran out several times there are several, falling. A position that was passed
        again, after a resume, has the later decisions.
        """
        decisions: dict[str, list[int]] = {}
        for key, batch in self._decisions(int):
            if batch >= 1:
                sizes = decisions.setdefault(key, [])
                if sizes and batch >= sizes[-1]:
                    sizes.clear()
                sizes.append(batch)
        return decisions

    def write_genotype(self, genotype: Genotype) -> None:
        with self.writing(f"write {self.path / names.GENOTYPE}"):
            self._write(names.GENOTYPE, genotype.dumps())

    @contextmanager
    def writing(self, act: str, hint: str = "") -> Generator[None]:
        """Turn an `OSError` into a `UserError`, as `cannot`, or say that the folder went away."""
        self._check_there()
        try:
            yield
        except OSError as error:
            self._check_there()  # it may have gone in the midst of this
            raise UserError(f"cannot {act}: {error.strerror}{hint}") from None

    def _add_session(self, session: Session) -> None:
        try:
            sessions = list(parse_json(self._read(names.ENVIRONMENT))["sessions"])
        except (UserError, FormatError, KeyError, TypeError):
            sessions = []  # the file only informs: a missing or damaged one stops nobody
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        own = {"started": now, **session, **environment(self.config.compute.threads)}
        self._write(names.ENVIRONMENT, json.dumps({"sessions": [*sessions, own]}, indent=1) + "\n")

    def _write(self, name: str, text: str) -> None:
        write_atomically(self.path / name, text.encode())

    def close(self) -> None:
        try:
            if self._records is not None:
                self._records.close()
        except OSError:
            pass  # a full disk, which a failed write has reported already
        finally:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None
            self._lock.release()


def check_plain(folder: Path, only: Container[str] | None = _OWN) -> None:
    """Refuse links, pipes and devices in a run's folder: writing through them would go elsewhere.

    What else a person put beside the run's own files is left alone.
    """
    with cannot(f"read {folder}"), os.scandir(folder) as entries:
        for entry in entries:
            if only is not None and entry.name not in only:
                continue
            if entry.is_dir(follow_symlinks=False):
                check_plain(Path(entry), None)
            elif not entry.is_file(follow_symlinks=False):
                raise UserError(
                    f"{entry.path} is a link, or no plain file: a run writes only to plain files "
                    "in its own folder. Put the file or folder itself there, or remove it."
                )


def _check_sum(key: Any, decision: int | str) -> int:
    return zlib.crc32(json.dumps([key, decision]).encode())


def read_config(
    path: Path,
    kind: type[C],
    overrides: Sequence[str] = (),
    needed: Sequence[str] = (names.CONFIG, names.RECORDS),
) -> C:
    """The config of a run that is to go on; it must be of that kind and have the needed files."""
    if wrong := names.not_resumable(overrides):
        raise UserError(
            f"a resumed run keeps its config: {wrong[0]!r:.60} cannot change; "
            "what starts with compute. or checkpoints. can"
        )
    for name in needed:
        if not (path / name).is_file():
            raise UserError(f"{path} is not a run's folder: it has no {name}")
    data = read_config_data(path / names.CONFIG)
    task = str(task_of(data))
    if task in KINDS and KINDS[task] is not kind:
        raise UserError(f"{path} is the run of a {task}: use `prnas {task} --resume {path}`")
    try:
        return kind.from_data(data, overrides)
    except FormatError as error:
        raise UserError(f"{path / names.CONFIG}: {error}{written_by(path)}") from None


def new_folder(runs: Path, name: str | None, recipe: str, seed: int) -> Path:
    """A folder that was not there before, in `runs`."""
    if name is not None:
        names.check_name(name)
    stem = name or f"{recipe}-{time.strftime('%Y%m%d-%H%M%S')}-seed{seed}"
    runs.mkdir(parents=True, exist_ok=True)
    for number in range(1, 10_000):
        path = runs / (stem if number == 1 else f"{stem}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise UserError(f"{runs} has too many runs called {stem}")
