"""The sections of a config that searches and trainings share, and the base of both configs."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from prnas.config.choices import Accelerator, Precision
from prnas.config.numbers import Share, Size
from prnas.config.overrides import apply_overrides
from prnas.config.undecided import Draft, set_apart
from prnas.io.errors import UserError
from prnas.io.reading import validated

# Number of epochs that `last-five` validates, and whose mean is a training's test error.
LAST_EPOCHS = 5


class Section(BaseModel):
    """A section of a config. A comment that begins with `#:` is the meaning of its key."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ImagesConfig(Section):
    """The images, and their augmentation during training."""

    #: The images: a set of `prnas data`, `folder:PATH` or `npz:PATH`.
    name: Annotated[str, Field(min_length=1, max_length=4096)] = "cifar10"
    #: The folder of downloaded sets; null: `PRNAS_DATA`, else the platform's cache folder.
    root: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    #: Side of the square that images are resized to; null: their own size (of folders, 32).
    image_size: Annotated[int, Field(ge=1, le=4096)] | None = None
    #: How many of the training images are used, drawn by the seed; null: all.
    images: Annotated[int, Field(ge=4)] | None = None
    #: Fraction of each class that is held out for testing, if the data has no test part.
    test_share: Share = 0.2
    #: What to do about files that cannot be read: refuse to start, or skip them.
    broken: Literal["refuse", "skip"] = "refuse"
    #: Where images are kept: in memory, or streamed from disk; auto: streamed if they are many.
    storage: Literal["auto", "memory", "stream"] = "auto"
    #: Processes that read a streamed set; 0: the main process does.
    workers: Annotated[int, Field(ge=0, le=256)] = 2
    #: Whether training images are flipped left to right, with probability 1/2.
    flip: bool = True
    #: Largest shift of a training image, in pixels.
    crop_padding: Annotated[int, Field(ge=0, le=1_000)] = 4
    #: Colour of the pixels that a shift brings in.
    padding_color: Literal["mean", "black"] = "mean"
    #: Side of the square that is cut out of a training image; 0: none.
    cutout: Annotated[int, Field(ge=0, le=10_000)] = 0


class BatchConfig(Section):
    """The batch size: `min` + n x `multiple`, at most `max`, as memory allows."""

    #: Smallest batch, with which every cycle begins.
    min: Size = 24
    #: Step by which the batch grows and shrinks.
    multiple: Size = 8
    #: Largest batch; equal to `min`, the batch is fixed.
    max: Size = 128
    #: Share of the memory that a step may take.
    memory_share: Annotated[float, Field(gt=0, le=1)] = 0.95
    #: Number of steps after which the batch may change.
    every: Size = 5

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min ({self.min}) must not exceed max ({self.max})")
        return self


class ValidationConfig(Section):
    """The epochs (of a search: of each cycle) that are validated, and the batch size for it."""

    #: Which epochs: all, the last five, or the last (of a search: of each cycle).
    epochs: Literal["all", "last-five", "last"] = "all"
    #: Batch size; does not change the result.
    batch: Size = 128

    def includes(self, epoch: int, num_epochs: int) -> bool:
        """Whether an epoch is validated, of `num_epochs` that are counted from 0."""
        number = {"all": num_epochs, "last-five": LAST_EPOCHS, "last": 1}[self.epochs]
        return epoch >= num_epochs - number


class CheckpointConfig(Section):
    """Checkpoints within an epoch; each epoch ends with one in any case."""

    #: Minutes between checkpoints within an epoch.
    every_minutes: Annotated[float, Field(gt=0, le=100_000)] = 10.0
    #: How many checkpoints are kept, the newest of all.
    keep: Annotated[int, Field(ge=1, le=1_000)] = 2


class ComputeConfig(Section):
    """Devices, precision and limits of the computation."""

    #: The device to compute on; auto: a GPU if there is one.
    accelerator: Accelerator = "auto"
    #: Number of devices, with a process each.
    devices: Annotated[int, Field(ge=1, le=1024)] = 1
    #: Numeric precision: single, double, or mixed with bfloat16 or (on a GPU) float16.
    precision: Precision = "32-true"
    #: CPU threads of each process; null: as many as a step's work is worth.
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    #: Whether PyTorch compiles the stem of a search, or the cells of a training.
    compile: bool = False
    #: Whether a search computes some things twice to save memory; the result is the same.
    recompute: bool = False
    #: GB that each process may use; null: what the machine or its control group has.
    memory_limit: Annotated[float, Field(gt=0, le=1e6)] | None = None
    #: How long one of several processes waits for another before the run ends.
    timeout_minutes: Annotated[float, Field(gt=0, le=100_000)] = 10.0


class RunConfig(Section):
    """The base of the configs of searches and trainings."""

    #: What it is, for people: reports show it.
    description: Annotated[str, Field(max_length=10_000)] = ""
    #: Seed of all randomness.
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    checkpoints: CheckpointConfig = CheckpointConfig()
    compute: ComputeConfig = ComputeConfig()

    if TYPE_CHECKING:  # Both configs have these sections, each with defaults of its own.
        task: Any = None
        data: Any = None
        batch: BatchConfig = BatchConfig()

    @property
    def images(self) -> ImagesConfig:
        return self.data

    def to_data(self) -> dict[str, Any]:
        """Plain data with every default written out, which `from_data` reads back."""
        data = self.model_dump(mode="json")
        # These sections matter least, so they come last.
        last = {name: data.pop(name) for name in ("checkpoints", "compute")}
        return {"task": data.pop("task"), **data, **last}

    @classmethod
    def from_data(cls, data: Any, overrides: Sequence[str] = ()) -> Self:
        """The config in parsed YAML; `overrides` and errors are those of `override`."""
        return cls._validated({} if data is None else data).override(overrides)

    @classmethod
    def from_file(cls, file: str | Path, overrides: Sequence[str] = ()) -> Self:
        """The config in a YAML file, or of a recipe; a `UserError` or `FormatError` says what is
        wrong with it. Values that are left to the images (`auto`) cannot be known here.
        """
        from prnas.config.files import read_draft

        draft = read_draft(str(file), cls.model_fields["task"].default)
        own = cls.draft(draft.to_data(), overrides)
        if own.open:
            raise UserError(
                f"{file!s:.200} leaves {', '.join(own.open)} to the images: give it to "
                "prnas.search or prnas.retrain by its name, or say what they are by overrides"
            )
        return own.config

    @classmethod
    def draft(cls, data: Any, overrides: Sequence[str] = ()) -> Draft[Self]:
        """As `from_data`, but keys may say `auto` where a value can be chosen by the images."""
        plain, keys = set_apart({} if data is None else data)
        config = cls._validated(plain)
        if overrides:
            values = Draft(config, keys).to_data()
            plain, keys = set_apart(apply_overrides(values, overrides, cls._write_out_names))
            config = cls._validated(plain)
        return Draft(config, keys)

    def override(self, overrides: Sequence[str]) -> Self:
        """The config with overrides like `seed=5`; a `FormatError` names every problem."""
        if not overrides:
            return self
        return self._validated(apply_overrides(self.to_data(), overrides, self._write_out_names))

    @classmethod
    def _validated(cls, data: Any) -> Self:
        return validated(_adapter(cls), data, "config")

    @classmethod
    def _write_out_names(cls, data: dict[str, Any]) -> None:
        """Replace the names of settings and cells by their values."""


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
