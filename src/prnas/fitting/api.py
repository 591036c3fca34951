"""A fit from Python: pictures in, a tested model out."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

from prnas.fitting import fit as engine
from prnas.fitting.events import Listener, check_listener
from prnas.fitting.measure import Meter
from prnas.fitting.names import PAGE
from prnas.fitting.request import Request, checked, data_name
from prnas.io.errors import UserError
from prnas.io.frames import frame_of
from prnas.models.model import Model, load
from prnas.models.predict import Predictions, predict


@dataclass(frozen=True)
class FitResult:
    """The result of a fit, which is all in its folder.

    `table` has a line for each network that was trained, as plain data; `sentences` say what it
    shows, and whether the search paid off.
    """

    folder: Path  #: The fit's folder.
    results: dict[str, Any]  #: What `results.json` has.

    @cached_property
    def model(self) -> Model:
        """The best network, by validation."""
        return load(self.folder)

    @property
    def best(self) -> str:
        """Name of the best network, by validation, in the table."""
        return self.results["best"]

    @property
    def table(self) -> list[dict[str, Any]]:
        """A line for each network that was trained, as plain data."""
        return self.results["networks"]

    def rows(self) -> list[dict[str, Any]]:
        """A row for each network."""
        return [dict(network) for network in self.table]

    def to_pandas(self) -> Any:
        """The table as a `pandas.DataFrame`."""
        return frame_of(self.rows())

    @property
    def sentences(self) -> list[str]:
        """The findings of the tests in sentences, such as whether the search paid off."""
        return self.results["sentences"]

    @property
    def report(self) -> Path:
        """The page that tells the whole story."""
        return self.folder / PAGE

    def predict(
        self, paths: str | PathLike[str] | Iterable[str | PathLike[str]], *, top: int = 1
    ) -> Predictions:
        """The classes of image files, and of those in folders, by the best network."""
        return predict(self.model, paths, top=top)

    def __repr__(self) -> str:
        best = next(network for network in self.table if network["name"] == self.best)
        accuracy = 100 * best["accuracy"]
        return f"FitResult({best['label']}: {accuracy:.1f} % in the test, {str(self.folder)!r})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{escape(network['label'])}</th><td>{100 * network['accuracy']:.1f} %</td>"
            f"<td>{network['parameters']:,}</td></tr>"
            for network in self.table
        )
        heads = "<tr><th>network</th><th>test accuracy</th><th>parameters</th></tr>"
        said = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.sentences)
        return f"<table>{heads}{rows}</table>{said}"


def fit(
    pictures: str | PathLike[str] | None = None,
    minutes: float = 60.0,
    *,
    seed: int = 0,
    max_params: str | int | None = None,
    max_macs: str | int | None = None,
    max_latency: str | float | None = None,
    start_from: str | PathLike[str] | None = None,
    runs: Path | str = "runs",
    name: str | None = None,
    resume: Path | str | None = None,
    data_root: Path | str | None = None,
    threads: int | None = None,
    accelerator: str = "auto",
    listener: Listener | None = None,
    meter: Meter | None = None,
) -> FitResult:
    """Search, train, compare and test on someone's pictures, within a budget of time.

    `pictures` is a folder with a folder for each class, an npz file, or the name of a set, which is
    looked for in `data_root`. Limits and `start_from` are as those of the command (`prnas fit
    --help`); a latency that is a number is in milliseconds. `resume` goes on with the fit
    in a folder. Nothing is printed; `listener` hears of what goes on.
    """
    if listener is not None:
        check_listener(listener)
    if (pictures is None) == (resume is None):
        raise UserError("say which pictures, or which fit to resume: one of the two")
    if resume is not None:
        results = engine.resume(Path(resume), meter=meter, listener=listener)
        return FitResult(Path(resume), results)
    request = make_request(
        str(pictures),
        minutes,
        seed=seed,
        max_params=max_params,
        max_macs=max_macs,
        max_latency=max_latency,
        start_from=None if start_from is None else str(start_from),
        data_root=None if data_root is None else str(data_root),
        threads=threads,
        accelerator=accelerator,
    )
    folder, results = engine.start(
        request, runs=Path(runs), name=name, meter=meter, listener=listener
    )
    return FitResult(folder, results)


def make_request(pictures: str, minutes: float, **options: Any) -> Request:
    """A request for a fit, checked as far as possible before anything is read."""
    for key in ("max_params", "max_macs", "max_latency"):
        if options.get(key) is not None:
            options[key] = str(options[key])
    try:
        length = float(minutes)
    except (TypeError, ValueError):
        raise UserError(f"minutes must be a number, got {minutes!r:.60}") from None
    return checked(Request(data_name(pictures), length, **options))
