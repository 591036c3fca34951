"""The plan of a network: where reductions stand, and how wide its cells are."""

from dataclasses import dataclass

from prnas.space.genotype import Role


@dataclass(frozen=True, slots=True)
class CellPlan:
    """One cell of a network: its role, channels of both inputs, and its own."""

    role: Role
    c_before_last: int
    c_last: int
    channels: int
    after_reduction: bool

    @property
    def reduces(self) -> bool:
        return self.role == "reduction"


def reduction_places(cells: int) -> tuple[int, int]:
    """The indices of the two reduction cells."""
    return cells // 3, 2 * cells // 3


def plan_cells(
    cells: int,
    channels: int,
    stem_channels: int,
    width: dict[Role, int],
    after_reduction: bool = False,
) -> tuple[list[CellPlan], int]:
    """All cells of a network, and the channels of its last one.

    `width` is how many times its channels a cell's output has. `after_reduction` says that the
    stem halves between the first cell's two inputs.
    """
    indices = reduction_places(cells)
    before_last, last = stem_channels, stem_channels
    plans: list[CellPlan] = []
    for index in range(cells):
        role: Role = "reduction" if index in indices else "normal"
        if role == "reduction":
            channels *= 2
        plans.append(CellPlan(role, before_last, last, channels, after_reduction))
        before_last, last = last, width[role] * channels
        after_reduction = role == "reduction"
    return plans, last
