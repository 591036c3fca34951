"""Packages that are optional: what they are for, and how to get them."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Extra:
    """An extra of the package: what it installs, by the names of pip and of `import`."""

    packages: tuple[str, ...]
    enables: str
    without: str

    @property
    def missing(self) -> list[str]:
        """The names of its packages that are not installed; nothing is imported."""
        return [name for name in self.packages if importlib.util.find_spec(name) is None]


EXTRAS = {
    "figures": Extra(
        ("matplotlib",),
        "pictures as PNG and PDF, and prnas report --figures",
        "pictures are SVG only",
    ),
    "onnx": Extra(
        ("onnx", "onnxruntime", "onnxscript"),
        "prnas export -o net.onnx, and net.onnx of a fit",
        "models are exported as Python, pt2 and safetensors only",
    ),
    "ray": Extra(
        ("ray",), "prnas study --engine ray", "studies run on this machine, or as a Slurm array"
    ),
    "tensorboard": Extra(
        ("tensorboardX",),
        "curves for TensorBoard in every run's folder",
        "runs have their records and their report, and no files for TensorBoard",
    ),
}


def how_to_install(extra: str, packages: Sequence[str] = ()) -> str:
    """The command that installs `packages` of an extra, by default all of them.

    It names the packages themselves: that works wherever prnas was installed from.
    """
    names = " ".join(packages or EXTRAS[extra].packages)
    return f"pip install {names} (the extra '{extra}' of prnas)"
