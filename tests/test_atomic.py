"""Files that appear whole, and what is no file."""

import os
import threading
from pathlib import Path

from prnas.atomic import write_output


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    """As root, `-o /dev/null` would otherwise leave a plain file in its place."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_output(pipe, b"hello")
    reader.join(10)
    assert got == [b"hello"]
    assert pipe.is_fifo()
    assert [one.name for one in tmp_path.iterdir()] == ["pipe"]
