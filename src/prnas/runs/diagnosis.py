"""The facts that `prnas doctor` reports, and the findings and advice from them. Only values."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from prnas.io.extras import EXTRAS, how_to_install

AMX_VARIABLE, AMX_VALUE = "ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16"
MACOS = "macOS"
IN_THE_PACKAGE = "in the package"
LITTLE_MEMORY, LITTLE_DISK = 2e9, 1e9  # bytes; below, it is said
# What a processor can do that matters for speed.
FEATURES = ("avx2", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16", "asimd", "bf16", "sve")


@dataclass(frozen=True)
class Package:
    """A package that prnas requires; `version` is none if it is not installed."""

    name: str
    required: str
    version: str | None
    fits: bool


@dataclass(frozen=True)
class Processor:
    name: str
    cores: int
    usable: int
    """Cores that this process may use."""
    features: tuple[str, ...]
    load: float | None
    """The mean number of processes that wanted to run, in the last minute."""


@dataclass(frozen=True)
class Memory:
    """Memory in bytes; `free` is what a run may still take, control groups included."""

    total: int
    free: int


@dataclass(frozen=True)
class Device:
    """A device as PyTorch sees it, with its memory in bytes where it has its own."""

    kind: str
    name: str
    memory: int | None = None


@dataclass(frozen=True)
class Torch:
    """PyTorch: `problem` is why it cannot be imported. `built_for`: CUDA 13.2, or the CPU."""

    version: str | None
    built_for: str
    devices: tuple[Device, ...] = ()
    bfloat16: str | None = None
    """The outcome of a computation in bfloat16: "works", or how it failed; none if not tried."""
    problem: str | None = None

    def has(self, kind: str) -> bool:
        return any(device.kind == kind for device in self.devices)


@dataclass(frozen=True)
class Folder:
    """A folder for output; the nearest parent counts for one that is not there."""

    role: Literal["runs", "data", "temporary files"]
    path: str
    exists: bool
    problem: str | None
    """Why nothing can be written there."""
    free: int | None


@dataclass(frozen=True)
class ImageSet:
    """A set that has a name; `where` is none if it is not on this machine."""

    name: str
    where: str | None


@dataclass(frozen=True)
class Facts:
    """All that was measured."""

    prnas: str
    installed_in: str
    git: Mapping[str, Any] | None
    python: str
    platform: str
    encoding: str
    packages: tuple[Package, ...]
    extras: Mapping[str, Mapping[str, str | None]]
    """For each extra its packages, and their versions."""
    processor: Processor
    memory: Memory | None
    torch: Torch
    folders: tuple[Folder, ...]
    images: tuple[ImageSet, ...]
    compiler: str | None
    """A C++ compiler, which --compile needs."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment variables that change what prnas does."""

    def folder(self, role: str) -> Folder:
        return next(folder for folder in self.folders if folder.role == role)

    def to_json(self) -> dict[str, Any]:
        works = [asdict(finding) for finding in findings(self)]
        return asdict(self) | {"works": works, "healthy": healthy(self), "advice": advice(self)}


@dataclass(frozen=True)
class Finding:
    """Something that works here or not. What is `needed` must work for anything to."""

    what: str
    works: bool
    why: str
    needed: bool = False


def findings(facts: Facts) -> list[Finding]:
    """The abilities of prnas on this machine, each with whether it works."""
    torch = facts.torch
    unfit = [package for package in facts.packages if not package.fits]
    wrong = ", ".join(f"{package.name} {package.version or 'is missing'}" for package in unfit)
    runs = facts.folder("runs")
    listed = [
        Finding("required packages", not unfit, wrong or "all are here", needed=True),
        Finding("PyTorch", torch.problem is None, torch.problem or str(torch.version), needed=True),
        Finding("writing runs", runs.problem is None, runs.problem or runs.path, needed=True),
    ]
    if torch.problem is None:
        listed += _device_findings(torch)
    compiler = facts.compiler or "needs a C++ compiler"
    listed.append(Finding("--compile on the CPU", facts.compiler is not None, compiler))
    for name, extra in EXTRAS.items():
        missing = [package for package, version in facts.extras[name].items() if version is None]
        why = f"{extra.without}: {', '.join(missing)} missing" if missing else extra.enables
        listed.append(Finding(f"extra {name}", not missing, why))
    return listed


def _device_findings(torch: Torch) -> list[Finding]:
    listed: list[Finding] = []
    for kind in ("cpu", "mps" if torch.built_for == MACOS else "cuda"):
        names = ", ".join(device.name for device in torch.devices if device.kind == kind)
        why = names or f"PyTorch, built for {torch.built_for}, finds no GPU"
        listed.append(Finding(f"computing on {kind}", bool(names), why))
    if torch.has("xpu"):
        listed.append(Finding("computing on xpu", False, "prnas does not compute on Intel's GPUs"))
    if torch.bfloat16 is not None:
        works = torch.bfloat16 == "works"
        why = "tried here" if works else torch.bfloat16
        listed.append(Finding("bfloat16 on the CPU", works, why))
    return listed


def healthy(facts: Facts) -> bool:
    """Whether all works that everything else needs."""
    return all(finding.works for finding in findings(facts) if finding.needed)


def advice(facts: Facts) -> list[str]:
    """Advice on the problems of this machine, the most important first."""
    lines: list[str] = []
    unfit = [package for package in facts.packages if not package.fits]
    if unfit:
        wanted = " ".join(f"'{package.name}{package.required}'" for package in unfit)
        lines.append(f"packages that prnas requires do not fit: pip install {wanted}")
    torch = facts.torch
    if torch.problem is not None:
        lines.append(
            "PyTorch cannot be imported: install it anew, as the README's section on installing "
            "says"
        )
    lines += _about_folders(facts)
    memory = facts.memory
    if memory is not None and memory.free < LITTLE_MEMORY:
        lines.append(
            f"{memory.free / 1e9:.1f} GB of memory are free: end other programs, or keep runs "
            "small by --memory-limit, batch.max or --recompute"
        )
    lines += _about_bfloat16(facts)
    if torch.built_for.startswith("CUDA") and not torch.has("cuda"):
        lines.append(
            f"PyTorch is the build for {torch.built_for} and finds no GPU. If there is none, the "
            "build for the CPU takes several GB less: see the README's section on installing. If "
            "there is one, look at its driver (nvidia-smi) and CUDA_VISIBLE_DEVICES"
        )
    if facts.encoding.lower().replace("-", "") != "utf8":
        lines.append(
            f"the output's encoding is {facts.encoding}: signs such as × are shown as x. Set "
            "PYTHONUTF8=1 or a locale with UTF-8"
        )
    for name, versions in facts.extras.items():
        missing = [package for package, version in versions.items() if version is None]
        if missing:
            enables = EXTRAS[name].enables
            lines.append(f"for {enables}: {how_to_install(name, missing)}")
    return lines


def _about_folders(facts: Facts) -> list[str]:
    choices = {
        "runs": "choose another folder by --runs",
        "data": "choose another folder by --data-root or PRNAS_DATA",
        "temporary files": "set TMPDIR to another folder",
    }
    lines = [
        f"{folder.role}: {folder.path} {folder.problem}; {choices[folder.role]}"
        for folder in facts.folders
        if folder.problem is not None
    ]
    return lines + [
        f"{folder.role}: only {folder.free / 1e9:.1f} GB are free in {folder.path}; make room, or "
        f"{choices[folder.role]}"
        for folder in facts.folders
        if folder.free is not None and folder.free < LITTLE_DISK
    ]


def _about_bfloat16(facts: Facts) -> list[str]:
    """Some virtual machines announce AMX, and end a process that uses it."""
    remedy = f"{AMX_VARIABLE}={AMX_VALUE}"
    outcome = facts.torch.bfloat16
    if outcome is not None and outcome != "works":
        return [
            f"a computation in bfloat16 {outcome}: set {remedy}, or leave --precision at 32-true"
        ]
    announced = any(feature.startswith("amx") for feature in facts.processor.features)
    if announced and AMX_VARIABLE not in facts.environment:
        return [
            "this processor announces AMX, which not every virtual machine really has: if a run "
            f"in bfloat16 ends by 'Illegal instruction', set {remedy}"
        ]
    return []
