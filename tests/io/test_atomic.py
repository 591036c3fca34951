"""Files that appear whole, and what is no file."""

import os
import threading
from pathlib import Path

from prnas.io.atomic import write_atomically, write_output


def test_a_link_stays_one(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    link.symlink_to(real)
    write_output(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    write_atomically(link, b"mine")  # for files of our own, nothing is written elsewhere
    assert not link.is_symlink()
    assert real.read_bytes() == b"new"


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
