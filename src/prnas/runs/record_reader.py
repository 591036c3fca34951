"""Records that are still being written: what is new since the last look."""

from pathlib import Path

from prnas.io.errors import FormatError
from prnas.runs.records import Record, from_line, whole_lines

REMEMBERED = 200  # bytes before the place reached, by which a file that was cut back is known


class RecordReader:
    """Reads a run's records piece by piece. A resumed run cuts them back: then it starts anew."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._forget()

    def _forget(self) -> None:
        self._place, self._lines, self._tail = 0, 0, b""

    def news(self) -> tuple[bool, list[Record]]:
        """Whether all records told so far are void, and those that came since.

        A last line without its end is left for the next time. A `FormatError` names a bad line.
        """
        with self._path.open("rb") as file:
            file.seek(max(0, self._place - len(self._tail)))
            void = file.read(len(self._tail)) != self._tail
            if void:
                self._forget()
            file.seek(self._place)
            try:
                records = [self._read(line) for line in whole_lines(file)]
            except (FormatError, UnicodeDecodeError) as error:
                number = self._lines + 1
                self._forget()
                raise FormatError([f"{self._path}, line {number}: {error}"]) from None
        return void, records

    def _read(self, line: bytes) -> Record:
        record = from_line(line.decode())
        self._lines += 1
        self._place += len(line)
        self._tail = (self._tail + line)[-REMEMBERED:]
        return record
