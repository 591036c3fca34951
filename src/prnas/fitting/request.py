"""The request of a person for a fit, checked before anything is read."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from prnas.config.final import FinalConfig, amount, milliseconds
from prnas.data.catalog import ABOUT, check_name
from prnas.io.errors import FormatError, UserError
from prnas.io.paths import is_file, is_folder
from prnas.io.reading import validated

LEAST_MINUTES, MOST_MINUTES = 0.1, 100_000.0
_SECTIONS = TypeAdapter(FinalConfig)


@dataclass(frozen=True)
class Request:
    """Images, budget, limits. `data` is a set's name, folder:PATH or npz:PATH."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)
    data: str
    minutes: float
    seed: int = 0
    data_root: str | None = None
    max_params: str | None = None
    max_macs: str | None = None
    max_latency: str | None = None
    start_from: str | None = None
    accelerator: str = "auto"
    threads: int | None = None

    @property
    def seconds(self) -> float:
        return 60 * self.minutes

    @property
    def limits(self) -> dict[str, str]:
        """Limits on the final network, as a search's config has them."""
        given = {
            "max_params": self.max_params,
            "max_macs": self.max_macs,
            "max_latency": self.max_latency,
        }
        return {name: value for name, value in given.items() if value is not None}

    def allows(self, parameters: int, macs: int, latency: float = 0.0) -> bool:
        """Whether a network of so many parameters, MACs and milliseconds keeps the limits."""
        limits = (
            (amount_of(self.max_params), parameters),
            (amount_of(self.max_macs), macs),
            (milliseconds_of(self.max_latency), latency),
        )
        return all(most is None or value <= most for most, value in limits)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


_ADAPTER = TypeAdapter(Request)


def read_request(data: Any) -> Request:
    return validated(_ADAPTER, data, "request")


def checked(request: Request) -> Request:
    """The same, or a `UserError` that names what cannot be."""
    if not LEAST_MINUTES <= request.minutes <= MOST_MINUTES:
        raise UserError(
            f"--minutes must be from {LEAST_MINUTES} to {MOST_MINUTES:,.0f}, got {request.minutes}"
        )
    if not 0 <= request.seed < 2**63:
        raise UserError(f"--seed must be 0 or more, got {request.seed}")
    if request.threads is not None and not 1 <= request.threads <= 1024:
        raise UserError(f"--threads must be from 1 to 1024, got {request.threads}")
    plain = {key: value for key, value in request.limits.items() if key != "max_latency"}
    milliseconds_of(request.max_latency)
    try:
        validated(_SECTIONS, plain, "limits")
    except FormatError as error:
        raise UserError(f"limits: {error}") from None
    return request


def milliseconds_of(limit: str | None) -> float | None:
    """A limit such as 20ms as a number; a `UserError` if it is none."""
    if limit is None:
        return None

    try:
        number = milliseconds(limit)
    except ValueError as error:
        raise UserError(f"--max-latency {error}") from None
    if not 0 < number <= 1e9:
        raise UserError(f"--max-latency must be more than 0, got {limit!r:.60}")
    return number


def amount_of(limit: str | None) -> int | None:
    """A limit such as 3M as a number."""
    if limit is None:
        return None

    return amount(limit)


def data_name(pictures: str) -> str:
    """The set that a person means: a folder or an npz file needs no kind in front of it."""
    kind = pictures.partition(":")[0]
    if pictures in ABOUT or kind in ("folder", "npz"):
        name = pictures
    elif is_folder(Path(pictures)):
        name = f"folder:{pictures}"
    elif pictures.endswith(".npz") and is_file(Path(pictures)):
        name = f"npz:{pictures}"
    else:
        name = pictures
        if not pictures.strip() or "/" in pictures or "\\" in pictures or pictures in (".", ".."):
            raise UserError(
                f"there is no folder {pictures!r:.200}. Name a folder with a folder of pictures "
                f"for each class, an npz file, or a set: {', '.join(ABOUT)}"
            )
    check_name(name)
    return name
