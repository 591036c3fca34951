"""How far apart two genotypes are; 0 if they differ in nothing but the order of nodes."""

from prnas.space.genotype import NUM_INPUTS, Cell, Edge, Genotype, Node


def edit_distance(one: Genotype, other: Genotype) -> int:
    """The least number of single edits between two genotypes, both cells together.

    An edit changes the operation of an edge, rewires its input, or puts a node into or out of the
    concatenation. The numbering of nodes does not matter. A node that only one of them has costs
    its two edges (two edits each) and its place in the concatenation. This follows NAS-Bench-101
    (Ying et al., 2019), which the paper cites for its locality property. The time grows steeply
    with the nodes: about a millisecond for four, a second for nine that have little in common.
    """
    return cell_distance(one.normal, other.normal) + cell_distance(one.reduction, other.reduction)


def cell_distance(one: Cell, other: Cell) -> int:
    """The edit distance of two cells: exact, over all ways to match their nodes."""
    few, many = sorted((one, other), key=lambda cell: cell.num_nodes)
    extra = many.num_nodes - few.num_nodes
    best = 4 * many.num_nodes + many.num_nodes + few.num_nodes + 1  # more than any matching costs

    def match(indices: tuple[int, ...], edits: int) -> None:
        # A node reads only earlier ones, so its cost is known once they have their places.
        nonlocal best
        if edits >= best:
            return
        number = len(indices)
        if number == few.num_nodes:
            left = set(range(many.num_nodes)).difference(indices)
            best = min(best, edits + 4 * extra + sum(_joins(many, node) for node in left))
            return
        new = _numbering_of(indices)
        costs = [
            (
                _node_distance(few.nodes[number], many.nodes[index], new)
                + (_joins(few, number) != _joins(many, index)),
                index,
            )
            for index in range(many.num_nodes)
            if index not in indices
        ]
        for cost, index in sorted(costs):
            match((*indices, index), edits + cost)

    match((), 0)
    return best


def _joins(cell: Cell, number: int) -> bool:
    return NUM_INPUTS + number in cell.concat


def _numbering_of(indices: tuple[int, ...]) -> dict[int, int]:
    """The states of one cell as those of another, whose node `indices[i]` is its node i."""
    inputs = {state: state for state in range(NUM_INPUTS)}
    return inputs | {NUM_INPUTS + at: NUM_INPUTS + index for at, index in enumerate(indices)}


def _node_distance(one: Node, other: Node, new: dict[int, int]) -> int:
    def cost(mine: Edge, theirs: Edge) -> int:
        return (new[mine.input] != theirs.input) + (mine.op != theirs.op)

    straight = cost(one[0], other[0]) + cost(one[1], other[1])
    crossed = cost(one[0], other[1]) + cost(one[1], other[0])
    return min(straight, crossed)
