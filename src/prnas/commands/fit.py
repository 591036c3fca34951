"""`prnas fit`: from pictures to a tested model, within a budget of time."""

import sys
from typing import TYPE_CHECKING, Any

from prnas.commands.options import FitOptions
from prnas.commands.run_options import RUNS, say_stopped
from prnas.io.errors import UserError
from prnas.runs import signals
from prnas.runs.names import check_name
from prnas.terminal.output import show, show_json

if TYPE_CHECKING:
    from prnas.fitting.api import FitResult
    from prnas.fitting.folder import FitState
    from prnas.fitting.request import Request

MINUTES = 60.0
# Options that a resumed fit has from its start.
FIXED = (
    *("minutes", "seed", "max_params", "max_macs", "max_latency", "start_from", "data_root"),
    *("runs", "name", "accelerator", "threads"),
)


def run(pictures: str | None, options: FitOptions) -> None:
    """All mistakes in the options are found before anything is read."""
    _check(pictures, options)

    from prnas.fitting import fit
    from prnas.fitting.api import FitResult
    from prnas.runs.run import Stopped
    from prnas.terminal.fit_view import FitView, show_end, show_plan

    silent = options.quiet or options.as_json
    view = FitView(silent)
    try:
        if options.dry_run:
            state = fit.plan_only(_request(pictures, options), listener=view)
            _show_dry_run(state, options, show_plan)
            return
        if options.resume is not None:
            result = FitResult(options.resume, fit.resume(options.resume, listener=view))
        else:
            folder, results = fit.start(
                _request(pictures, options),
                runs=options.runs or RUNS,
                name=options.name,
                listener=view,
            )
            result = FitResult(folder, results)
    except Stopped as stopped:
        view.close()
        if stopped.folder is not None:
            say_stopped("fit", stopped.folder, brief=silent)
        sys.exit(signals.EXIT + stopped.number)
    _show(result, options, show_end)


def _show_dry_run(state: "FitState", options: FitOptions, show_plan: Any) -> None:
    if options.as_json:
        show_json(state.to_json()["plan"] | {"look": list(state.look)})
    elif options.quiet:
        show(f"{state.plan.seconds / 60:.1f} minutes")
    else:
        show_plan(state)


def _show(result: "FitResult", options: FitOptions, show_end: Any) -> None:
    if options.as_json:
        show_json({"folder": str(result.folder), **result.results})
    elif options.quiet:
        show(str(result.folder))
    else:
        show_end(result)


def _check(pictures: str | None, options: FitOptions) -> None:
    if options.name is not None:
        check_name(options.name, "--name")
    if options.resume is None:
        if pictures is None:
            raise UserError(
                "say which pictures: a folder with a folder for each class, an npz file, or a set "
                "of `prnas data`; or go on with --resume FOLDER"
            )
        return
    given = [name for name in FIXED if getattr(options, name) is not None]
    refused = [f"--{name.replace('_', '-')}" for name in given]
    refused = ["--from" if name == "--start-from" else name for name in refused]
    refused += [f"the pictures '{pictures}'"] if pictures is not None else []
    refused += ["--dry-run"] if options.dry_run else []
    if refused:
        raise UserError(
            f"--resume goes on with the options of the start; leave out {', '.join(refused)}"
        )


def _request(pictures: str | None, options: FitOptions) -> "Request":
    from prnas.fitting.api import make_request

    return make_request(
        pictures or "",
        MINUTES if options.minutes is None else options.minutes,
        seed=options.seed or 0,
        data_root=options.data_root,
        max_params=options.max_params,
        max_macs=options.max_macs,
        max_latency=options.max_latency,
        start_from=options.start_from,
        threads=options.threads,
        accelerator=options.accelerator or "auto",
    )
