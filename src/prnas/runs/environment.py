"""The environment of a run: versions, device, state of the sources. Nothing depends on it."""

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import prnas

PACKAGES = ("torch", "lightning-fabric", "numpy", "safetensors", "pillow", "pydantic")


def environment(threads: int | None) -> dict[str, Any]:
    import torch  # Heavy, and `prnas doctor` must be able to say that it is broken.

    gpus = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {
        "prnas": prnas.__version__,
        "python": sys.version.split()[0],
        "packages": {name: installed_version(name) for name in PACKAGES},
        "platform": platform.platform(),
        "processor": platform.machine(),
        "cpus": os.cpu_count(),
        "threads": threads or torch.get_num_threads(),
        "gpus": gpus,
        "git": git_state(Path(prnas.__file__).parent),
    }


def installed_version(name: str) -> str | None:
    """The version of an installed package, by the name that pip knows."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def git_state(folder: Path) -> dict[str, Any] | None:
    """Commit and cleanness of the sources, if they are in a repository of their own."""

    def ask(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=10, check=True
        ).stdout.strip()

    try:
        if ask("ls-files", "--error-unmatch", str(folder / "__init__.py")):
            return {"commit": ask("rev-parse", "HEAD"), "clean": not ask("status", "--porcelain")}
    except (OSError, subprocess.SubprocessError):
        pass
    return None
