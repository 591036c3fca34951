"""`prnas search`: a new or resumed search, from a recipe to cells."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prnas.commands import dry_run
from prnas.commands.draw import check_picture, save_picture
from prnas.commands.options import SearchOptions
from prnas.commands.run_options import (
    RUNS,
    check_run_options,
    config_overrides,
    display_for,
    nothing_left,
    showing,
)
from prnas.config.search import SearchConfig
from prnas.io.errors import UserError
from prnas.runs import named
from prnas.studies.names import STUDY

if TYPE_CHECKING:
    from prnas.searching.training_pool import MakeTrainers
    from prnas.studies.short_trainings import EngineTrainers


def run(recipe: str | None, options: SearchOptions) -> None:
    """Search, and show the progress. All mistakes in the options are found before it starts."""
    if options.picture is not None:
        check_picture(options.picture)
    check_run_options(options, recipe=recipe)
    trainers = _trainers(options)
    overrides = config_overrides(options)
    resumed_study = options.resume is not None and (options.resume / STUDY).is_file()
    if resumed_study or options.seeds is not None:
        if trainers is not None:
            raise UserError("--engine is for the short trainings of a single search")
        from prnas.commands import search_seeds

        search_seeds.run(recipe or named.default_search(options.data), options)
        return
    if nothing_left(options, "search"):
        return
    recipe = recipe or named.default_search(options.data)
    settled = None
    if options.resume is None:
        settled = named.settle(named.draft_of(recipe, overrides, SearchConfig))
        if options.dry_run:
            dry_run.show(settled, options, _advice(recipe, settled.config))
            return

    from prnas.report.default_callbacks import with_default_callbacks
    from prnas.searching import api

    display = display_for(options)
    callbacks = with_default_callbacks([display])
    with showing([display], "search", options.brief):
        if settled is None:
            assert options.resume is not None
            result = api.resume(
                options.resume, overrides=overrides, callbacks=callbacks, make_trainers=trainers
            )
        else:
            result = api.start(
                settled.config,
                runs=options.runs or RUNS,
                name=options.name,
                recipe=Path(recipe).stem,
                callbacks=callbacks,
                reasons=settled.reasons or _advice(recipe, settled.config),
                make_trainers=trainers,
            )
    if options.picture is not None and display.started:
        from prnas.drawing.cells import draw_genotype

        title = result.folder.name if result.folder else None
        save_picture(draw_genotype(result.genotype, title), options.picture, options.brief)


def _trainers(options: SearchOptions) -> "MakeTrainers | None":
    """What makes short trainings, if an engine is wanted for them."""
    if options.engine is None:
        if options.address is not None or options.slots is not None:
            raise UserError("--address and --slots are for --engine")
        return None
    from prnas.studies.config import StudyConfig

    given = {"name": options.engine, "address": options.address}
    data: dict[str, Any] = {  # A study of as many jobs as there are trainings.
        "rows": [{"name": "trainings", "search": "halving-small"}],
        "engine": {key: value for key, value in given.items() if value is not None},
        "slots": options.slots,
    }
    StudyConfig.from_data(data)  # A mistake is told before anything is loaded.

    def make(threads: int, device_type: str) -> "EngineTrainers":
        from prnas.commands.study import engine_of
        from prnas.studies.short_trainings import EngineTrainers

        resources = {"threads": threads, "gpus": None if device_type == "cuda" else 0}
        engine, _ = engine_of(StudyConfig.from_data({**data, "resources": resources}))
        return EngineTrainers(engine)

    return make


def _advice(recipe: str, config: SearchConfig) -> tuple[tuple[str, str], ...]:
    """Advice on a recipe that does not fit these images."""
    name = config.data.name
    if recipe != "quick" or name == "digits":
        return ()
    better = shlex.join(["prnas", "search", "pictures", "--data", name])
    flips = "flipped" if config.data.flip else "not flipped"
    shift = config.data.crop_padding
    return (
        (
            "note",
            f"quick is made for digits: images are {flips} and shifted by at most {shift} "
            f"pixels; for other images there is `{better}`",
        ),
    )
