"""Build the packages, and try them as a stranger would: fresh environments, outside of this folder.

    python tools/dist.py                       every step, about half an hour on two cores
    python tools/dist.py --skip tests fit      all but these
    python tools/dist.py --only build check    nothing but these; the packages stay in dist/
    python tools/dist.py --only fit --folder D with the environments that an earlier call left in D

Only Python itself is needed. The output of each command is in a log beside the environments; if a
step fails, its end is shown and everything is kept. The fit has two minutes, which is enough only
on a machine that has nothing else to do.
"""

import argparse
import email
import email.message
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
DIST, CONSTRAINTS = TOP / "dist", TOP / "constraints.txt"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
REQUIRED = ("Author", "Classifier", "License-Expression", "Project-URL", "Requires-Python")
# A link or picture of a README that only works beside the files of the repository.
RELATIVE = re.compile(r'(?:\]\(|(?:src|href)=")(?!https?:|#)[^)"]*')


class StepError(Exception):
    """A step that did not succeed; the message says why."""


class Trial:
    """The folder in which everything is tried, and how commands are run there."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log.txt"
        self.away = folder / "away"  # Where a user would be: nothing of the checkout is near.
        self.away.mkdir(parents=True, exist_ok=True)
        hidden = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME", "MAKEFLAGS", "MAKELEVEL")
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in hidden},
            "PYTHONNOUSERSITE": "1",
            # The versions that the tests run with, also for what builds the packages.
            "PIP_CONSTRAINT": str(CONSTRAINTS),
            "PIP_BUILD_CONSTRAINT": str(CONSTRAINTS),
        }

    def run(self, *command: str | Path, cwd: Path | None = None) -> str:
        """The output of a command that must succeed."""
        words = [str(word) for word in command]
        started = time.monotonic()
        done = subprocess.run(
            words,
            cwd=cwd or self.away,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        seconds = time.monotonic() - started
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(words)}\n{done.stdout}\n({seconds:.1f} s)\n\n")
        if done.returncode != 0:
            end = "\n".join(done.stdout.splitlines()[-40:])
            raise StepError(f"{' '.join(words)} ended with {done.returncode}:\n{end}")
        return done.stdout

    def environment_named(self, name: str) -> Path:
        """The `bin` folder of a fresh virtual environment."""
        folder = self.folder / name
        if not folder.is_dir():
            venv.create(folder, with_pip=True, symlinks=True)
        return folder / "bin"

    def prnas(self, *arguments: str | Path) -> str:
        """The command as it was installed from the wheel."""
        command = self.environment_named("user") / "prnas"
        if not command.exists():
            raise StepError("the wheel is not installed: run the step install as well")
        return self.run(command, *arguments)


def package(pattern: str) -> Path:
    """The one file of dist/ that fits."""
    found = sorted(DIST.glob(pattern))
    if len(found) != 1:
        raise StepError(
            f"dist/ has {len(found)} files {pattern}, and one is needed: run the step build"
        )
    return found[0]


# ---------------------------------------------------------------- the steps


def build(trial: Trial) -> str:
    """The sdist, and from it the wheel, into dist/."""
    tools = trial.environment_named("tools")
    trial.run(tools / "pip", "install", "--quiet", "build", "twine")
    shutil.rmtree(DIST, ignore_errors=True)
    trial.run(tools / "python", "-m", "build", "--outdir", DIST, TOP)
    files = [package("*.tar.gz"), package("*.whl")]
    return ", ".join(f"{file.name} ({file.stat().st_size / 1e6:.1f} MB)" for file in files)


def check(trial: Trial) -> str:
    """The content of both, their metadata, and the README as a package index shows it."""
    sdist, wheel = package("*.tar.gz"), package("*.whl")
    trial.run(trial.environment_named("tools") / "twine", "check", "--strict", sdist, wheel)
    with tarfile.open(sdist) as archive:
        members = [Path(member.name) for member in archive.getmembers() if not member.isdir()]
    packed = {Path(*path.parts[1:]).as_posix() for path in members} - {"PKG-INFO"}
    _same("the sdist", packed, "git", _tracked(trial) or packed)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        about = email.message_from_bytes(archive.read(metadata))
    modules = {name for name in names if name.startswith("prnas/")}
    sources = {name.removeprefix("src/") for name in packed if name.startswith("src/prnas/")}
    _same("the wheel", modules, "src", sources)
    _check_metadata(about)
    return f"{len(packed)} files in the sdist, {len(modules)} in the wheel, metadata complete"


def _tracked(trial: Trial) -> set[str]:
    """What git has; nothing where this folder is not a repository."""
    if not (TOP / ".git").exists() or shutil.which("git") is None:
        return set()
    files = trial.run("git", "-C", TOP, "ls-files", "-z").split("\0")
    return {name for name in files if name and (TOP / name).exists()}


def _same(what: str, first: set[str], other: str, second: set[str]) -> None:
    if first != second:
        more, less = sorted(first - second)[:10], sorted(second - first)[:10]
        raise StepError(f"{what} has {more}, which {other} has not, and lacks {less}")


def _check_metadata(about: email.message.Message) -> None:
    missing = [name for name in REQUIRED if not about.get_all(name)]
    if missing:
        raise StepError(f"the metadata lack {', '.join(missing)}")
    payload = about.get_payload()
    readme = payload if isinstance(payload, str) else ""
    if "# prnas" not in readme:
        raise StepError("the metadata have no README")
    if relative := RELATIVE.findall(readme):
        raise StepError(f"links of the README lead nowhere on a package index: {relative[:5]}")


def install(trial: Trial) -> str:
    """The wheel in a fresh environment: how long it takes, and how much disk."""
    pip = trial.environment_named("user") / "pip"
    started = time.monotonic()
    trial.run(pip, "install", "--no-cache-dir", package("*.whl"))
    seconds = time.monotonic() - started
    trial.run(pip, "check")
    folder = trial.folder / "user"
    size = sum(file.lstat().st_size for file in folder.rglob("*") if not file.is_dir())
    torch = trial.run(
        folder / "bin" / "python", "-c", "import torch; print(torch.__version__)"
    ).strip()
    return f"{seconds:.0f} s, {size / 1e9:.2f} GB with PyTorch {torch}"


def commands(trial: Trial) -> str:
    """The version, the help of every command with its examples, and the doctor."""
    version = trial.prnas("--version").strip()
    if f"-{version}-" not in package("*.whl").name:
        raise StepError(f"prnas --version says {version}")
    program = "from prnas.cli.commands import COMMANDS; print(*(c.__name__ for c in COMMANDS))"
    names = trial.run(trial.environment_named("user") / "python", "-c", program).split()
    for name in names:
        if "Examples:" not in trial.prnas(name, "--help"):
            raise StepError(f"prnas {name} --help shows no examples")
    print(trial.prnas("doctor"))
    return f"help of {len(names)} commands"


def search(trial: Trial) -> str:
    """`prnas search` to its end, on the digits."""
    shutil.rmtree(trial.away / "runs" / "first", ignore_errors=True)
    trial.prnas("search", "--name", "first")
    _must_exist(trial.away / "runs" / "first" / "genotype.json")
    return "nine cycles, a genotype"


def report(trial: Trial) -> str:
    """The report of that search, as a browser shows it."""
    trial.prnas("report", "runs/first")
    page = trial.away / "runs" / "first" / "report.html"
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        if os.environ.get("PRNAS_NEED_BROWSER"):
            raise StepError("there is no browser (Debian: apt-get install chromium)")
        return "written; not opened: there is no browser (Debian: apt-get install chromium)"
    shown = trial.run(
        *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        *("--enable-logging=stderr", "--virtual-time-budget=20000", "--dump-dom", page.as_uri()),
    )
    charts = len(set(re.findall(r'data-chart="([^"]+)"', shown)))
    complaints = [line for line in shown.splitlines() if "CONSOLE" in line]
    if 'data-ready="true"' not in shown or charts == 0 or complaints:
        raise StepError(f"the page has {charts} charts, and says {complaints[:5]}")
    return f"{charts} charts in {Path(browser).name}, no complaint"


def fit(trial: Trial) -> str:
    """`prnas fit digits` within two minutes; what it exported runs without prnas."""
    shutil.rmtree(trial.away / "runs" / "fitted", ignore_errors=True)
    started = time.monotonic()
    trial.prnas("fit", "digits", "--minutes", "2", "--name", "fitted")
    seconds = time.monotonic() - started
    folder = trial.away / "runs" / "fitted"
    for name in ("fit.html", "MODEL-CARD.md", "results.json", "model/model.json", "export/net.py"):
        _must_exist(folder / name)
    trial.run(trial.environment_named("user") / "python", folder / "export" / "net.py")
    return f"{seconds:.0f} s"


def tests(trial: Trial) -> str:
    """`make test` in the unpacked sdist."""
    shutil.rmtree(trial.folder / "source", ignore_errors=True)
    with tarfile.open(package("*.tar.gz")) as archive:
        archive.extractall(trial.folder / "source", filter="data")
    (source,) = (trial.folder / "source").iterdir()
    shown = trial.run("make", "test", f"PYTHON={sys.executable}", cwd=source)
    summary = [line for line in shown.splitlines() if re.search(r"\d+ (passed|skipped)", line)]
    return summary[-1] if summary else "passed"


def _must_exist(path: Path) -> None:
    if not path.exists():
        raise StepError(f"{path.name} was not written to {path.parent}")


STEPS: tuple[Callable[[Trial], str], ...] = (
    *(build, check, install, commands, search, report, fit),
    tests,
)


def main(arguments: Sequence[str] | None = None) -> int:
    names = [step.__name__ for step in STEPS]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--skip", nargs="+", choices=names, default=[])
    parser.add_argument("--folder", type=Path, help="use this one, and keep it; also one of before")
    given = parser.parse_args(arguments)
    folder = given.folder or Path(tempfile.mkdtemp(prefix="prnas-dist-"))
    trial = Trial(folder.absolute())
    begun = time.monotonic()
    for step in STEPS:
        if step.__name__ not in given.only or step.__name__ in given.skip:
            continue
        started = time.monotonic()
        try:
            result = step(trial)
        except StepError as error:
            print(f"{step.__name__:<9} FAILED: {error}\nEverything is kept in {folder}")
            return 1
        print(f"{step.__name__:<9} {time.monotonic() - started:6.0f} s  {result}", flush=True)
    print(f"all done in {(time.monotonic() - begun) / 60:.1f} minutes; the packages are in {DIST}")
    if given.folder is None:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
