"""The end of a run for scripts: its folder in one line, or its result as JSON."""

from pathlib import Path
from typing import Any

from prnas.retraining.seeds import SeedsResult
from prnas.runs.events import RetrainResult, SearchResult
from prnas.terminal.output import show_json


def print_folder(folder: Path | None) -> None:
    """One line, as the folder is called: whoever reads it may open it."""
    if folder is not None:
        print(folder)


def print_result(result: SearchResult | RetrainResult | SeedsResult) -> None:
    show_json(result_data(result))


def result_data(result: SearchResult | RetrainResult | SeedsResult) -> dict[str, Any]:
    """The result as plain data. Accuracies and errors are fractions."""
    folder = None if result.folder is None else str(result.folder)
    if isinstance(result, SeedsResult):
        return {"task": "retrain", "folder": folder, **result.to_json()}
    if isinstance(result, RetrainResult):
        return {
            "task": "retrain",
            "folder": folder,
            "seed": result.seed,
            "test_error": result.test_error,
            "averaged_epochs": result.averaged_epochs,
            "parameters": result.parameters,
            "macs": result.macs,
            "epochs": len(result.epochs),
            "seconds": result.seconds,
        }
    return {
        "task": "search",
        "folder": folder,
        "seed": result.config.seed if result.config else None,
        "validation_accuracy": result.validation_accuracy,
        "how_sure": result.how_sure,
        "cycles": len(result.cycles),
        "epochs": len(result.epochs),
        "evaluations": len(result.evaluations),
        "seconds": result.seconds,
        "fit": result.fit and result.fit.model_dump(),
        "next": result.next and result.next.model_dump(),
        "genotype": result.genotype.to_json(),
    }
