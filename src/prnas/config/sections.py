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
    """A section of a config."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ImagesConfig(Section):
    """The images, and their augmentation during training."""

    name: Annotated[str, Field(min_length=1, max_length=4096)] = "cifar10"
    root: Annotated[str, Field(min_length=1, max_length=4096)] | None = None  # Download folder.
    image_size: Annotated[int, Field(ge=1, le=4096)] | None = None  # None: the data's own size.
    images: Annotated[int, Field(ge=4)] | None = None  # Number of training images; None: all.
    test_share: Share = 0.2  # Fraction of images for testing, if the data has no test part.
    broken: Literal["refuse", "skip"] = "refuse"  # What to do about unreadable images.
    storage: Literal["auto", "memory", "stream"] = "auto"
    workers: Annotated[int, Field(ge=0, le=256)] = 2  # Processes that read a streamed set.
    flip: bool = True
    crop_padding: Annotated[int, Field(ge=0, le=1_000)] = 4
    padding_color: Literal["mean", "black"] = "mean"  # Colour of the pixels that a shift brings in.
    cutout: Annotated[int, Field(ge=0, le=10_000)] = 0


class BatchConfig(Section):
    """The batch size: `min` + n x `multiple`, at most `max`, as memory allows."""

    min: Size = 24
    multiple: Size = 8
    max: Size = 128
    memory_share: Annotated[float, Field(gt=0, le=1)] = 0.95
    every: Size = 5

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min ({self.min}) must not exceed max ({self.max})")
        return self


class ValidationConfig(Section):
    """The epochs (of a search: of each cycle) that are validated, and the batch size for it."""

    epochs: Literal["all", "last-five"] = "all"
    batch: Size = 128

    def includes(self, epoch: int, num_epochs: int) -> bool:
        """Whether an epoch is validated, of `num_epochs` that are counted from 0."""
        return self.epochs == "all" or epoch >= num_epochs - LAST_EPOCHS


class CheckpointConfig(Section):
    """Checkpoints within an epoch; each epoch ends with one in any case."""

    every_minutes: Annotated[float, Field(gt=0, le=100_000)] = 10.0
    keep: Annotated[int, Field(ge=1, le=1_000)] = 2  # Number of checkpoints.


class ComputeConfig(Section):
    """Devices, precision and limits of the computation."""

    accelerator: Accelerator = "auto"
    devices: Annotated[int, Field(ge=1, le=1024)] = 1
    precision: Precision = "32-true"
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None  # In each process.
    compile: bool = False
    recompute: bool = False  # Less memory for a little time; the result is the same.
    memory_limit: Annotated[float, Field(gt=0, le=1e6)] | None = None  # GB of each process.
    timeout_minutes: Annotated[float, Field(gt=0, le=100_000)] = 10.0  # Wait for other processes.


class RunConfig(Section):
    """The base of the configs of searches and trainings."""

    description: Annotated[str, Field(max_length=10_000)] = ""
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
