"""The same training with several seeds, in one folder: what its page says above the results."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from prnas.report.view import Facts, View, original_command

SEED = re.compile(r"seed-([0-9]{1,9})")  # the folder of one of a group's runs
OWN = ("Seed", "Started", "Folder")  # facts of a single run
MOST_SEEDS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """A folder of runs seed-0, seed-1, … `seeds`: all that it will have, if it says so."""

    name: str
    folder: str
    seeds: tuple[int, ...] = ()

    def ended(self, views: Sequence[View]) -> bool:
        """Seeds are trained one after the other: those to come count too."""
        done = {PurePath(view.info.folder).name for view in views if view.ended}
        return all(view.ended for view in views) and done >= {f"seed-{seed}" for seed in self.seeds}


def several_head(views: Sequence[View], group: GroupInfo | None) -> dict[str, Any]:
    """What all the runs have in common, and what to do with a group as a whole."""
    first, *others = [view.data()["facts"] for view in views]
    common = [fact for fact in first if all(fact in other for other in others)]
    facts = [(label, text) for label, text in common if label not in OWN]
    if group is None:
        return {"facts": facts, "commands": []}
    if group.seeds:
        facts.insert(0, ("Seeds", _seeds(views, group)))
    facts.append(("Folder", group.folder))
    return {"facts": facts, "commands": _commands(views, group)}


def _seeds(views: Sequence[View], group: GroupInfo) -> str:
    shown = ", ".join(map(str, group.seeds[:MOST_SEEDS_SHOWN]))
    more = ", …" if len(group.seeds) > MOST_SEEDS_SHOWN else ""
    ended = sum(view.ended for view in views)
    state = "all finished" if group.ended(views) else f"{ended} of {len(group.seeds)} finished"
    return f"{shown}{more} ({state})"


def _commands(views: Sequence[View], group: GroupInfo) -> Facts:
    folder, commands = shlex.quote(group.folder), Facts()
    if group.seeds and views[0].info.is_training:
        config = shlex.quote(f"{group.folder.rstrip('/')}/config.yaml")
        repeat = f"prnas retrain {folder} {config} --seeds {len(group.seeds)}"
        commands.append(("Repeat it with all seeds", repeat))
        if not group.ended(views):
            commands.append(("Watch it live", f"prnas watch {folder}"))
            commands.append(("Go on if it stopped", f"prnas retrain --resume {folder}"))
    best = next((view for view in views if view.ended and view.info.is_training), None)
    if best is not None:
        commands.append(("Evaluate a model", f"prnas evaluate {best.info.quoted}"))
        commands.append(("Export a model", f"prnas export {best.info.quoted} -o model.onnx"))
    original = original_command(views[0].info)
    if original:
        commands.append(("Started by", original))
    return commands
