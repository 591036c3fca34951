"""The words of `prnas search`: what is refused, before anything is imported, read or written."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import prnas.searching
from prnas import cli
from prnas.config import recipes
from prnas.config.search import SearchConfig
from prnas.io.yaml_files import dump_yaml
from prnas.runs import named
from prnas.runs.events import SearchResult
from prnas.runs.run import Stopped
from prnas.space import zoo
from prnas.space.genotype import Genotype
from tests.support.command_line import bad, good, modules_after
from tests.support.in_process import Cli
from tests.support.settings import small_training
from tests.support.synthetic_search import play

MISTAKES = [
    (["quik"], "Did you mean 'quick'?"),
    (["--seed", "1.5"], "1.5"),
    (["--seed", "-1"], "seed: must be greater than or equal to 0"),
    (["--devices", "0"], "compute.devices"),
    (["--devices", "two"], "a whole number is needed"),
    (["--threads", "0"], "compute.threads"),
    (["--accelerator", "tpu"], "tpu"),
    (["--precision", "16"], "16"),
    (["--memory-limit", "much"], "much"),
    (["--memory-limit", "-1"], "compute.memory_limit"),
    (["--memory-limit", "nan"], "compute.memory_limit"),
    (["--data", ""], "data.name"),
    (["--set", "seed"], "write it as path=value"),
    (["--set", "sed=1"], "Did you mean 'seed'?"),
    (["--name", "a/b"], "--name is a folder's name"),
    (["--name", ".."], "--name is a folder's name"),
    (["--name", ""], "--name is a folder's name"),
    (["--picture", "cells.jpg"], "--picture must end in .svg, .png, .pdf"),
    (["--picture", "no/such/cells.svg"], "there is no folder"),
    (["--resume", "nowhere"], "there is no run folder nowhere"),
    (["--resume", ".", "quick"], "leave out the recipe 'quick'"),
    (["--resume", ".", "--seed", "1", "--data", "digits"], "leave out --data, --seed"),
    (["--resume", ".", "--name", "a", "--runs", "b"], "leave out --runs, --name"),
    (["--resume", ".", "--data-root", "a"], "leave out --data-root"),
    (["--resume", ".", "--set", "seed=1"], "leave out --set seed=1"),
    (["--resume", ".", "--max-params", "3M"], "leave out --max-params"),
    (["--engine", "rye"], "no engine is called 'rye'. Did you mean 'ray'?"),
    (["--engine", "local", "--address", "auto"], "an address is for the engine ray"),
    (["--slots", "2"], "--address and --slots are for --engine"),
    (["--engine", "local", "--seeds", "2"], "is for the short trainings of a single search"),
    (["--max-params", "3Q"], "final.max_params: must be a number such as 3M, 2.5M, 800k"),
    (["--max-params", "1k"], "the smallest one, of 8 channels, 5 cells, 1x8x8 images, has"),
    (["--max-macs", "-5"], "final.max_macs: must be a number such as"),
    (["--max-latency", "9ms"], "needs final.latency: a table that `prnas latency` measures"),
    (["--latency", "nowhere.json"], "cannot read nowhere.json: No such file"),
    (["--quiett"], "--quiet"),
]


@pytest.mark.parametrize(("arguments", "said"), MISTAKES, ids=lambda one: " ".join(one)[:40])
def test_mistakes(here: Cli, arguments: list[str], said: str, tmp_path: Path) -> None:
    assert said in here.bad("search", *arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_an_accelerator_that_is_not_here(here: Cli, tmp_path: Path) -> None:
    said = here.bad("search", "--accelerator", "cuda")
    assert "cannot compute on 'cuda': PyTorch finds here only" in said
    assert not (tmp_path / "runs").exists()


def test_mistakes_end_in_one_message(tmp_path: Path) -> None:
    assert bad("search", "--name", "a/b", cwd=tmp_path).count("\n") == 1
    assert "whole number" in bad("search", "--devices", "two", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_help() -> None:
    text = good("search", "--help")
    options = ("--data", "--seed", "--set", "--resume", "--memory-limit", "--picture")
    for option in (*options, "--max-params", "--max-macs", "--max-latency", "--latency"):
        assert option in text
    assert "--no-" not in text
    assert "Usage: prnas search [OPTIONS] [RECIPE]\n" in text
    assert "--set KEY=VALUE " in text
    assert "[default: ()]" not in text
    assert "[default: False]" not in text
    loaded = modules_after("search", "--help")
    assert not loaded & {"torch", "numpy", "pydantic", "prnas.commands.search"}


class FakeEngine(ModuleType):
    """Takes what the command gives, and plays a search that trains nothing."""

    def __init__(self) -> None:
        super().__init__("prnas.searching.api")
        self.calls: list[tuple[Any, dict[str, Any]]] = []
        self.stopped: Stopped | None = None
        self.first = True  # of several processes
        self.folder: Path | None = None

    def start(self, config: SearchConfig, **options: Any) -> SearchResult:
        return self._run(config, options)

    def resume(self, folder: Path, **options: Any) -> SearchResult:
        return self._run(folder, options)

    def _run(self, what: Any, options: dict[str, Any]) -> SearchResult:
        self.calls.append((what, options))
        callbacks = [one for one in options["callbacks"] if self.first]
        if self.stopped is not None:
            play(callbacks, cycles=1)
            raise self.stopped
        return play(callbacks, folder=self.folder)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    made = FakeEngine()
    monkeypatch.setitem(sys.modules, made.__name__, made)
    monkeypatch.setattr(prnas.searching, "api", made, raising=False)
    monkeypatch.chdir(tmp_path)
    return made


def test_what_the_engine_gets(engine: FakeEngine, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["search"])
    ((config, options),) = engine.calls
    assert config == recipes.any_recipe("quick")
    assert (options["runs"], options["name"], options["recipe"]) == (Path("runs"), None, "quick")
    assert "normal cell" in capsys.readouterr().out


def test_a_report_is_there_before_the_end_is_told(
    engine: FakeEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.folder = tmp_path / "a run"
    engine.folder.mkdir()
    (engine.folder / "environment.json").write_text("{}")
    cli.main(["search"])
    out = capsys.readouterr().out
    assert (engine.folder / "report.html").stat().st_size > 50_000
    assert "report.html: the report; open it in a browser" in out
    assert f"next: prnas retrain '{engine.folder}'" in out
    assert "note:" not in out
    (engine.folder / "report.html").unlink()
    (engine.folder / "report.html").mkdir()
    cli.main(["search"])
    assert capsys.readouterr().out.count("cannot write the report") == 1


def test_every_option_reaches_the_config(engine: FakeEngine) -> None:
    words = "search darts --quiet --data no --data-root 007 --seed 5 --runs here --name mine"
    words += " --devices 2 --accelerator cpu --precision bf16-mixed --compile --recompute"
    words += " --threads 3 --memory-limit 0.00001 --set seed=4 --set weights.lr=0.5"
    words += " --max-params 3M --max-macs 0.5G"
    cli.main(words.split())
    ((config, options),) = engine.calls
    assert (config.data.name, config.data.root) == ("no", "007")  # words, not YAML's false and 7
    assert (config.seed, config.weights.lr) == (5, 0.5)
    assert (config.final.max_params, config.final.max_macs) == (3_000_000, 500_000_000)
    assert config.compute.model_dump() == {
        "accelerator": "cpu",
        "supernet": "auto",
        "devices": 2,
        "precision": "bf16-mixed",
        "threads": 3,
        "compile": True,
        "recompute": True,
        "memory_limit": 0.00001,
        "timeout_minutes": 10.0,
    }
    assert (options["runs"], options["name"], options["recipe"]) == (Path("here"), "mine", "darts")


def test_a_recipe_of_ones_own(engine: FakeEngine, tmp_path: Path) -> None:
    (tmp_path / "my own.yaml").write_text("seed: 3\n")
    cli.main(["search", str(tmp_path / "my own.yaml"), "--quiet"])
    ((config, options),) = engine.calls
    assert (config.seed, options["recipe"]) == (3, "my own")


def test_resuming(engine: FakeEngine, tmp_path: Path) -> None:
    words = "--threads 1 --set compute.devices=2 --set checkpoints.keep=5 --quiet"
    cli.main(["search", "--resume", str(tmp_path), *words.split()])
    ((folder, options),) = engine.calls
    assert folder == tmp_path
    assert options["overrides"] == ["compute.devices=2", "checkpoints.keep=5", "compute.threads=1"]


def test_an_engine_makes_short_trainings(engine: FakeEngine) -> None:
    cli.main(["search", "halving-small", "--engine", "local", "--slots", "3", "--quiet"])
    cli.main(["search", "halving-small", "--quiet"])
    (_, options), (_, without) = engine.calls
    trainers = options["make_trainers"](2, "cpu")
    assert trainers.num_at_once == 3
    trainers.close()
    assert without["make_trainers"] is None


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopping(
    number: int, code: int, engine: FakeEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.stopped = Stopped(Path("runs/my run"), number)
    with pytest.raises(SystemExit) as exited:
        cli.main(["search"])
    assert exited.value.code == code
    assert "prnas search --resume 'runs/my run'\n" in capsys.readouterr().out


def test_a_picture(engine: FakeEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["search", "--quiet", "--picture", "cells.svg"])
    assert (tmp_path / "cells.svg").exists()
    assert capsys.readouterr().out == ""  # Quiet, and without a folder.


def test_for_scripts_there_is_one_line_or_json(
    engine: FakeEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.folder = tmp_path / "a run"
    engine.folder.mkdir()
    (engine.folder / "environment.json").write_text("{}")
    cli.main(["search", "--quiet"])
    assert capsys.readouterr() == (f"{engine.folder}\n", "")
    cli.main(["search", "--json", "--quiet", "--picture", "cells.svg"])
    out, err = capsys.readouterr()
    data = json.loads(out)
    assert (data["task"], data["folder"], err) == ("search", str(engine.folder), "")
    assert Genotype.from_json(data["genotype"]) == zoo.get("pr-darts-dl2")
    assert (data["epochs"], data["seconds"]) == (20, 200.0)
    assert 0 <= data["validation_accuracy"] <= 1
    engine.stopped = Stopped(Path("runs/run"), signal.SIGINT)
    for option in ("--quiet", "--json"):
        with pytest.raises(SystemExit):
            cli.main(["search", option])
        out, err = capsys.readouterr()
        assert out == ""
        assert err.endswith("prnas search --resume runs/run\n")


def test_for_scripts_after_a_training(here: Cli, images: Path, tmp_path: Path) -> None:
    config = small_training(images, training={"epochs": 1, "warmup_epochs": 0})
    (tmp_path / "own.yaml").write_text(dump_yaml(config.to_data()))
    words = ("retrain", "darts-v1", "own.yaml", "--name")
    assert here.good(*words, "one", "--quiet") == "runs/one\n"
    assert here.good("retrain", "--resume", "runs/one", "--quiet") == "runs/one\n"
    data = json.loads(here.good("retrain", "--resume", "runs/one", "--json"))
    assert (data["task"], data["folder"], data["seed"]) == ("retrain", "runs/one", 1)
    assert 0 <= data["test_error"] <= 1
    assert here.good(*words, "two", "--seeds", "2", "--quiet") == "runs/two\n"
    group = json.loads(here.good("retrain", "--resume", "runs/two", "--json"))
    assert (group["folder"], group["test_error"]["seeds"]) == ("runs/two", 2)
    assert group["runs"][0]["test_error"] == data["test_error"]


def test_only_the_first_process_speaks(
    engine: FakeEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.first = False
    cli.main(["search", "--picture", "cells.svg"])
    engine.stopped = Stopped(Path("run"), signal.SIGINT)
    with pytest.raises(SystemExit):
        cli.main(["search"])
    assert capsys.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


GUARDED = """
import os, signal, sys
from prnas.runs import signals
real = signals.guard
def guard(runs):
    assert not {"torch", "numpy"} & set(sys.modules)
    real(runs)
    if hasattr(signal, "SIGUSR1"):
        os.kill(os.getpid(), signal.SIGUSR1)
    print("alive", flush=True)
    os.kill(os.getpid(), signal.NUMBER)
    print("never", flush=True)
signals.guard = guard
sys.argv = ["prnas", "search"]
from prnas.__main__ import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_heeded_before_anything_heavy_is_imported(
    number: signal.Signals, tmp_path: Path
) -> None:
    program = GUARDED.replace("NUMBER", number.name)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "alive\n", "")


INTERRUPTED_IMPORT = """
import sys, types
class Swallowing(types.ModuleType):
    def __getattr__(self, name):
        import signal
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("something was swallowed")
sys.modules["prnas.cli"] = Swallowing("prnas.cli")
sys.argv = ["prnas", "zoo"]
from prnas.__main__ import main
main()
"""


def test_an_interrupt_that_an_import_swallows_is_no_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_finished_search_whose_images_are_not_here_downloads_nothing(
    here: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "first"
    shutil.copytree(Path(__file__).parents[1] / "runs" / "format-2" / "search-finished", run)
    before = {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}
    monkeypatch.setattr("prnas.runs.named.is_absent", lambda name, root: True)
    said = here.good("search", "--resume", "first")
    assert said.startswith("first has ended: nothing is left to compute\n")
    assert here.good("search", "--resume", "first", "--quiet") == "first\n"
    assert {file: file.read_bytes() for file in run.rglob("*") if file.is_file()} == before


def test_an_unfinished_search_needs_its_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "first"
    shutil.copytree(Path(__file__).parents[1] / "runs" / "format-2" / "search-unfinished", run)
    monkeypatch.setattr("prnas.runs.named.is_absent", lambda name, root: True)
    assert not named.ended_without_images(run, "search")
    (run / "genotype.json").touch()
    assert named.ended_without_images(run, "search")
