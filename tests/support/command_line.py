"""`prnas` as a real process; only what a terminal shows, and what is imported, by a fresh one."""

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support import warm


def prnas(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    process = warm.start("-m", "prnas", *arguments, cwd=cwd, env={"COLUMNS": "100"})
    out, err = process.communicate()
    return subprocess.CompletedProcess(arguments, process.wait(), out, err)


def good(*arguments: str, cwd: Path | None = None) -> str:
    done = prnas(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def bad(*arguments: str, cwd: Path | None = None) -> str:
    """A user's mistake: one message, exit code 2, nothing printed, no traceback."""
    done = prnas(*arguments, cwd=cwd)
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


def in_terminal(columns: int, *arguments: str) -> str:
    """What a person sees in a terminal of that width."""
    main_end, other_end = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm", "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", "prnas", *arguments]
    process = subprocess.Popen(command, stdout=other_end, env=environment)
    os.close(other_end)
    seen = b""
    with contextlib.suppress(OSError):  # the terminal is gone when the process is
        while chunk := os.read(main_end, 65536):
            seen += chunk
    os.close(main_end)
    assert process.wait() == 0
    return seen.decode()


def uncoloured(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def modules_after(*arguments: str) -> set[str]:
    """What a real process has imported once the command is done."""
    return modules_after_each(arguments)[0]


def modules_after_each(*commands: Sequence[str]) -> list[set[str]]:
    """What a real process that runs the commands one after the other has imported after each."""
    program = (
        "import json, sys; from prnas.cli import main\n"
        "for arguments in json.loads(sys.argv[1]):\n"
        "    try: main(arguments)\n"
        "    except SystemExit: pass\n"
        "    print('@@')\n"
        "    print('\\n@'.join(sys.modules), file=sys.stderr, end='\\n@@')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(commands)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(done.stdout.split("@@\n")[: len(commands)])
    return [set(loaded.split("\n@")) for loaded in done.stderr.split("\n@@")[:-1]]
