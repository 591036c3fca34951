"""The command line within this process: loading PyTorch for each command takes too long."""

import pytest

from prnas.cli import main


class Cli:
    """`first`: words that every command begins with."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *first: str) -> None:
        self._capsys, self._first = capsys, first

    def command(self, name: str) -> "Cli":
        return Cli(self._capsys, *self._first, name)

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        code = 0
        try:
            main([*self._first, *arguments])
        except SystemExit as end:
            code = int(end.code or 0)
        shown = self._capsys.readouterr()
        return code, shown.out, shown.err

    def good(self, *arguments: str) -> str:
        code, out, err = self.run(*arguments)
        assert (code, err) == (0, "")
        return out

    def bad(self, *arguments: str) -> str:
        """A user's mistake: one message, nothing printed."""
        code, out, err = self.run(*arguments)
        assert (code, out) == (2, "")
        assert "Traceback" not in err
        return " ".join(err.replace("│", " ").split())
