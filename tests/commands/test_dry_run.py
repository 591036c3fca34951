"""`--dry-run` of `prnas search` and `prnas retrain`."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from prnas.runs.run import Stopped
from tests.support.in_process import Cli

TINY = str(Path(__file__).parents[2] / "examples" / "tiny.yaml")


def test_a_search_is_planned_and_timed(here: Cli, tmp_path: Path) -> None:
    out = here.command("search").good(TINY, "--dry-run")
    assert re.search(r"^images +digits$", out, re.MULTILINE)
    assert re.search(r"^It takes about \d", out, re.MULTILINE)
    plan = json.loads(here.command("search").good(TINY, "--dry-run", "--json", "--seed", "5"))
    assert plan["config"]["seed"] == 5
    assert 0 < plan["seconds"] < 1000
    assert list(tmp_path.iterdir()) == []


def test_budgets_are_shown_and_bound_the_time(here: Cli) -> None:
    long = ["--set", "data={name: digits}", "--set", "schedule.cycles.0.epochs=1000"]
    given = [*long, "--set", "searcher.budget={seconds: 60, steps: 4000}"]
    out = here.command("search").good("random-shared-small", "--dry-run", *given)
    (line,) = re.findall(r"^budget +(.*)$", out, re.MULTILINE)
    assert line.startswith("at most 4,000 steps, at most 1 m 0 s with the supernet's training")
    plan = json.loads(
        here.command("search").good("random-shared-small", "--dry-run", "--json", *given)
    )
    assert plan["seconds"] < 80
    out = here.command("search").good("random", "--dry-run")
    assert re.search(r"^budget +100 evaluations$", out, re.MULTILINE)


def test_a_training_is_planned_and_timed(here: Cli, tmp_path: Path) -> None:
    small = ["--set", "data.images=300", "--set", "training.epochs=3"]
    out = here.command("retrain").good("darts-v2", "retrain-quick", "--dry-run", *small)
    assert re.search(r"^epochs +3$", out, re.MULTILINE)
    assert "Nothing was written" in out
    assert (
        here.command("retrain")
        .good("resnet8", "retrain-quick", "--dry-run", *small)
        .count("resnet, ")
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [["search", TINY], ["retrain", "resnet8"], ["study", "baselines-quick"]]
)
def test_stopped_while_it_measures_it_ends_without_a_word(
    arguments: list[str], here: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise Stopped(None, signal.SIGINT)

    for room in ("searching", "retraining"):
        monkeypatch.setattr(f"prnas.{room}.api.start", stopped)
    assert here.run(*arguments, "--dry-run") == (130, "", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "quick", "--dry-run", "--seeds", "3"], "leave out --seeds"),
        (["search", "--resume", ".", "--dry-run"], "leave out --dry-run"),
        (["search", "quick", "--dry-run", "--data", "npz:nowhere.npz"], "nowhere.npz"),
    ],
)
def test_mistakes(arguments: list[str], message: str, here: Cli) -> None:
    command, *rest = arguments
    assert message in here.command(command).bad(*rest)
