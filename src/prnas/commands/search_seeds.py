"""`prnas search --seeds N`: the same search with several seeds, as a study of one row."""

import time
from pathlib import Path
from typing import Any

from prnas.commands import study as command
from prnas.commands.options import SearchOptions
from prnas.commands.run_options import RUNS, config_overrides
from prnas.config.search import SearchConfig
from prnas.io.errors import UserError
from prnas.io.yaml_files import parse_yaml
from prnas.runs import named
from prnas.runs.names import check_name
from prnas.studies.config import MOST_SEEDS, StudyConfig
from prnas.studies.folder import read_plan
from prnas.studies.plan import make_plan
from prnas.terminal.output import reason_lines, show

# Keys of a config that a study has its own keys for, or sets for each job.
_OWN = ("seed", "compute.threads", "compute.memory_limit", "compute.devices")


def run(recipe: str, options: SearchOptions) -> None:
    """A new study, or one that goes on. Its jobs share the machine."""
    if options.picture is not None:
        raise UserError("--picture is for a single search; leave it out, or --seeds")
    if options.resume is not None:
        if config_overrides(options):
            raise UserError("a study's jobs keep their config; leave out what would change it")
        command.go_on(options.resume, read_plan(options.resume), ending=_ending(options))
        return
    seeds = options.seeds
    if seeds is None or not 1 <= seeds <= MOST_SEEDS:
        raise UserError(f"--seeds must be from 1 to {MOST_SEEDS}, got {seeds}")
    study = StudyConfig.from_data(_study_data(recipe, options))
    plan = make_plan(study)
    _show_reasons(recipe, options)
    name = options.name
    if name is None:
        stamp = time.strftime("%Y%m%d-%H%M%S")
        name = f"{Path(recipe).stem}-{seeds}-seeds-{stamp}-seed{study.first_seed}"
    check_name(name)
    folder = (options.runs or RUNS) / name
    if folder.exists():
        raise UserError(f"{folder} is there already; go on with `prnas search --resume {folder}`")
    command.go_on(folder, plan, ending=_ending(options))


def _ending(options: SearchOptions) -> command.Ending:
    return "json" if options.as_json else "folder" if options.quiet else "all"


def _show_reasons(recipe: str, options: SearchOptions) -> None:
    """Show the values that were chosen by the images; all jobs have them in their configs."""
    draft = named.draft_of(recipe, config_overrides(options), SearchConfig)
    if draft.open and not options.brief:
        show(*reason_lines(named.settle(draft).reasons), "")


def _study_data(recipe: str, options: SearchOptions) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for override in config_overrides(options):
        key, equals, value = override.partition("=")
        if not equals:
            raise UserError(f"'{override:.60}': write it as path=value, e.g. seed=1")
        changes[key.strip()] = parse_yaml(value)
    own = {key: changes.pop(key) for key in _OWN if key in changes}
    resources = {
        "threads": own.get("compute.threads", 1),
        "memory": own.get("compute.memory_limit"),
        "gpus": own.get("compute.devices"),
    }
    if options.accelerator == "cpu":
        resources["gpus"] = 0
    return {
        "description": f"{recipe} with {options.seeds} seeds",
        "rows": [{"name": Path(recipe).stem, "search": recipe, "set": changes}],
        "seeds": options.seeds,
        "first_seed": own.get("seed", 0),
        "trainings": 0,
        "resources": {key: value for key, value in resources.items() if value is not None},
    }
