"""Options that several commands share, with their help."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter, Token

# The same words as in `prnas.config.search`, which takes too long to import for `--help`.
Accelerator = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["32-true", "64-true", "bf16-mixed"]


def whole(_: object, tokens: Sequence[Token]) -> int:
    """Whole numbers only: the library itself would round 1.5."""
    text = tokens[0].value
    if not text.removeprefix("-").isdecimal() or len(text) > 9:
        raise ValueError(f"a whole number is needed, got {text!r:.60}")
    return int(text)


AsJson = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON, for scripts.")]
Overrides = Annotated[
    list[str] | None,
    Parameter(
        name="--set",
        negative="",
        help="Override one value of the config, e.g. --set seed=5. May be repeated.",
    ),
]
DataRoot = Annotated[str | None, Parameter(help="The folder of downloaded data sets.")]
Seed = Annotated[int | None, Parameter(converter=whole, help="The seed of all randomness.")]
Threads = Annotated[int | None, Parameter(converter=whole, help="CPU threads of each process.")]
Quiet = Annotated[bool, Parameter(negative="", help="Print only the end.")]


@Parameter(name="*")  # each field is an option of its own
@dataclass(frozen=True)
class RunOptions:
    """Of a search and of a training: its folder, and what it computes on."""

    overrides: Overrides = None
    runs: Annotated[
        Path | None, Parameter(help="Where the run gets its folder. Default: runs.")
    ] = None
    name: Annotated[
        str | None, Parameter(help="The folder's name. Default: recipe, time and seed.")
    ] = None
    resume: Annotated[
        Path | None, Parameter(help="Go on with the run in this folder, where it stopped.")
    ] = None
    accelerator: Annotated[Accelerator | None, Parameter(help="What to compute on.")] = None
    devices: Annotated[
        int | None, Parameter(converter=whole, help="How many devices, a process each.")
    ] = None
    precision: Annotated[
        Precision | None, Parameter(help="Of the numbers: single, double, or mixed with bfloat16.")
    ] = None
    threads: Threads = None
    memory_limit: Annotated[float | None, Parameter(help="GB that each process may use.")] = None

    @property
    def compute(self) -> dict[str, Any]:
        """As in the config's section of that name."""
        names = ("accelerator", "devices", "precision", "threads", "memory_limit")
        return {name: getattr(self, name) for name in names}


NO_OPTIONS = RunOptions()
