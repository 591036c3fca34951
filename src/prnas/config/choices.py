"""The choices of config keys and command-line options. Light: `prnas --help` imports this file."""

from typing import Literal

# The names of accelerators and precisions are Lightning Fabric's.
Accelerator = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["32-true", "64-true", "bf16-mixed", "16-mixed"]
# How the supernet is computed; the two ways, and the choice of them.
Execution = Literal["fused", "plain"]
ExecutionChoice = Literal["auto", "fused", "plain"]
# What cells look like, by name.
ShapeName = Literal["darts", "nasbench201"]
# The network of a training: one of cells, or a plain one to compare with.
NetworkKind = Literal["cells", "resnet"]
# What judges candidates: architecture weights, measured worth, or both.
Scoring = Literal["weights", "removal", "saliency", "blend", "paths"]
# Shells that have a script for completion.
Shell = Literal["bash", "zsh", "fish", "powershell"]
DataPart = Literal["test", "train", "all"]
ExportFormat = Literal["safetensors", "onnx", "pt2", "python"]
