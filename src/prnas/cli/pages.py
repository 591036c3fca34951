"""Reports: how `prnas report` and `prnas watch` are spelt."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from prnas.cli.options import AsJson, whole


def report(
    *runs: Annotated[
        Path, Parameter(help="A run's folder, or a folder of seed-0, seed-1, …; several: compared.")
    ],
    out: Annotated[
        Path | None,
        Parameter(
            name=["--out", "-o"],
            help="The .html file. Default: RUN/report.html, or comparison.html here.",
        ),
    ] = None,
    figures: Annotated[
        Path | None, Parameter(help="Also draw figures for a paper (SVG and PDF) to this folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a page of a run, or compare runs: one file that opens in any browser."""
    from prnas.commands import report as command

    command.run(list(runs), out, figures, as_json)


def watch(
    run: Annotated[Path, Parameter(help="A run's folder, or a folder of seed-0, seed-1, …")],
    /,
    *,
    port: Annotated[
        int | None,
        Parameter(converter=whole, help="Where to listen; 0: any free port. Default: 8777."),
    ] = None,
    host: Annotated[
        str, Parameter(help="The address to listen on. Other machines can reach it only if told.")
    ] = "127.0.0.1",
) -> None:
    """Serve the report of a run, or of all seeds, to a browser; updated while it goes on."""
    from prnas.commands import watch as command

    command.run(run, port, host)
