"""The examples in the help of each command: lines to type, and above each what it does."""

from textwrap import indent

EXAMPLES = {
    "": """\
# Is everything there that prnas needs?
prnas doctor
# From a folder of pictures to a tested model, in an hour.
prnas fit pictures --minutes 60
# A search on the digits that come with prnas, in minutes.
prnas search quick
""",
    "space": """\
# The operations of the paper's smallest setting.
prnas space darts-like --list
# A setting of your own, with its morphisms as a picture.
prnas space mine.yaml --graph space.svg
""",
    "zoo": """\
# A published cell, its results and its size.
prnas zoo pr-darts-dl2
# The same as a genotype file.
prnas zoo pr-darts-dl2 --json > cell.json
""",
    "truth": """\
# How good the cell is that a search found.
prnas truth runs/first
# A cell as NAS-Bench-201 writes it.
prnas truth '|avg_pool_3x3~0|+|none~0|none~1|+|none~0|none~1|nor_conv_3x3~2|'
""",
    "draw": """\
# A published cell.
prnas draw pr-darts-dl2 -o cells.svg
# What a search found.
prnas draw runs/first
""",
    "methods": """\
# One of them, and how to switch it on in any search.
prnas methods pc-darts
""",
    "recipes": """\
# One of them as YAML, to change it.
prnas recipes quick > mine.yaml
""",
    "data": """\
# The sets that have names, and where they are.
prnas data
# Your own images, as a search will see them.
prnas data folder:pictures --sample sample.png
""",
    "config": """\
# The full configuration of a search, as a file for `prnas search`.
prnas config quick --set seed=5 -o mine.yaml
""",
    "fit": """\
# The plan for these pictures, and how long it takes.
prnas fit pictures --minutes 60 --dry-run
# A network of limited size, in two hours.
prnas fit pictures --minutes 120 --max-params 300k --name pets
# Continue a fit that was stopped.
prnas fit --resume runs/pets
""",
    "search": """\
# The digits that come with prnas, in minutes.
prnas search quick --name first
# Your own images: a folder for each class.
prnas search pictures --data folder:pictures
# PR-DARTS as in the paper, with another first cycle and a size limit.
prnas search darts-like --set schedule.cycles.0.epochs=30 --max-params 3M
# How long it would take here.
prnas search cifar10-small --dry-run
# Continue a search that was stopped.
prnas search --resume runs/first
""",
    "latency": """\
# Measure here, for `prnas search cifar10-small --latency latency.json`.
prnas latency cifar10-small --threads 1 -o latency.json
""",
    "retrain": """\
# The cells that a search found, on the same images.
prnas retrain runs/first
# A published cell as in its paper, with three seeds.
prnas retrain pr-darts-dl2 retrain-cifar10 --seeds 3
# A plain network, to compare with.
prnas retrain resnet8 --data folder:pictures
""",
    "study": """\
# How long it takes, and the smallest difference it can show.
prnas study baselines-quick --dry-run
# Run it; after a stop, the same command continues.
prnas study baselines-quick
# Its results so far, as a table for a paper.
prnas study runs/baselines-quick --latex
""",
    "evaluate": """\
# The test images of its training.
prnas evaluate runs/trained -o evaluation
# Images that it was not trained on.
prnas evaluate runs/trained --data folder:new --part all
""",
    "predict": """\
# A photograph, and all those of a folder.
prnas predict runs/trained cat.jpg photos
# As a table, with the most probable class only.
prnas predict runs/trained photos --top 1 --csv
""",
    "export": """\
# ONNX that takes pixels from 0 to 1.
prnas export runs/trained -o net.onnx --normalize
# One Python file that needs only PyTorch, and the weights beside it.
prnas export runs/trained -o net.py
""",
    "report": """\
# One run: it writes runs/first/report.html.
prnas report runs/first
# Two runs side by side, with figures for a paper.
prnas report runs/first runs/second -o comparison.html --figures figures
""",
    "watch": """\
# In a browser on this machine.
prnas watch runs/first
# For other machines too, on any free port.
prnas watch runs/first --host 0.0.0.0 --port 0
""",
    "records": """\
# Every epoch of two runs, for pandas and R.
prnas records runs/first runs/second --csv -o epochs.csv
# Their results as a table for a paper.
prnas records runs/first runs/second --latex
""",
    "doctor": """\
# What is here, what will work, and what will not.
prnas doctor
# The same for a bug report, or for a script.
prnas doctor --json
""",
    "completion": """\
# For the shell that is running: once is enough.
prnas completion
# Print the script instead, to put it wherever you like.
prnas completion zsh --print
""",
}


def epilogue(command: str) -> str:
    """The end of a command's help."""
    return "Examples:\n" + indent(EXAMPLES[command], "  ")


def lines(command: str) -> list[str]:
    """The lines to type."""
    return [line for line in EXAMPLES[command].splitlines() if not line.startswith("#")]
