"""Mistakes on the command line of `prnas fit`: one message, nothing written."""

import signal
from pathlib import Path
from typing import Any

import pytest

from prnas.fitting import fit
from prnas.runs.run import Stopped
from tests.support.in_process import Cli


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "say which pictures"),
        (["digits", "--minutes", "0"], "--minutes must be from 0.1"),
        (["digits", "--minutes", "nan"], "--minutes must be from 0.1"),
        (["digits", "--max-params", "many"], "must be a number such as 3M"),
        (["digits", "--max-latency", "soon"], "must be a time such as 20ms"),
        (["no/folder"], "there is no folder 'no/folder'"),
        (["digit"], "Did you mean 'digits'?"),
        (["digits", "--name", "a/b"], "--name is a folder's name"),
        (["--resume", "nowhere"], "there is no folder nowhere"),
        (["--resume", "."], "is not the folder of a fit"),
        (["digits", "--resume", ".", "--seed", "1"], "leave out --seed, the pictures 'digits'"),
        (["digits", "--from", "nothing"], "is not a trained model"),
        (["digits", "--max-params", "10"], "the limits are too low"),
    ],
)
def test_mistakes_are_named(here: Cli, tmp_path: Path, words: list[str], message: str) -> None:
    assert message in here.bad("fit", *words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--quiet", "--json", None])
def test_when_it_was_stopped_it_says_how_to_go_on(
    here: Cli, option: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For scripts not among the output."""

    def stopped(folder: Path, **_: Any) -> None:
        raise Stopped(folder, signal.SIGINT)

    monkeypatch.setattr(fit, "resume", stopped)
    code, *said = here.run("fit", "--resume", "my fit", *([] if option is None else [option]))
    assert code == 130
    there, other = said if option is None else reversed(said)
    assert there.endswith("prnas fit --resume 'my fit'\n")
    assert other == ""


@pytest.mark.parametrize("option", ["--dry-run", "--name=x"])
def test_stopped_while_it_measures_it_ends_without_a_word(
    here: Cli, tmp_path: Path, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is nothing yet to go on with."""

    def stopped(*_: Any) -> None:
        raise Stopped(None, signal.SIGTERM)

    monkeypatch.setattr("prnas.fitting.measure.Meter.training", stopped)
    monkeypatch.setattr("prnas.fitting.measure.Meter.search", stopped)
    assert here.run("fit", "digits", option, "--quiet") == (143, "", "")
    assert list(tmp_path.iterdir()) == []
