"""A run's folder as the report reads it: config, environment, records."""

from contextlib import suppress
from pathlib import Path

from prnas.io.errors import FormatError, UserError
from prnas.io.reading import parse_json
from prnas.io.text import read_text
from prnas.report.page import SEED, GroupInfo, view_of
from prnas.report.plain_data import list_at
from prnas.report.view import RunInfo, View, sessions_of
from prnas.runs import integrity
from prnas.runs.named import genotype_and_data
from prnas.runs.names import CONFIG, ENVIRONMENT, GENOTYPE, GROUP, RECORDS
from prnas.runs.record_lines import RecordReader


def is_run(folder: Path) -> bool:
    return (folder / CONFIG).is_file() and (folder / RECORDS).is_file()


def runs_in(folder: Path) -> list[Path]:
    """The folder itself, or the runs of a group: its sub-folders `seed-0`, `seed-1`, …"""
    try:
        if is_run(folder):
            return [folder]
        if not folder.is_dir():
            raise UserError(f"there is no run's folder {folder}")
        seeds = [
            (int(match[1]), path)
            for path in folder.iterdir()
            if (match := SEED.fullmatch(path.name)) and is_run(path)
        ]
    except (OSError, ValueError) as error:  # not allowed, or a name that no folder can have
        raise UserError(f"cannot read the folder {folder}: {error}") from None
    if not seeds:
        missing = RECORDS if (folder / CONFIG).is_file() else CONFIG
        raise UserError(
            f"{folder} is not a run's folder: it has no {missing}, and no sub-folders seed-0, "
            f"seed-1, … of runs"
        )
    return [path for _, path in sorted(seeds)]


def read_group(folder: Path) -> GroupInfo | None:
    """The group of a folder of seeds; none for the folder of a run."""
    if is_run(folder):
        return None
    try:
        path = folder / GROUP
        seeds = list_at(parse_json(read_text(path)), "seeds") if path.is_file() else []
    except (UserError, FormatError):
        seeds = []  # the runs in it can be shown all the same
    numbers = tuple(seed for seed in seeds if type(seed) is int)
    return GroupInfo(folder.resolve().name, str(folder), numbers)


def read_info(folder: Path, name: str | None = None) -> RunInfo:
    """The facts of a run beside its records; `name`: if it is not that of its folder."""
    config = integrity.read_config_data(folder / CONFIG)
    path, sessions = folder / ENVIRONMENT, ()
    with suppress(UserError):  # it only informs: without it the run is shown all the same
        if path.is_file():  # a pipe might never end
            sessions = sessions_of(read_text(path))
    return RunInfo(name or folder.resolve().name, str(folder), config, sessions)


class RunFollower:
    """A run's view, and the records that it has not seen yet."""

    def __init__(self, folder: Path, name: str | None = None) -> None:
        self.folder, self._name = folder, name
        integrity.check_records(folder, folder / RECORDS)
        self._reader = RecordReader(folder / RECORDS)
        info = read_info(folder, name)
        if integrity.newest_state(folder):  # it says what config and genotype should be
            integrity.check_run_config(folder, folder / CONFIG, info.config)
            if (folder / GENOTYPE).is_file():
                genotype_and_data(str(folder / GENOTYPE))
        self.view = view_of(info)

    def update(self) -> bool:
        """Read what is new; whether there was anything."""
        try:
            void, records = self._reader.news()
            if void:
                self.view = view_of(read_info(self.folder, self._name))
            for record in records:
                self.view.add(record)
        except OSError as error:
            raise UserError(f"cannot read {self.folder / RECORDS}: {error.strerror}") from None
        except FormatError as error:
            self._reader = RecordReader(self.folder / RECORDS)
            self.view = view_of(self.view.info)
            raise UserError(f"{error}{integrity.written_by(self.folder)}") from None
        return void or bool(records)


def read_view(folder: Path, name: str | None = None) -> View:
    """A run with all its records."""
    follower = RunFollower(folder, name)
    follower.update()
    return follower.view
