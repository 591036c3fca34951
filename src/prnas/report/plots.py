"""The plots of a report as plain values, for figures in a paper."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from prnas.drawing.colors import PALETTE
from prnas.space.genotype import ROLES, Role

# As on the page.
LINES = {color.name: color.line for color in PALETTE}
BLUE, RED, GREEN, ORANGE, PURPLE, SKY, GRAY = (
    LINES[name] for name in ("blue", "red", "green", "orange", "purple", "sky", "gray")
)
CYCLED = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GRAY)
STYLES = ("-", "--", ":", "-.")
Data = Mapping[str, Any]
Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Line:
    """Values at epochs; `step`: each holds until the next."""

    label: str
    xs: Sequence[float]
    ys: Values
    color: str = BLUE
    style: str = "-"
    step: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot, a file of its own; `shares`: the values are told in percent."""

    name: str
    title: str
    lines: tuple[Line, ...]
    low: float | None = None
    high: float | None = None
    shares: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """A cycle's first epochs, without architecture steps."""

    start: float
    grace_end: float


def bands_of(run: Data) -> list[Band]:
    cycles: list[list[int]] = run.get("schedule", [])
    starts = accumulate((epochs for epochs, *_ in cycles), initial=0)
    return [Band(start, start + cycle[1]) for start, cycle in zip(starts, cycles, strict=False)]


def plots_of(run: Data) -> list[Plot]:
    """All plots that have something to show."""
    plots = _search_plots(run) if run["kind"] == "search" else _training_plots(run)
    return [plot for plot in plots if any(_known(line.ys) for line in plot.lines)]


def _known(values: Values) -> bool:
    return any(value is not None for value in values)


def _column(run: Data, name: str, label: str, color: str = BLUE, style: str = "-") -> Line:
    values: Values = run["epochs"][name]
    return Line(label, range(1, len(values) + 1), values, color, style)


def _machine_plots(run: Data) -> list[Plot]:
    plots: list[Plot] = []
    for name, column, title, unit in (
        ("learning-rate", "lr", "learning rate", 1.0),
        ("batch-size", "batch", "batch size", 1.0),
        ("seconds", "seconds", "seconds per epoch", 1.0),
        ("images-per-second", "speed", "images per second", 1.0),
        ("memory", "memory", "peak memory (GB)", 1e9),
    ):
        line = _column(run, column, title)
        values = [None if value is None else value / unit for value in line.ys]
        made = Line(title, line.xs, values)
        changes: list[tuple[float, float]] = run.get("batches", [])
        if column == "batch" and changes:  # where it changed, also within an epoch
            xs, sizes = zip(*changes, strict=True)
            made = Line(title, [*xs, len(values)], [*sizes, sizes[-1]], step=True)
        plots.append(Plot(name, title, (made,), low=0.0))
    return plots


def _search_plots(run: Data) -> list[Plot]:
    def scores(what: str) -> tuple[Line, ...]:
        return (
            _column(run, f"weights_{what}", "weights"),
            _column(run, f"architecture_{what}", "architecture", SKY, "--"),
            _column(run, f"validation_{what}", "validation", RED),
        )

    plots = [Plot("accuracy", "accuracy (%)", scores("accuracy"), shares=True)]
    plots += [Plot("loss", "loss", scores("loss")), *_machine_plots(run)]
    for role in ROLES:
        lines = tuple(
            _pool_line(
                run, role, name, _share("types", name), LINES[color], STYLES[place % len(STYLES)]
            )
            for place, (name, color) in enumerate(run["cycles"]["colors"].items())
        )
        title = f"operations, {role} cell (%)"
        plots.append(Plot(f"operations-{role}", title, lines, 0.0, 1.0, shares=True))
    sizes = sorted(
        {int(size) for role in ROLES for p in _pools(run, role) for size in p["kernels"]}
    )
    for role in ROLES:
        lines = tuple(
            _pool_line(
                run,
                role,
                f"{size}×{size}",
                _share("kernels", str(size)),
                CYCLED[place % len(CYCLED)],
                STYLES[place % len(STYLES)],
            )
            for place, size in enumerate(sizes)
        )
        title = f"kernel sizes, {role} cell (%)"
        plots.append(Plot(f"kernels-{role}", title, lines, 0.0, 1.0, shares=True))
    looks: dict[Role, tuple[str, str]] = {"normal": (BLUE, "-"), "reduction": (RED, "--")}
    for name, title, low, high in (
        ("similarity", "similarity within a pool", 0.0, 1.0),
        ("discovered", "operations discovered", 0.0, None),
    ):
        lines = tuple(
            _pool_line(run, role, f"{role} cell", lambda pool, name=name: pool[name], *look)
            for role, look in looks.items()
        )
        plots.append(Plot(name, title, lines, low, high))
    ends = list(accumulate(epochs for epochs, *_ in run["schedule"]))
    parents = tuple(
        Line(f"{role} cell", ends[: len(values)], values[: len(ends)], *look)
        for role, look in looks.items()
        for values in (run["cycles"]["parents"][role],)
    )
    plots.append(Plot("parents", "probability of the parents (%)", parents, 0.0, shares=True))
    return plots


def _pools(run: Data, role: Role) -> list[Data]:
    return run["cycles"]["pools"][role]


def _share(what: str, name: str) -> Callable[[Data], float | None]:
    """Of a pool: 0 for what it has none of, nothing if it has none of all."""
    return lambda pool: pool[what].get(name, 0.0) if pool[what] else None


def _pool_line(
    run: Data,
    role: Role,
    label: str,
    value: Callable[[Data], float | None],
    color: str,
    style: str,
) -> Line:
    """What each cycle's pools were like, held until the next cycle or the last epoch."""
    starts = list(accumulate((epochs for epochs, *_ in run["schedule"]), initial=0))
    pools = _pools(run, role)[: len(starts)]
    values = [value(pool) for pool in pools]
    xs: list[float] = list(starts[: len(pools)])
    done = len(run["epochs"]["lr"])
    if xs and done > xs[-1]:
        xs.append(done)
        values.append(values[-1])
    return Line(label, xs, values, color, style, step=True)


def _training_plots(run: Data) -> list[Plot]:
    def errors(line: Line) -> Line:
        values = [None if value is None else 1 - value for value in line.ys]
        return Line(line.label, line.xs, values, line.color, line.style)

    def scores(what: str) -> list[Line]:
        training = _column(run, f"training_{what}", "training")
        return [training, _column(run, f"test_{what}", "test", RED)]

    return [
        Plot("error", "error (%)", tuple(map(errors, scores("accuracy"))), 0.0, shares=True),
        Plot("loss", "loss", tuple(scores("loss"))),
        Plot("drop-path", "drop-path", (_column(run, "drop_path", "drop-path"),), 0.0),
        *_machine_plots(run),
    ]
