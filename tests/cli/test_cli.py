"""The command line, as real processes."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from prnas.config import recipes
from prnas.space import zoo
from prnas.space.genotype import Genotype
from tests.support.command_line import bad, good, in_terminal, uncoloured
from tests.support.settings import GENOTYPE201


def test_help_names_every_command() -> None:
    text = good("--help")
    for command in ("space", "zoo", "draw", "methods", "recipes", "config", "report", "records"):
        assert command in text
    assert "Usage: prnas" in good("space", "--help")


def test_space_overview() -> None:
    text = good("space")
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}
    assert lines["darts-like"][-3:] == ["12", "15", "4.6e+11"]
    assert "32 (36)" in text
    assert "73 (80)" in text
    assert "3.0e+09" in text
    assert "caption" in text  # the line that explains the difference
    assert "\x1b" not in text


def test_space_details_list_and_json() -> None:
    assert "36 convolutions" in " ".join(good("space", "depth-restricted").split())
    listed = good("space", "darts-like", "--list")
    assert "conv 5x5 d2 ×[1]" in listed
    assert len([line for line in listed.splitlines() if "x" in line or "skip" in line]) >= 15
    data = json.loads(good("space", "unrestricted", "--list", "--json"))
    assert (data["convolutions"], data["convolutions_with_dilated_1x1"]) == (73, 80)
    assert sum(map(len, data["by_distance"])) == data["operations"] == 76
    every = json.loads(good("space", "--json"))
    assert [one["convolutions"] for one in every] == [12, 32, 73, 2, 2]
    assert [one["cells"] for one in every[3:]] == [5**6, 4**6]
    assert "15,625" in good("space", "nasbench201")
    mine = json.loads(good("space", "darts-like", "--shape", "nasbench201", "--json"))
    assert (mine["cells"], mine["nodes"]) == (15**6, 3)


def test_a_cell_of_another_shape_is_drawn(tmp_path: Path) -> None:
    (tmp_path / "cell.json").write_text(GENOTYPE201.dumps())
    good("draw", "cell.json", cwd=tmp_path)
    text = (tmp_path / "cell.svg").read_text()
    assert "zero" in text
    assert "reduction" not in text


def test_space_of_a_users_own(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("name: mine\nlimits: {kernel_max: 5}\ninitial_pool: [conv 3x3]\n")
    text = good("space", str(own))
    assert "Setting mine" in text
    own.write_text("limits: {kernel_max: 6}\ninitial_pool: [conv 3x3, cnv]\n")
    message = bad("space", str(own))
    assert "limits: kernel must be odd, got 6" in message
    assert "initial_pool[1]: no operation is called 'cnv'" in message


def test_zoo() -> None:
    text = good("zoo")
    for name in zoo.names():
        assert name in text
    assert "2.51 ± 0.09" in text
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    assert rows["pr-darts-dl2"][-4:] == ["4.018", "4.0", "650.4", "0.82"]
    assert rows["drnas-imagenet"] == ["-", "-", "4.049", "-", "617.9", "-"]
    assert rows["oles-cifar10"][:3] == ["(2.41", "±", "0.11)"]
    disputed = good("zoo", "mdenas")
    assert "cell from   tanglang96/MDENAS" in disputed
    assert "counted are 3.783 M, neither its 4.1 M nor" in disputed
    assert "the mean over the paper's searches" in good("zoo", "darts-pt-0")
    assert "none of this very cell" in good("zoo", "oles-cifar100")
    one = good("zoo", "pr-darts-dl2")
    assert "conv 7x7 ×[1] of B1" in one
    assert "4,017,646 parameters, 650,369,664 multiply-accumulates" in one
    assert Genotype.loads(good("zoo", "nasnet-a", "--json")) == zoo.get("nasnet-a")
    assert [one["name"] for one in json.loads(good("zoo", "--json"))] == zoo.names()
    assert "Did you mean 'darts-v2'" in bad("zoo", "darts-v3")


def test_recipes_and_config(tmp_path: Path) -> None:
    assert "p-darts" in good("recipes")
    assert "space: unrestricted" in good("recipes", "unrestricted")
    assert "Did you mean 'quick'" in bad("recipes", "quik")
    listed = [recipe["name"] for recipe in json.loads(good("recipes", "--json"))]
    assert listed[: len(recipes.names())] == recipes.names()
    saved = tmp_path / "run.yaml"
    arguments = ["p-darts", "--set", "schedule.cycles.0.epochs=30", "--set", "seed=7"]
    printed = good("config", *arguments)
    good("config", *arguments, "-o", str(saved))
    assert saved.read_text() == printed == good("config", str(saved))
    assert json.loads(good("config", str(saved), "--json"))["seed"] == 7
    assert "seed: must be a valid integer" in bad("config", "--set", "seed=x")
    assert good("config") == good("config", "quick")  # the recipe that a search has by default
    assert list(tmp_path.iterdir()) == [saved]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["spac"], "Did you mean 'space'? Choose from: completion, config, data, "),
        (["space", "--lst"], "Did you mean --list?"),
        (["space", "nowhere.yaml"], "no setting and no file is called 'nowhere.yaml'"),
        (["space", "--steps", "99"], "--steps: must be from 0 to 12, got 99"),
        (["space", "--steps", "many"], "many"),
        (["space", "--shape", "nasbench101"], "nasbench201"),
        (["space", "--steps", "1.5"], "1.5"),
        (["space", "."], "is a folder"),
        (["draw"], "genotype"),
        (["draw", "pr-darts-dl3"], "Did you mean 'pr-darts-dl2'?"),
        (["draw", "pr-darts-dl2", "-o", "cells.jpg"], ".svg, .png"),
        (["draw", "pr-darts-dl2", "-o", "no/such/folder/cells.svg"], "cannot write"),
        (["config", "x" * 5000], "no recipe and no file"),
        (["config", "-o", "no/such/folder/run.yaml"], "cannot write"),
        (["zoo", "a", "b"], "prnas zoo takes no further argument, got 'b'"),
        (["draw", "."], ". is not a run's folder: it has no config.yaml"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_mistakes(arguments: list[str], said: str, tmp_path: Path) -> None:
    assert said.lower() in " ".join(bad(*arguments, cwd=tmp_path).lower().split())
    assert list(tmp_path.iterdir()) == []


def test_draw(tmp_path: Path) -> None:
    assert good("draw", "pr-darts-dl2", cwd=tmp_path) == "wrote pr-darts-dl2.svg\n"
    assert "conv 7x7" in (tmp_path / "pr-darts-dl2.svg").read_text()
    (tmp_path / "mine.json").write_text(zoo.get("darts-v1").dumps())
    good("draw", "mine.json", "-o", "cells.PNG", cwd=tmp_path)
    assert (tmp_path / "cells.PNG").read_bytes().startswith(b"\x89PNG")
    good("space", "darts-like", "--graph", "space.pdf", cwd=tmp_path)
    assert (tmp_path / "space.pdf").read_bytes().startswith(b"%PDF")
    (tmp_path / "mine.json").write_text(
        zoo.get("darts-v1").dumps().replace('"input": 2', '"input": 9')
    )
    assert "normal: nodes[3][1].input must be a state before" in bad(
        "draw", "mine.json", cwd=tmp_path
    )


def test_draw_the_cells_of_a_run(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "first"
    run.mkdir(parents=True)
    (run / "config.yaml").write_text("task: search\n")
    assert "has not found its cells yet" in bad("draw", "runs/first", cwd=tmp_path)
    (run / "genotype.json").write_text(zoo.get("darts-v1").dumps())
    assert good("draw", "runs/first", cwd=tmp_path) == "wrote first.svg\n"
    assert "first" in (tmp_path / "first.svg").read_text()


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"\xff\xfe\x00\x01")
    assert "is not a text file" in bad("draw", "a.json", cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json"]


def test_a_closed_pipe_is_no_error() -> None:
    command = [sys.executable, "-m", "prnas", "space", "unrestricted", "--list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.parametrize(
    ("command", "values"),
    [
        ("space", ["4.6e+11", "73 (80)"]),
        ("zoo", ["darts-minus-c100", "17.37 ± 0.14", "(2.61 ± 0.08)"]),
        ("recipes", ["p-darts"]),
        ("methods", ["sharpdarts", "2.69", "Zheng 2019"]),
    ],
)
def test_tables_fit_a_terminal_of_80_columns(command: str, values: list[str]) -> None:
    text = in_terminal(80, command)
    assert "\x1b[1m" in text  # bold headings
    plain = uncoloured(text)
    assert "…" not in plain
    assert max(len(line.rstrip()) for line in plain.splitlines()) <= 80
    assert "next: prnas" in plain
    for value in values:
        assert value in plain


def test_the_next_command_works_for_a_users_file(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("name: mine\n")
    assert f"next: prnas space {own} --list" in uncoloured(in_terminal(400, "space", str(own)))


def test_json_stays_json_beside_a_picture(tmp_path: Path) -> None:
    data = json.loads(good("space", "darts-like", "--json", "--graph", "a.svg", cwd=tmp_path))
    assert data["operations"] == 15
    assert (tmp_path / "a.svg").exists()


def test_files_cannot_drive_the_terminal(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text('name: "\\e[31mred\\e]0;title\\a"\n')
    assert "\x1b" not in good("space", str(own))
    own.write_text('"\\e[31mkey": 1\n')
    assert "\x1b" not in bad("space", str(own))


@pytest.mark.parametrize("redirect", [">&-", "> /dev/full", "2>&-"])
def test_output_that_cannot_be_written(redirect: str) -> None:
    if "full" in redirect and not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    command = f"{shlex.quote(sys.executable)} -m prnas zoo {redirect}"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == (2 if "full" in redirect else 0)
    assert "Traceback" not in done.stderr
    assert ("cannot write the output" in done.stderr) == ("full" in redirect)


def test_terminals_without_unicode() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "prnas", "zoo"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0
    assert "2.51 +- 0.09" in done.stdout
    command[-1:] = ["space", "--list"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert "conv 3x3 x[1]" in done.stdout
    command[-2:] = ["zoo", "é"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert "is called '?'" in done.stderr


def test_the_version() -> None:
    import prnas as package

    assert good("--version").strip() == package.__version__
