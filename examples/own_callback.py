"""A callback of one's own: print what every cycle prunes and adds."""

from collections import Counter
from pathlib import Path

import prnas
from prnas.runs.records import CycleRecord
from prnas.space.change import Change
from prnas.space.pools import Pools

TINY = Path(__file__).with_name("tiny.yaml")


class Changes(prnas.Callback):
    """Counts the operations that leave and arrive. Callbacks watch; they change nothing."""

    def on_cycle(self, record: CycleRecord, pools: Pools) -> None:
        change = Change.from_json(record.change)
        edges = [edge for role in change.roles for edge in change.cell(role).edges]
        pruned = Counter(leaving.op.label for edge in edges for leaving in edge.pruned)
        added = Counter(arriving.op.label for edge in edges for arriving in edge.added)
        print(f"cycle {record.cycle}: pruned {_listed(pruned)}; added {_listed(added)}")


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{number} x {label}" for label, number in counts.most_common()) or "nothing"


if __name__ == "__main__":
    result = prnas.search(TINY, callbacks=[Changes()])
    print(result.genotype)
