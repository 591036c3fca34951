"""Pages with every key of the configs: what it may hold, its default, and what it means."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from docs.tools.meanings import meanings, summary
from docs.tools.values import default, in_words, unwrapped
from prnas.config.architecture import RELAXATIONS, STEPS, ArchitectureConfig
from prnas.config.final import CostConfig, FinalConfig
from prnas.config.retrain import DEFAULT_GENOTYPE, RetrainConfig
from prnas.config.search import NetworkConfig, SearchConfig
from prnas.config.undecided import STAND_INS
from prnas.space.schedule import (
    MIN_CELLS,
    MOST_CELLS,
    MOST_CHANNELS,
    MOST_DECAY,
    MOST_EPOCHS,
    Cycle,
    Schedule,
)
from prnas.space.setting import SETTINGS, Limits, Setting
from prnas.space.shape import SHAPES, CellShape
from prnas.studies.config import ENGINES, EngineConfig, RowConfig, StudyConfig


def _whole(least: int, most: int) -> str:
    return f"whole number, at least {least:,} and at most {most:,}"


def _choice(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)


_FRACTION = "number, at least 0 and below 1"
# Bounds of values that check themselves: whole numbers by the least and the most.
BOUNDS: dict[tuple[type[Any], str], tuple[int, int]] = {
    (Cycle, "epochs"): (1, MOST_EPOCHS),
    (Cycle, "grace_epochs"): (0, MOST_EPOCHS),
    (Cycle, "morphisms"): (0, 1_000),
    (Cycle, "candidates"): (1, 1_000),
    (Cycle, "cells"): (MIN_CELLS, MOST_CELLS),
    (Cycle, "channels"): (1, MOST_CHANNELS),
    (Cycle, "partial_channels"): (1, MOST_CHANNELS),
    (CellShape, "inputs"): (1, 2),
}
# Words for what no type says.
_WORDS: dict[tuple[type[Any], str], str] = {
    (SearchConfig, "space"): f"{_choice(SETTINGS)}, a YAML file, or a section",
    (NetworkConfig, "shape"): f"{_choice(SHAPES)}, or a section",
    (RetrainConfig, "genotype"): "a published cell's name, a genotype, or `null`",
    (FinalConfig, "latency"): "a file of `prnas latency`, its content, or `null`",
    (FinalConfig, "max_params"): "number, or such as `3M`, `800k`, or `null`",
    (FinalConfig, "max_macs"): "number, or such as `500M`, or `null`",
    (FinalConfig, "max_latency"): "milliseconds, or such as `20ms`, or `null`",
    (CostConfig, "reference"): "number, or such as `3M`, `20ms`, or `null`",
    (ArchitectureConfig, "lr"): "number, above 0 and at most 1,000, or `auto`",
    (ArchitectureConfig, "relaxation"): _choice(RELAXATIONS),
    (ArchitectureConfig, "step"): _choice(STEPS),
    (EngineConfig, "name"): _choice(ENGINES),
    (StudyConfig, "rows"): "list of sections",
    (Setting, "initial_pool"): "list of labels of operations",
    (Setting, "limits"): "section",
    (Schedule, "cycles"): "list of sections",
    (CellShape, "roles"): "`[normal, reduction]` or `[normal]`",
    (Cycle, "skip_dropout"): _FRACTION,
    (Cycle, "skip_dropout_decay"): f"number, at least 0 and at most {MOST_DECAY:,}",
    (Limits, "kernel_min"): "odd whole number",
    (Limits, "kernel_max"): "odd whole number",
    (Limits, "dilation_max"): "whole number, at least 1",
    (Limits, "depth_max"): "whole number, at least 0, or `null`",
    (Limits, "width_max"): "whole number, at least 1, or `null`",
} | {key: _whole(*bounds) for key, bounds in BOUNDS.items()}
_DEFAULTS: dict[tuple[type[Any], str], str] = {
    (SearchConfig, "space"): "`darts-like`",
    (NetworkConfig, "shape"): "`darts`",
    (RetrainConfig, "genotype"): f"`{DEFAULT_GENOTYPE}`",
    (Schedule, "cycles"): "the paper's nine",
    (CellShape, "roles"): "`[normal, reduction]`",
    (Setting, "initial_pool"): "`[max 3x3, avg 3x3, skip, conv 3x3]`",
    (Setting, "limits"): "see its keys",
}
# Fields that are written as values, and have keys of their own: what stands between the names.
_INSIDE: dict[tuple[type[Any], str], tuple[type[Any], str]] = {
    (SearchConfig, "space"): (Setting, "space."),
    (SearchConfig, "schedule"): (Schedule, "schedule."),
    (NetworkConfig, "shape"): (CellShape, "network.shape."),
    (Setting, "limits"): (Limits, "space.limits."),
    (Schedule, "cycles"): (Cycle, "schedule.cycles.N."),
    (StudyConfig, "rows"): (RowConfig, "rows.N."),
}
_LAST = ("checkpoints", "compute")
_MORE = {
    "space": "The [search space](../search-space.md) explains them.",
    "schedule": "`N` counts the cycles from 0.",
    "network.shape": "What they mean together is in [shapes](../search-space.md#shapes).",
    "architecture": "Each method's own are in [methods](../methods.md).",
    "searcher": "[Searchers](../searchers.md) explains them.",
    "final": "[Networks that fit](../limits.md) explains them.",
    "evidence": "[How sure is it](../searching.md#how-sure-is-it) explains them.",
    "rows": "`N` counts the rows from 0.",
}


@dataclass(frozen=True)
class Key:
    """A key of a config. One that has no default must be given."""

    name: str
    values: str
    default: str
    meaning: str


@dataclass(frozen=True)
class KeySection:
    """A section: its name (empty: the keys at the top), what it is, and its keys."""

    name: str
    meaning: str
    keys: tuple[Key, ...]


def sections_of(kind: type[Any]) -> list[KeySection]:
    """All sections of a config, those within others after these; what matters least comes last."""
    sections = list(_sections(kind, "", None))
    return sorted(sections, key=lambda section: section.name.split(".")[0] in _LAST)


def _sections(kind: type[Any], path: str, value: Any) -> Iterator[KeySection]:
    keys: list[Key] = []
    inner: list[KeySection] = []
    comments = meanings(kind)
    for name, (annotation, metadata, standard) in _fields(kind, value).items():
        whole = f"{path}{name}"
        section = _section_of(annotation)
        inside, prefix = _INSIDE.get((kind, name), (None, ""))
        if inside is not None or section is not None:
            within = prefix or f"{whole}."
            inner += _sections(inside or section, within, None if inside else standard)  # pyright: ignore
        if inside is Schedule or (section and not inside and standard is not None):
            continue  # The section says it all.
        words = _WORDS.get((kind, name)) or in_words(annotation, metadata)
        if _may_be_chosen(whole):
            words += ", or `auto`"
        shown = _DEFAULTS.get((kind, name)) or _shown(standard)
        keys.append(Key(whole, words, shown, comments.get(name, "")))
    text = summary(kind).replace("`None`", "`null`")
    yield KeySection(path.removesuffix("."), text, tuple(keys))
    yield from inner


def _fields(kind: type[Any], value: Any) -> dict[str, tuple[Any, list[Any], Any]]:
    """Type, what is said beside it, and default of each field: that of `value`, if there is one."""
    if issubclass(kind, BaseModel):
        return {
            name: (field.annotation, field.metadata, _standard(field, name, value))
            for name, field in kind.model_fields.items()
        }
    return {
        field.name: (kind.__annotations__[field.name], [], _plain(field))
        for field in dataclasses.fields(kind)
    }


def _standard(field: Any, name: str, value: Any) -> Any:
    if value is not None:
        return getattr(value, name)
    default = field.get_default(call_default_factory=True)
    return ... if default is PydanticUndefined else default


def _plain(field: Any) -> Any:
    return ... if field.default is dataclasses.MISSING else field.default


def _section_of(annotation: Any) -> type[BaseModel] | None:
    """The section that a field holds, also one that may be left out."""
    for each in (annotation, *get_args(annotation)):
        kind, _ = unwrapped(each)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return None


def _may_be_chosen(name: str) -> bool:
    return name in {pattern.replace("*", "N") for pattern in STAND_INS}


def _shown(value: Any) -> str:
    return "" if value is ... else default(value)


# ---------------------------------------------------------------- pages


INTRODUCTIONS = {
    "config-search": (
        "Config of a search",
        SearchConfig,
        "Every key of a config for `prnas search`. `--set KEY=VALUE` changes one, [configuration]"
        "(../configuration.md) says how files and recipes go together, and `prnas config RECIPE` "
        "prints all values of a recipe.",
    ),
    "config-retrain": (
        "Config of a training",
        RetrainConfig,
        "Every key of a config for `prnas retrain`, which begins with `task: retrain`. [Training]"
        "(../retrain.md) explains them.",
    ),
    "config-study": (
        "Study file",
        StudyConfig,
        "Every key of a file for `prnas study`. [Studies](../study.md) explains them.",
    ),
}


def pages() -> dict[str, str]:
    """The pages by name. Every key is described; in the index is the first of each name."""
    taken: set[str] = set()
    written: dict[str, str] = {}
    for page, (title, kind, introduction) in INTRODUCTIONS.items():
        parts = [f"# {title}", introduction]
        for section in sections_of(kind):
            name = section.name.replace(".N", "")
            parts.append(f"## `{name}`" if name else "## Top-level keys")
            parts.append(f"{section.meaning} {_MORE.get(name, '')}".strip() if name else "")
            parts += [_entry(page, key, key.name in taken) for key in section.keys]
            taken |= {key.name for key in section.keys}
        written[page] = "\n\n".join(part for part in parts if part) + "\n"
    return written


def _entry(page: str, key: Key, again: bool) -> str:
    lines = [f"({page}-{key.name.replace('.', '-').lower()})="] if again else []
    lines += [f"```{{confval}} {key.name}", ":no-index:" if again else ""]
    lines += [f":type: {key.values}", f":default: {key.default}" if key.default else "", ""]
    lines += [key.meaning + ("" if key.default else " It must be given."), "```"]
    head, body = lines[:-3], lines[-3:]
    return "\n".join([*(line for line in head if line), *body])
