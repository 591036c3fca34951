"""`--dry-run` of a search or a training: what would be done, and how long it would take here."""

from typing import TYPE_CHECKING, Any

from prnas.commands.options import RunOptions
from prnas.commands.run_options import measuring
from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.runs.named import Settled
from prnas.terminal import output
from prnas.terminal.searcher_lines import budget, supernet_budget

if TYPE_CHECKING:
    from prnas.config.sections import RunConfig


def show(
    settled: Settled[Any], options: RunOptions, advice: tuple[tuple[str, str], ...] = ()
) -> None:
    """Take the first steps of a run, and show the plan with the seconds that follow from them."""
    from prnas.studies.measure import measured_seconds
    from prnas.terminal.amounts import duration

    with measuring():
        seconds = measured_seconds(settled.config)
    if options.as_json:
        output.show_json({"seconds": round(seconds, 1), "config": settled.config.to_data()})
    elif options.quiet:
        output.show(f"{seconds:.0f}")
    else:
        output.show(output.facts([*_plan(settled.config), *settled.reasons, *advice]))
        output.show(f"It takes about {duration(seconds)} here, by its first steps.")
        output.show("Nothing was written; without --dry-run it begins.")


def _plan(config: "RunConfig") -> list[tuple[str, str]]:
    """A summary of a run's config, in a few lines: each a title and a text."""
    lines = [("what", config.description or config.task), ("images", str(config.data.name))]
    if isinstance(config, RetrainConfig):
        network = config.network
        lines.append(("epochs", f"{config.training.epochs:,}"))
        kind = f"{network.cells} cells" if network.kind == "cells" else network.kind
        lines.append(("network", f"{kind}, {network.channels} channels"))
    elif isinstance(config, SearchConfig) and config.searcher.without_supernet:
        lines.append(("searcher", f"{config.searcher.method}, by {config.searcher.scorer}"))
        lines.append(("budget", budget(config.searcher)))
    elif isinstance(config, SearchConfig):
        cycles, network = config.schedule.cycles, config.network
        epochs = sum(cycle.epochs for cycle in cycles)
        lines.append(("cycles", f"{len(cycles)}, with {epochs:,} epochs in all"))
        lines.append(("network", f"{network.cells} cells, {network.channels} channels"))
        if (bounds := supernet_budget(config)) is not None:
            lines.append(("budget", bounds))
    return lines
