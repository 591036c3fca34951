"""The best choice within bounds: exactly, by dynamic programming that leaves out what cannot win.

Every group (a node) chooses so many of its slots (edges), and one option (an operation) for each
that it chooses. Values add up and so do costs, of several kinds; the sum of each kind of cost has a
bound. It is a knapsack problem with several bounds, where each slot is taken at most once.

All numbers are whole, so that no rounding can lose the best choice. States that another one beats
in value and in every cost are left out, and so are those that an upper bound rules out: bounds are
taken into the value with a price for each cost, which can only overestimate (Lagrange's
relaxation; Fisher, 1981). Whatever the prices are, the result is exact; good ones make it fast.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import nlargest, nsmallest

Costs = tuple[int, ...]
Prices = list[int]
# For each group, for each slot, the index of the option taken, or None.
Choice = list[list[int | None]]
_SHIFT = 24  # bits behind the point of a price
_COMPARED = 64  # states that each new one is compared with, where costs are of several kinds


@dataclass(frozen=True, slots=True)
class Option:
    """Something that a slot can take: its value, and what it costs of each kind."""

    value: int
    costs: Costs


@dataclass(frozen=True, slots=True)
class Group:
    """Slots, each with its options, of which exactly `number` take one."""

    slots: tuple[tuple[Option, ...], ...]
    number: int

    def __post_init__(self) -> None:
        if not 0 <= self.number <= len(self.slots) or not all(self.slots):
            raise ValueError("a group takes one of the options of some of its slots")


@dataclass(frozen=True, slots=True)
class _Trail:
    """The options that a state has taken, as a linked list, newest first."""

    group: int
    slot: int
    option: int
    before: "_Trail | None"


@dataclass(frozen=True, slots=True)
class _State:
    value: int
    costs: Costs
    trail: _Trail | None


def best_fit(groups: Sequence[Group], bounds: Costs) -> Choice | None:
    """The choice of the greatest value whose costs are within the bounds; none if there is none."""
    if any(least_cost(groups, kind) > bound for kind, bound in enumerate(bounds)):
        return None
    least = [_least_after(groups, kind) for kind in range(len(bounds))]
    relaxed = _Relaxed(groups, bounds)
    prices = relaxed.good_prices()
    best = relaxed.best
    best_value = None if best is None else best.value
    ahead = _most_after(groups, prices)
    states = [_State(0, (0,) * len(bounds), None)]
    flat = 0  # the number of slots before this group, in `least` and `ahead`
    for index, group in enumerate(groups):
        states = _through_group(
            group, index, states, bounds, _Pruning(least, ahead, prices, best_value, flat)
        )
        flat += len(group.slots) + 1
    for state in states:  # the bound, which overestimates, keeps some that are no better
        if best is None or state.value > best.value:
            best = state
    return None if best is None else _choice(groups, best)


def least_cost(groups: Sequence[Group], kind: int) -> int:
    """The least that any choice costs of a kind."""
    return _least_after(groups, kind)[0][groups[0].number] if groups else 0


@dataclass(frozen=True, slots=True)
class _Pruning:
    """The bounds that rule states out: least cost of the rest, and the most value that it adds."""

    least: Sequence[Sequence[Sequence[int]]]  # by kind, slot and number still to take
    ahead: Sequence[Sequence[int]]  # by slot and number, in units of priced values
    prices: Prices
    best_value: int | None
    flat: int

    def keeps(self, state: _State, slot: int, number: int, bounds: Costs) -> bool:
        """Whether a state may become better than the best one known; `slot` is its next one."""
        at = self.flat + slot
        for kind, (cost, bound) in enumerate(zip(state.costs, bounds, strict=True)):
            if cost + self.least[kind][at][number] > bound:
                return False
        if self.best_value is None:
            return True
        most = (state.value << _SHIFT) + self.ahead[at][number]
        for price, cost, bound in zip(self.prices, state.costs, bounds, strict=True):
            most += price * (bound - cost)
        return most > self.best_value << _SHIFT


def _through_group(
    group: Group, index: int, states: list[_State], bounds: Costs, pruning: _Pruning
) -> list[_State]:
    """The states after a group, from those before it."""
    by_number: dict[int, list[_State]] = {0: states}  # by how many slots were taken
    slots = len(group.slots)
    for slot, options in enumerate(group.slots):
        after: dict[int, list[_State]] = {}
        rest = slots - slot - 1
        for number, here in by_number.items():
            if group.number - number <= rest:  # may pass this one by
                after.setdefault(number, []).extend(
                    state
                    for state in here
                    if pruning.keeps(state, slot + 1, group.number - number, bounds)
                )
            if number < group.number:
                taken = after.setdefault(number + 1, [])
                for option_index, option in _undominated(options):
                    for state in here:
                        costs = tuple(map(int.__add__, state.costs, option.costs))
                        trail = _Trail(index, slot, option_index, state.trail)
                        new = _State(state.value + option.value, costs, trail)
                        if pruning.keeps(new, slot + 1, group.number - number - 1, bounds):
                            taken.append(new)
        by_number = {number: _front(reached) for number, reached in after.items()}
    return by_number.get(group.number, [])


def _undominated(options: Sequence[Option]) -> list[tuple[int, Option]]:
    """The options that no other beats or equals in everything, with their indices."""
    undominated: list[tuple[int, Option]] = []
    order = sorted(enumerate(options), key=lambda pair: (-pair[1].value, pair[1].costs, pair[0]))
    for index, option in order:
        if not any(_within(other.costs, option.costs) for _, other in undominated):
            undominated.append((index, option))
    return undominated


def _within(costs: Costs, others: Costs) -> bool:
    return all(map(int.__le__, costs, others))


def _front(states: list[_State]) -> list[_State]:
    """The states without those that another one beats: all of these where there is one cost."""
    best: dict[Costs, _State] = {}
    for state in states:
        equal = best.get(state.costs)
        if equal is None or state.value > equal.value:
            best[state.costs] = state
    front: list[_State] = []
    for state in sorted(best.values(), key=lambda state: (state.costs, -state.value)):
        if len(state.costs) == 1:  # the last one kept is the most valuable of all cheaper ones
            if not front or state.value > front[-1].value:
                front.append(state)
        elif not any(
            other.value >= state.value and _within(other.costs, state.costs)
            for other in front[-_COMPARED:]
        ):
            front.append(state)
    return front


def _least_after(groups: Sequence[Group], kind: int) -> list[list[int]]:
    """By slot and number still to take in its group: the least cost of a kind from there on."""

    def least(slots: Sequence[Sequence[Option]], number: int) -> int:
        return sum(
            nsmallest(number, (min(option.costs[kind] for option in slot) for slot in slots))
        )

    return _after(groups, least)


def _most_after(groups: Sequence[Group], prices: Prices) -> list[list[int]]:
    """By slot and number still to take in its group: the most priced value from there on."""

    def most(slots: Sequence[Sequence[Option]], number: int) -> int:
        return sum(
            nlargest(number, (max(_priced(option, prices) for option in slot) for slot in slots))
        )

    return _after(groups, most)


def _after(
    groups: Sequence[Group], of: Callable[[Sequence[Sequence[Option]], int], int]
) -> list[list[int]]:
    """For each slot of each group, its end included, by the number of slots still to take."""
    rows: list[list[int]] = []
    rest = 0
    for group in reversed(groups):
        numbers = range(group.number + 1)
        starts = range(len(group.slots) + 1)
        own = [[of(group.slots[start:], number) + rest for number in numbers] for start in starts]
        rest = own[0][group.number]
        rows = own + rows
    return rows


def _priced(option: Option, prices: Prices) -> int:
    """The value of an option less its costs at their prices."""
    worth = option.value << _SHIFT
    for price, cost in zip(prices, option.costs, strict=True):
        worth -= price * cost
    return worth


class _Relaxed:
    """The problem with prices in place of bounds: each slot, then each group, is on its own."""

    def __init__(self, groups: Sequence[Group], bounds: Costs) -> None:
        self.groups, self.bounds = groups, bounds
        self.best: _State | None = None  # the best that was within all bounds by the way

    def good_prices(self) -> Prices:
        """Prices at which a greatest value is little above the best one within the bounds.

        Each in turn is set, by bisection, to the least at which its bound holds.
        """
        prices = [0] * len(self.bounds)
        values = [option.value for group in self.groups for slot in group.slots for option in slot]
        highest = (max(values) - min(values) + 1) << (_SHIFT + 8)
        for _ in range(1 if len(prices) == 1 else 3):
            for kind, bound in enumerate(self.bounds):
                prices[kind] = 0
                if self._solve(prices).costs[kind] <= bound:
                    continue
                low, high = 0, highest
                while high - low > 1 + (high >> 20):
                    prices[kind] = (low + high) // 2
                    if self._solve(prices).costs[kind] <= bound:
                        high = prices[kind]
                    else:
                        low = prices[kind]
                prices[kind] = high
        return prices

    def _solve(self, prices: Prices) -> _State:
        """The best choice at these prices, whatever its costs."""
        value, costs, trail = 0, [0] * len(self.bounds), None
        for index, group in enumerate(self.groups):
            best = [
                max((_priced(option, prices), -number) for number, option in enumerate(slot))
                for slot in group.slots
            ]
            slots = range(len(best))
            for slot in nlargest(group.number, slots, key=lambda slot: (best[slot][0], -slot)):
                option_index = -best[slot][1]
                option = group.slots[slot][option_index]
                value += option.value
                costs = [total + cost for total, cost in zip(costs, option.costs, strict=True)]
                trail = _Trail(index, slot, option_index, trail)
        state = _State(value, tuple(costs), trail)
        if _within(state.costs, self.bounds) and (self.best is None or value > self.best.value):
            self.best = state
        return state


def _choice(groups: Sequence[Group], state: _State) -> Choice:
    choice: Choice = [[None] * len(group.slots) for group in groups]
    trail = state.trail
    while trail is not None:
        choice[trail.group][trail.slot] = trail.option
        trail = trail.before
    return choice
