"""Command lines of real, misspelt and hostile words. None of them can start long work."""

import os
import shutil
from pathlib import Path
from random import Random

from prnas.config import recipes
from prnas.space import zoo
from tests.support.made_models import save_tiny
from tests.support.synthetic_runs import write_search
from torture.fuzzing.kinds import Arena, Kind, Maker

# Options that would start work, or a server, are not among them: `harmless` sets those.
COMMANDS: dict[str, list[str]] = {
    "space": ["--list", "--graph", "--steps", "--json"],
    "zoo": ["--json"],
    "draw": ["--out", "-o"],
    "recipes": ["--json"],
    "data": [
        "--root",
        "--sample",
        "--image-size",
        "--flip",
        "--crop-padding",
        "--cutout",
        "--seed",
    ],
    "config": ["--set", "--json", "--out", "-o"],
    "search": [
        *("--data-root", "--seed", "--set", "--runs", "--name", "--resume", "--accelerator"),
        *("--precision", "--memory-limit", "--picture"),
    ],
    "retrain": ["--data-root", "--seed", "--seeds", "--set", "--runs", "--name", "--resume"],
    "study": ["--set", "--runs", "--name", "--engine", "--slots", "--out", "--json", "--csv"],
    "evaluate": ["--data", "--data-root", "--part", "--set", "--batch", "--out", "--picture"],
    "predict": ["--top", "--batch", "--accelerator", "--threads", "--json"],
    "export": ["--out", "-o", "--format", "--normalize", "--force", "--json"],
    "report": ["--out", "--figures", "--json"],
    "records": ["--csv", "--json", "--candidates", "--out", "-o"],
    "watch": ["--host"],
    "": ["--version", "--help", "-h"],
}
TEXTS = [
    *(
        "",
        " ",
        "-",
        "--",
        "---",
        "=",
        "-1",
        "0",
        "1",
        "3.5",
        "1e400",
        "nan",
        "inf",
        "-inf",
        "9" * 400,
    ),
    *(
        "\x1b[2J",
        "\r\n",
        "\t",
        "\ud800",
        os.fsdecode(b"\xff\xfe"),
        "\u202e",
        "💥",
        "²",
        "٣",
        "\x7f",
    ),
    *("x" * 300, "x/" * 3000, "y" * 100_000, "x.svg/" * 900 + "x.svg", "z" * 300 + ".html"),
    *(
        "/dev/null/x",
        "/proc/x",
        "~",
        "~nobody-there/x",
        "$HOME",
        "*",
        "a b",
        "'",
        '"',
        "`id`",
        "%s%n",
    ),
    *(
        "{}",
        "[",
        "!!python/name:os.system",
        "null",
        "true",
        "con",
        "nul.svg",
        ".svg",
        "x.svg",
        "x.png",
    ),
    *("seed=1", "seed", "seed=", "a.b.c=1", "schedule.cycles.0.epochs=1", "data.name=npz:nowhere"),
    *(
        "seed=0x" + "f" * 5000,
        "seed=" + "1:" * 2000 + "1",
        'data.root="a\\0b"',
        "data.root=~nobody/x",
    ),
    *(
        "npz:nowhere.npz",
        "folder:nowhere",
        "npz:",
        "folder:",
        "npz:/",
        "npz:~nobody/x",
        "npz:/dev/zero",
    ),
    *(
        "npz:" + "x" * 300,
        "folder:" + "x" * 5000,
        "folder:~nobody",
        "digits",
        "cpu",
        "cuda",
        "auto",
    ),
    *(
        "test",
        "onnx",
        "x.py",
        "x.safetensors",
        "x.html",
        "python",
        "safetensors",
        os.fsdecode(b"\xff.svg"),
    ),
]
if os.geteuid() != 0:  # a fault could replace a device by a file, if that is allowed
    TEXTS += ["/dev/null", "/dev/full", "/"]


def _command(arena: Arena) -> Maker:
    run = write_search(arena.pristine / "run", cycles=1)
    model = save_tiny(arena.pristine / "model")
    names = [*recipes.names(), *zoo.names(), "darts-like", "baselines-quick", "nowhere"]

    def make(random: Random, case: Path) -> list[str]:
        shutil.copytree(run, case / "run")
        shutil.copytree(model, case / "model")
        real = ["run", "model", "run/config.yaml", "model/model.json", "run/genotype.json", "."]

        def text() -> str:
            return random.choice((random.choice(TEXTS), random.choice(names), random.choice(real)))

        name = random.choice(sorted(COMMANDS))
        line = [name] if name else []
        if random.random() < 0.03:
            line = [random.choice(TEXTS)]
        line += [text() for _ in range(random.choice((0, 1, 1, 2, 3)))]
        for _ in range(random.choice((0, 1, 1, 2, 4))):
            option = random.choice(COMMANDS[name])
            if random.random() < 0.1:
                option = random.choice(
                    (option + "x", option[:-1], option.upper(), "-" + option, "-z")
                )
            line += [f"{option}={text()}"] if random.random() < 0.2 else [option, text()]
        return harmless(line, name)

    return make


def harmless(line: list[str], name: str) -> list[str]:
    """The line, made to end soon: no search, no server, no download."""
    online = ("cifar", "fashion", "data.name=cifar")
    line = ["nowhere" if word.startswith(online) else word for word in line]
    match name:
        case "study":
            line += ["--list"]
        case "search" | "retrain":
            line += ["--data=npz:nowhere.npz", "--devices=1", "--threads=1"]
        case "watch":
            line += ["--port=70000"]
        case "evaluate":
            line += ["--skip-speed"]
        case _:
            pass
    return line


KINDS = (Kind("command", _command, pure=False),)
