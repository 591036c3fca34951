"""The edit distance of two genotypes; 0 if they differ in nothing but the order of nodes."""

from itertools import zip_longest

from prnas.space.genotype import Cell, Edge, Genotype, Node


def edit_distance(first: Genotype, second: Genotype) -> int:
    """The least number of single edits between two genotypes of one shape, all cells together.

    An edit changes the operation of an edge, rewires its input, or puts a node into or out of the
    concatenation. The numbering of nodes does not matter. A node that only one of them has costs
    its two edges (two edits each) and its part in the concatenation. This follows NAS-Bench-101
    (Ying et al., 2019), which the paper cites for its locality property. The time grows steeply
    with the nodes: about a millisecond for four, a second for nine that have little in common.

    Where nodes read all states (as in NAS-Bench-201) nothing can be rewired, and nodes keep
    their numbers: it is the number of edges whose operations differ, and of nodes that only one of
    both outputs is made of.
    """
    return sum(cell_distance(first.cell(role), second.cell(role)) for role in first.roles)


def cell_distance(first: Cell, second: Cell) -> int:
    """The edit distance of two cells: exact, over all ways to match their nodes."""
    if first.shape != second.shape:
        raise ValueError("cells of different shapes have no edit distance")
    if first.shape.reads == "all":
        pairs = zip_longest(first.operations, second.operations)
        return sum(mine != other for mine, other in pairs) + len({*first.concat} ^ {*second.concat})
    few, many = sorted((first, second), key=lambda cell: cell.num_nodes)
    inputs = few.shape.inputs
    best = 4 * many.num_nodes + many.num_nodes + few.num_nodes + 1  # more than any matching costs

    def match(indices: tuple[int, ...], edits: int) -> None:
        # A node reads only earlier ones, so its cost is known once they are matched.
        nonlocal best
        if edits >= best:
            return
        number = len(indices)
        if number == few.num_nodes:
            left = set(range(many.num_nodes)).difference(indices)
            best = min(best, edits + sum(_alone(many, node) for node in left))
            return
        # The states of one cell as those of the other.
        states = [*range(inputs), *(inputs + index for index in indices)]
        costs: list[tuple[int, int]] = []
        for index in set(range(many.num_nodes)).difference(indices):
            cost = _node_distance(few.nodes[number], many.nodes[index], states)
            costs.append((cost + (_joins(few, number) != _joins(many, index)), index))
        for cost, index in sorted(costs):
            match((*indices, index), edits + cost)

    match((), 0)
    return best


def _joins(cell: Cell, number: int) -> bool:
    return cell.shape.inputs + number in cell.concat


def _alone(cell: Cell, number: int) -> int:
    """The edits for a node that only one cell has."""
    return 2 * len(cell.nodes[number]) + _joins(cell, number)


def _node_distance(first: Node, second: Node, states: list[int]) -> int:
    def cost(mine: Edge, theirs: Edge) -> int:
        return (states[mine.input] != theirs.input) + (mine.op != theirs.op)

    if len(first) != len(second):  # one edge against two: the other one is extra
        return 2 + min(cost(mine, theirs) for mine in first for theirs in second)
    if len(first) == 1:
        return cost(first[0], second[0])
    straight = cost(first[0], second[0]) + cost(first[1], second[1])
    crossed = cost(first[0], second[1]) + cost(first[1], second[0])
    return min(straight, crossed)
