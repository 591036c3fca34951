"""`prnas latency`: a table of latencies on this device, for limits on what a search may find."""

import platform
import shlex
from statistics import median

import prnas
from prnas.commands.draw import check_target
from prnas.commands.options import LatencyOptions
from prnas.config.overrides import typed_overrides
from prnas.config.search import SearchConfig
from prnas.data.survey import shape_and_classes
from prnas.io.errors import UserError
from prnas.io.progress import bar
from prnas.io.text import write_text
from prnas.runs import named
from prnas.searching.cycle_end import MOST_STEPS
from prnas.space.analysis.counting import discoverable
from prnas.space.costs import shown
from prnas.space.latency import LatencyFile, dumps
from prnas.terminal.amounts import counted
from prnas.terminal.output import facts, show, show_heading, show_next

FAR = 1.25  # times what was measured, or as many times less: then a table is not to be trusted


def run(recipe: str, options: LatencyOptions) -> None:
    """Measure, write and show. All mistakes in the options are found before it starts."""
    check_target("--out", options.out, (".json",))
    given = typed_overrides({"data.name": options.data, "data.root": options.data_root})
    draft = named.draft_of(recipe, [*options.overrides, *given], SearchConfig)
    config = named.settle(draft).config
    steps = config.schedule.num_replacements
    if steps > MOST_STEPS:
        raise UserError(
            f"latencies are for searches of at most {MOST_STEPS} replacements, whose operations "
            f"can all be measured before; {recipe} has {steps}"
        )
    images, classes = shape_and_classes(config.images)
    if problems := config.final.problems(
        config.network.shape, config.network.nodes, config.network.output
    ):
        raise UserError("; ".join(f"final.{problem}" for problem in problems))
    network = config.final_network(classes, images)
    candidates = discoverable(config.space, steps)

    import torch

    from prnas.models.inference import choose_device
    from prnas.models.latency import measure_latencies, num_samples

    device = choose_device(options.accelerator, options.threads)
    about = {
        "prnas": prnas.__version__,
        "torch": str(torch.__version__),
        "platform": platform.platform(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "threads": str(torch.get_num_threads()),
        "images in a batch": "1",
    }
    samples = num_samples(network, candidates, options.repeats)
    with bar("measuring", samples) as progress:
        measured = measure_latencies(
            network,
            candidates,
            device,
            output=config.network.output,
            repeats=options.repeats,
            environment=about,
            advance=progress.advance,
        )
    write_text(options.out, dumps(measured))
    _show(measured, options.repeats)
    show("", f"wrote {options.out}")
    limit = 0.8 * median(check.measured for check in measured.checks) / 1e6
    words = ["prnas", "search", recipe, *(["--data", options.data] if options.data else [])]
    changes = [word for override in options.overrides for word in ("--set", override)]
    table = ["--latency", str(options.out), "--max-latency", f"{limit:.2g}ms"]
    show_next(shlex.join([*words, *changes, *table]), logged=True)


def _show(file: LatencyFile, repeats: int) -> None:
    """The network, the device, and how far the table can be trusted."""
    spreads = [
        (timing.upper_quartile - timing.lower_quartile) / timing.median
        for timing in file.measured.values()
        if timing.median
    ]
    ratios = sorted(check.by_table / check.measured for check in file.checks if check.measured)
    threads = counted(int(file.environment["threads"]), "thread")
    operations = counted(len(file.measured), "operation")
    times = sorted(check.measured for check in file.checks)
    show_heading("Latencies of one image")
    pairs = [
        ("network", file.table.network.in_words),
        ("device", f"{file.environment['device']}, {threads}"),
        ("measured", f"{operations} in their places, each {repeats} times, in turns"),
        ("spread", f"half of all times are within {100 * median(spreads):.0f} % (typically)"),
        ("around", f"{shown('latency', file.table.around)} for all that is no operation"),
        (
            "check",
            f"{len(times)} networks of random cells take {shown('latency', times[0])} to "
            f"{shown('latency', times[-1])}; by the table {100 * ratios[0]:.0f} to "
            f"{100 * ratios[-1]:.0f} % of that",
        ),
    ]
    if ratios[0] < 1 / FAR or ratios[-1] > FAR:
        advice = (
            "the table is far from what these networks take: if other programs were running, "
            "measure again on a quiet machine; else a limit on the latency is a rough one"
        )
        pairs.append(("note", advice))
    show(facts(pairs))
