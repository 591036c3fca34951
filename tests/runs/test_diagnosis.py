"""What follows from the facts that `prnas doctor` measures; and its measurements themselves."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from prnas.io.extras import EXTRAS
from prnas.runs import examination
from prnas.runs.diagnosis import (
    Device,
    Facts,
    Folder,
    ImageSet,
    Memory,
    Package,
    Processor,
    Torch,
    advice,
    findings,
    healthy,
)

CPU = Device("cpu", "2 threads by default")
GOOD = Facts(
    prnas="1.0",
    installed_in="/opt/prnas",
    git=None,
    python="3.11.7 (CPython)",
    platform="Linux",
    encoding="utf-8",
    packages=(Package("torch", ">=2.6", "2.13.0", True),),
    extras={name: dict.fromkeys(extra.packages, "1.0") for name, extra in EXTRAS.items()},
    processor=Processor("a processor", 2, 2, ("avx2",), 0.1),
    memory=Memory(16_000_000_000, 8_000_000_000),
    torch=Torch("2.13.0", "the CPU", (CPU,), "works"),
    folders=(
        Folder("runs", "/home/me/runs", False, None, 50_000_000_000),
        Folder("data", "/home/me/data", True, None, 50_000_000_000),
        Folder("temporary files", "/tmp", True, None, 50_000_000_000),  # noqa: S108
    ),
    images=(ImageSet("digits", "in the package"), ImageSet("cifar10", None)),
    compiler="/usr/bin/c++",
)


def works(facts: Facts) -> dict[str, bool]:
    return {finding.what: finding.works for finding in findings(facts)}


def test_a_good_machine_needs_no_advice() -> None:
    assert healthy(GOOD)
    assert advice(GOOD) == []
    assert [what for what, good in works(GOOD).items() if not good] == ["computing on cuda"]


def test_a_package_that_does_not_fit() -> None:
    packages = (Package("rich", ">=13.7,<16", "9.0", False), Package("numpy", "<3", None, False))
    ill = replace(GOOD, packages=packages)
    assert not healthy(ill)
    assert findings(ill)[0].why == "rich 9.0, numpy is missing"
    assert advice(ill)[0].endswith("pip install 'rich>=13.7,<16' 'numpy<3'")


def test_a_pytorch_that_cannot_be_imported() -> None:
    ill = replace(GOOD, torch=Torch("2.13.0", "nothing known", problem="libcudart is missing"))
    assert not healthy(ill)
    assert "libcudart is missing" in [finding.why for finding in findings(ill)]
    assert "install it anew" in advice(ill)[0]


def test_devices_are_named() -> None:
    gpus = (CPU, Device("cuda", "A100", 80_000_000_000), Device("xpu", "Arc"))
    found = {one.what: one for one in findings(replace(GOOD, torch=Torch("2", "CUDA 13.2", gpus)))}
    assert (found["computing on cuda"].works, found["computing on cuda"].why) == (True, "A100")
    assert not found["computing on xpu"].works
    assert "bfloat16 on the CPU" not in found  # nobody tried
    apple = replace(GOOD, torch=Torch("2", "macOS", (CPU, Device("mps", "arm"))))
    assert works(apple)["computing on mps"]
    assert "computing on cuda" not in works(apple)


def test_a_build_for_gpus_without_any() -> None:
    (line,) = advice(replace(GOOD, torch=Torch("2", "CUDA 13.2", (CPU,), "works")))
    assert "is the build for CUDA 13.2 and finds no GPU" in line


def test_a_folder_that_cannot_be_written() -> None:
    data = Folder("data", "/home/me/data", True, "cannot be written to: Permission denied", None)
    (line,) = advice(replace(GOOD, folders=(GOOD.folders[0], data, GOOD.folders[2])))
    assert line.startswith("data: /home/me/data cannot be written to: Permission denied; choose")
    assert "PRNAS_DATA" in line
    runs = replace(GOOD.folders[0], problem="cannot be made: /home/me is a file")
    assert not healthy(replace(GOOD, folders=(runs, *GOOD.folders[1:])))


def test_little_room() -> None:
    full = tuple(replace(folder, free=300_000_000) for folder in GOOD.folders)
    lines = advice(replace(GOOD, folders=full, memory=Memory(4_000_000_000, 500_000_000)))
    assert [line.partition(":")[0] for line in lines[:3]] == ["runs", "data", "temporary files"]
    assert "only 0.3 GB are free in /home/me/runs" in lines[0]
    assert lines[3].startswith("0.5 GB of memory are free")


def test_amx_that_is_announced() -> None:
    amx = replace(GOOD, processor=replace(GOOD.processor, features=("amx_tile", "amx_bf16")))
    (line,) = advice(amx)
    assert "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16" in line
    assert advice(replace(amx, environment={"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"})) == []
    killed = replace(amx.torch, bfloat16="ended its process by SIGILL")
    (line,) = advice(replace(amx, torch=killed))
    assert line.startswith("a computation in bfloat16 ended its process by SIGILL: set ONEDNN_MAX")
    assert not works(replace(amx, torch=killed))["bfloat16 on the CPU"]


def test_extras_that_are_missing() -> None:
    extras = {**GOOD.extras, "onnx": {"onnx": "1.0", "onnxruntime": None, "onnxscript": None}}
    ill = replace(GOOD, extras=extras)
    assert not works(ill)["extra onnx"]
    assert healthy(ill)
    (line,) = advice(ill)
    assert line.endswith("pip install onnxruntime onnxscript (the extra 'onnx' of prnas)")


def test_an_encoding_that_lacks_signs() -> None:
    (line,) = advice(replace(GOOD, encoding="ascii"))
    assert "the output's encoding is ascii" in line


def test_no_compiler() -> None:
    assert not works(replace(GOOD, compiler=None))["--compile on the CPU"]


# ---------------------------------------------------------------- measuring


def test_folders_are_tried_by_writing(tmp_path: Path) -> None:
    there = examination.look_at("runs", tmp_path)
    assert (there.exists, there.problem) == (True, None)
    assert there.free is not None
    assert there.free > 0
    later = examination.look_at("runs", tmp_path / "a" / "b")
    assert (later.exists, later.problem) == (False, None)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    wrong = examination.look_at("runs", tmp_path / "file" / "runs")
    assert wrong.problem == f"cannot be made: {tmp_path / 'file'} is a file"


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="there is no /proc here")
def test_a_folder_that_nobody_can_write_to() -> None:
    folder = examination.look_at("data", Path("/proc/self"))
    assert folder.problem is not None
    assert folder.problem.startswith("cannot be written to: ")


def test_required_packages_are_compared_with_what_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = ["rich<2", "pytest>=1", "no-such-thing", "onnx; extra == 'onnx'"]
    monkeypatch.setattr(examination.importlib.metadata, "requires", lambda name: lines)
    rich, pytest_, absent = examination.required_packages()
    assert (rich.fits, pytest_.fits) == (False, True)
    assert (absent.version, absent.fits) == (None, False)


def test_a_package_that_pip_does_not_know() -> None:
    assert examination.required_packages("no-such-thing") == ()


@pytest.mark.skipif(sys.platform != "linux", reason="tried on Linux only")
def test_a_computation_that_ends_its_process_is_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    try_it = examination._try_bfloat16  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(examination, "_convolve", lambda: None)
    assert try_it() == "works"
    monkeypatch.setattr(examination, "_convolve", lambda: os.kill(os.getpid(), signal.SIGKILL))
    assert try_it() == "ended its process by SIGKILL"
    monkeypatch.setattr(examination, "_convolve", lambda: 1 // 0)
    assert try_it() == "fails"


def test_a_broken_pytorch_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    torch = examination._torch()  # pyright: ignore[reportPrivateUsage]
    assert torch.problem is not None
    assert "torch" in torch.problem
    assert torch.devices == ()
