"""Follow a tutorial as its reader would: save the files, type the commands, compare the output."""

import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support import warm
from tests.support.fences import assert_shown, blocks_of

RUN_PROGRAM = "import runpy, sys; sys.path.insert(0, ''); runpy.run_path({}, run_name='__main__')"


def follow(
    page: Path,
    folder: Path,
    prnas: Callable[[Sequence[str]], str],
    results: Sequence[str] = (),
) -> list[str]:
    """In an empty folder, which is the current one; `prnas` runs a command and returns its output.

    `results` are words that another result may replace by each other. Returns the commands.
    """
    typed: list[str] = []
    for block in blocks_of(page):
        if block.file is not None:
            (folder / block.file).write_text(block.text, encoding="utf-8")
        if block.language != "console":
            continue
        for command, shown in block.commands:
            output = _run(shlex.split(command, comments=True), folder, prnas)
            assert_shown(shown, output, results)
            typed.append(command)
    return typed


def _run(words: list[str], folder: Path, prnas: Callable[[Sequence[str]], str]) -> str:
    program, *arguments = words
    if program == "prnas":
        return prnas(arguments)
    if program == "python":
        process = warm.start("-c", RUN_PROGRAM.format(repr(arguments[0])), cwd=folder)
        output, problems = process.communicate()
        assert process.returncode == 0, problems
        return output
    assert program in ("cp", "cmp")
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout
