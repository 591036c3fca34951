"""prnas: Prune-and-Replace Neural Architecture Search."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prnas.config.retrain import RetrainConfig
    from prnas.config.search import SearchConfig
    from prnas.exporting.export import export
    from prnas.fitting.api import FitResult, fit
    from prnas.io.errors import FormatError, UserError
    from prnas.models.model import Model, load
    from prnas.nets.network import build
    from prnas.report.recorded_run import RecordedRun, read_run
    from prnas.retraining.api import retrain
    from prnas.runs.events import Callback, RetrainResult, SearchResult, TrainingCallback
    from prnas.searching.api import search
    from prnas.space import zoo
    from prnas.space.genotype import Cell, Edge, Genotype
    from prnas.space.operations import Conv, Pool, Skip, Zero

__version__ = "0.1.0"
__all__ = ["Callback", "Cell", "Conv", "Edge", "FitResult", "FormatError", "Genotype"]
__all__ += ["Model", "Pool"]
__all__ += ["RecordedRun", "RetrainConfig", "RetrainResult", "SearchConfig", "SearchResult", "Skip"]
__all__ += ["TrainingCallback", "UserError", "Zero", "__version__", "build", "export", "fit"]
__all__ += ["load", "read_run", "retrain", "search", "zoo"]

# Names are looked up when they are first used: `import prnas` and `prnas --help` stay instant.
_NAMES = {
    "config.retrain": ["RetrainConfig"],
    "config.search": ["SearchConfig"],
    "exporting.export": ["export"],
    "fitting.api": ["FitResult", "fit"],
    "io.errors": ["FormatError", "UserError"],
    "models.model": ["Model", "load"],
    "nets.network": ["build"],
    "report.recorded_run": ["RecordedRun", "read_run"],
    "retraining.api": ["retrain"],
    "runs.events": ["Callback", "RetrainResult", "SearchResult", "TrainingCallback"],
    "searching.api": ["search"],
    "space.genotype": ["Cell", "Edge", "Genotype"],
    "space.operations": ["Conv", "Pool", "Skip", "Zero"],
}


def __getattr__(name: str) -> Any:
    if name == "zoo":
        return import_module("prnas.space.zoo")
    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"prnas.{module}"), name)
    raise AttributeError(f"module 'prnas' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
