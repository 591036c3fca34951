"""`prnas search`: a new or resumed search, from a recipe to cells."""

from pathlib import Path

from prnas.commands.draw import check_picture, save_picture
from prnas.commands.options import SearchOptions
from prnas.commands.run_options import RUNS, check_run_options, config_overrides, showing
from prnas.config.search import SearchConfig
from prnas.runs import named
from prnas.studies.names import STUDY

DEFAULT_RECIPE = "quick"


def run(recipe: str | None, options: SearchOptions) -> None:
    """Search, and show the progress. All mistakes in the options are found before it starts."""
    if options.picture is not None:
        check_picture(options.picture)
    check_run_options(options, recipe=recipe)
    overrides = config_overrides(options)
    resumed_study = options.resume is not None and (options.resume / STUDY).is_file()
    if resumed_study or options.seeds is not None:
        from prnas.commands import search_seeds

        search_seeds.run(recipe or DEFAULT_RECIPE, options)
        return
    recipe = recipe or DEFAULT_RECIPE
    config = None
    if options.resume is None:
        config = named.config_of(recipe, overrides, SearchConfig)

    from prnas.report.default_callbacks import with_default_callbacks
    from prnas.searching import api
    from prnas.terminal.display import Display

    display = Display(quiet=options.quiet)
    callbacks = with_default_callbacks([display])
    with showing([display], "search"):
        if config is None:
            assert options.resume is not None
            result = api.resume(options.resume, overrides=overrides, callbacks=callbacks)
        else:
            result = api.start(
                config,
                runs=options.runs or RUNS,
                name=options.name,
                recipe=Path(recipe).stem,
                callbacks=callbacks,
            )
    if options.picture is not None and display.started:
        from prnas.drawing.cells import draw_genotype

        title = result.folder.name if result.folder else None
        save_picture(draw_genotype(result.genotype, title), options.picture)
