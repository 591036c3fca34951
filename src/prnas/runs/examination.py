"""The measurements of `prnas doctor`. They leave nothing behind; nothing broken stops them."""

import importlib.metadata
import os
import platform
import shutil
import signal
import sys
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Literal

import prnas
from prnas.data import catalog
from prnas.io.extras import EXTRAS
from prnas.runs.diagnosis import (
    AMX_VARIABLE,
    FEATURES,
    IN_THE_PACKAGE,
    MACOS,
    Device,
    Facts,
    Folder,
    ImageSet,
    Memory,
    Package,
    Processor,
    Torch,
)
from prnas.runs.environment import git_state, installed_version

# Variables that change what prnas and PyTorch do.
VARIABLES = (
    *(catalog.ROOT_VARIABLE, AMX_VARIABLE, "OMP_NUM_THREADS", "MKL_NUM_THREADS", "LC_ALL", "LANG"),
    *("PYTHONUTF8", "CUDA_VISIBLE_DEVICES", "CXX", "TMPDIR", "WORLD_SIZE", "RANK", "SLURM_JOB_ID"),
)
_COMPILERS = ("c++", "g++", "clang++", "cl")


def examine(runs: Path, data_root: Path | None = None) -> Facts:
    """Measure all of it; `runs` is where runs would be written."""
    package = Path(prnas.__file__).parent
    root = data_root or catalog.default_root()
    torch = _torch()  # first: it may try something in a copy of this process
    return Facts(
        prnas=prnas.__version__,
        installed_in=str(package),
        git=git_state(package),
        python=f"{platform.python_version()} ({platform.python_implementation()})",
        platform=platform.platform(),
        encoding=sys.stdout.encoding or "unknown",
        packages=required_packages(),
        extras={
            name: {package: installed_version(package) for package in extra.packages}
            for name, extra in EXTRAS.items()
        },
        processor=_processor(),
        memory=_memory(),
        torch=torch,
        folders=(
            look_at("runs", runs),
            look_at("data", root),
            look_at("temporary files", Path(tempfile.gettempdir())),
        ),
        images=tuple(ImageSet(name, _where(name, root)) for name in catalog.ABOUT),
        compiler=_compiler(),
        environment={name: os.environ[name] for name in VARIABLES if name in os.environ},
    )


def required_packages(distribution: str = "prnas") -> tuple[Package, ...]:
    """The packages that a distribution requires, without extras; none if pip did not install it."""
    from packaging.requirements import Requirement

    try:
        lines = importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return ()
    packages: list[Package] = []
    for requirement in map(Requirement, lines):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        version = installed_version(requirement.name)
        fits = version is not None and requirement.specifier.contains(version, prereleases=True)
        packages.append(Package(requirement.name, str(requirement.specifier), version, fits))
    return tuple(packages)


def look_at(role: Literal["runs", "data", "temporary files"], path: Path) -> Folder:
    """Whether something can be written to a folder: by writing, in it or where it would be made."""
    path = path.absolute()
    there = next((folder for folder in [path, *path.parents] if folder.exists()), path)
    problem: str | None = None
    free: int | None = None
    if not there.is_dir():
        problem = f"cannot be made: {there} is a file"
    else:
        with suppress(OSError):
            free = shutil.disk_usage(there).free
        try:
            with tempfile.TemporaryFile(dir=there) as file:
                file.write(b"prnas")
                file.flush()
        except OSError as error:
            problem = f"cannot be written to: {error.strerror}"
    return Folder(role, str(path), path.is_dir(), problem, free)


def _where(name: str, root: Path) -> str | None:
    if name not in catalog.SPECS:
        return IN_THE_PACKAGE
    folder = catalog.find(catalog.SPECS[name], root)
    return None if folder is None else str(folder)


def _processor() -> Processor:
    name, features = platform.processor() or platform.machine(), ""
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        lines = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        values = {key.strip(): value.strip() for key, value in lines.items()}
        name = values.get("model name", name)
        features = values.get("flags", values.get("Features", ""))
    words = set(features.split())
    cores = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return Processor(
        name, cores, usable, tuple(feature for feature in FEATURES if feature in words), load
    )


def _memory() -> Memory | None:
    try:
        import psutil

        from prnas.io.memory import free_memory
    except ImportError:  # Among the packages, it is listed as missing.
        return None
    return Memory(psutil.virtual_memory().total, int(free_memory()))


def _compiler() -> str | None:
    names = [os.environ["CXX"]] if os.environ.get("CXX") else _COMPILERS
    return next((path for name in names if (path := shutil.which(name))), None)


def _torch() -> Torch:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import torch
    except Exception as error:  # Whatever a broken installation raises.
        reason = str(error).strip().splitlines() or [type(error).__name__]
        return Torch(installed_version("torch"), "nothing known", problem=reason[0])
    outcome = _try_bfloat16()
    if torch.version.cuda:
        built_for = f"CUDA {torch.version.cuda}"
    elif torch.version.hip:
        built_for = f"ROCm {torch.version.hip}"
    else:
        built_for = MACOS if sys.platform == "darwin" else "the CPU"
    threads = torch.get_num_threads()
    devices = [Device("cpu", f"{threads} {'thread' if threads == 1 else 'threads'} by default")]
    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            about = torch.cuda.get_device_properties(number)
            devices.append(Device("cuda", about.name, about.total_memory))
    if torch.backends.mps.is_available():
        devices.append(Device("mps", platform.processor() or "Apple GPU"))
    if torch.xpu.is_available():
        names = [torch.xpu.get_device_name(number) for number in range(torch.xpu.device_count())]
        devices += [Device("xpu", name) for name in names]
    return Torch(str(torch.__version__), built_for, tuple(devices), outcome)


def _try_bfloat16() -> str | None:
    """Convolve in bfloat16, in a copy of this process, which that may end. Linux only."""
    if sys.platform != "linux":
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Warnings of threads, which the copy does not use.
        child = os.fork()
    if child == 0:
        code = 1
        with suppress(BaseException):
            _convolve()
            code = 0
        os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 0:
        return "works"
    if status < 0:
        with suppress(ValueError):
            return f"ended its process by {signal.Signals(-status).name}"
        return f"ended its process by signal {-status}"
    return "fails"


def _convolve() -> None:
    import torch

    torch.set_num_threads(1)
    with torch.inference_mode():
        images = torch.ones(4, 32, 16, 16, dtype=torch.bfloat16)
        weights = torch.ones(64, 32, 3, 3, dtype=torch.bfloat16)
        torch.nn.functional.conv2d(images, weights)
        torch.mm(images.reshape(-1, 64), torch.ones(64, 64, dtype=torch.bfloat16))
