"""prnas: Prune-and-Replace Neural Architecture Search."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prnas.config.retrain import RetrainConfig
    from prnas.config.search import SearchConfig
    from prnas.exporting.export import export
    from prnas.models.model import Model, load
    from prnas.nets.network import build
    from prnas.retraining.api import retrain
    from prnas.runs.events import Callback, RetrainResult, SearchResult, TrainingCallback
    from prnas.searching.api import search
    from prnas.space import zoo
    from prnas.space.genotype import Cell, Edge, Genotype
    from prnas.space.operations import Conv, Pool, Skip, Zero

__version__ = "0.1.0.dev0"
__all__ = [
    "Callback",
    "Cell",
    "Conv",
    "Edge",
    "Genotype",
    "Model",
    "Pool",
    "RetrainConfig",
    "RetrainResult",
    "SearchConfig",
    "SearchResult",
    "Skip",
    "TrainingCallback",
    "Zero",
    "__version__",
    "build",
    "export",
    "load",
    "retrain",
    "search",
    "zoo",
]

# Names are looked up when they are first used: `import prnas` and `prnas --help` stay instant.
_HOMES = {
    "SearchConfig": "prnas.config.search",
    "RetrainConfig": "prnas.config.retrain",
    "RetrainResult": "prnas.runs.events",
    "TrainingCallback": "prnas.runs.events",
    "retrain": "prnas.retraining.api",
    "build": "prnas.nets.network",
    "export": "prnas.exporting.export",
    "Model": "prnas.models.model",
    "load": "prnas.models.model",
    "Cell": "prnas.space.genotype",
    "Edge": "prnas.space.genotype",
    "Genotype": "prnas.space.genotype",
    "Conv": "prnas.space.operations",
    "Pool": "prnas.space.operations",
    "Skip": "prnas.space.operations",
    "Zero": "prnas.space.operations",
    "Callback": "prnas.runs.events",
    "SearchResult": "prnas.runs.events",
    "search": "prnas.searching.api",
}


def __getattr__(name: str) -> Any:
    if name == "zoo":
        return import_module("prnas.space.zoo")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'prnas' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
