"""What the training of a supernet takes of its searcher's budget, and when that ends it.

Images and steps are counted alike, whatever is done with them: an image counts whenever a part of a
step reads it, when it is validated, and when a cell or the controller's reward is measured on it; a
step is a batch of them. So a pass forward counts as much as a step of training.
"""

from typing import TYPE_CHECKING, Any

from prnas.searching.asking import Cost

if TYPE_CHECKING:
    from prnas.searching.search import Search

_NOTHING = Cost(0, 0)


class Spending:
    """The cost of a supernet's training so far, if its searcher's budget bounds that."""

    def __init__(self, search: "Search", saved: dict[str, Any] | None) -> None:
        """`saved`: go on from the `state` of another."""
        self.search, self.budget = search, search.config.searcher.budget
        budget = self.budget
        self.bounded = search.config.searcher.by_supernet and not (
            budget.images is budget.steps is budget.seconds is None
        )
        self.spent = _NOTHING
        self.is_over = False  # Whether the budget has ended the training.
        self._read: dict[str, int] = {}  # Images that the step under way has read, by part.
        if saved is not None:
            self.spent = Cost(int(saved["images"]), int(saved["steps"]))
            self.is_over = bool(saved["over"])

    def read(self, part: str, images: int) -> None:
        """A part of the step under way has read images; of repeated attempts, the last counts."""
        self._read[part] = images

    def end_step(self) -> None:
        """Count what the step has read."""
        self.spent += Cost(sum(self._read.values()), len(self._read))
        self._read = {}

    def add(self, images: int, batch: int) -> None:
        """Images were passed through the network, in batches of that size."""
        self.spent += _looked_at(images, batch)

    @property
    def seconds(self) -> float:
        """Seconds of the whole search so far, by this process; those of earlier sessions too."""
        return self.search.state.elapsed + self.search.state.epoch.total

    def agreed(self, seconds: float) -> float:
        """The most seconds of any process: all of them must decide alike."""
        return self.search.processes.maximum([seconds])[0]

    def ends(self) -> bool:
        """Whether the budget leaves no room for one more step; the first is always taken."""
        if not self.bounded or self.is_over or self.spent == _NOTHING:
            return self.is_over
        search = self.search
        batches = 1 if search.grace else search.step.num_batches
        step = Cost(batches * search.batch.batch * search.processes.size, batches)
        position, cycle = search.state.position, search.state.cycle
        if search.config.validation.includes(position.epoch, cycle.epochs):
            step += self.whole_half
        self.is_over = not self.leaves(step)
        return self.is_over

    def leaves(self, more: Cost) -> bool:
        """Whether more of the training is within its share, and leaves the least for scoring."""
        budget, share = self.budget, self.budget.training_share
        if not self.bounded:
            return True
        then, least = self.spent + more, self.evaluation + self.final
        if budget.images is not None and then.images > min(
            share * budget.images, budget.images - least.images
        ):
            return False
        if budget.steps is not None and then.steps > min(
            share * budget.steps, budget.steps - least.steps
        ):
            return False
        return budget.seconds is None or self.agreed(self.seconds) < share * budget.seconds

    @property
    def used(self) -> float | None:
        """The share of the budget that the training has used; none if it is not bounded."""
        if not self.bounded:
            return None
        budget = self.budget
        used = [
            0.0 if budget.images is None else self.spent.images / budget.images,
            0.0 if budget.steps is None else self.spent.steps / budget.steps,
            0.0 if budget.seconds is None else self.seconds / budget.seconds,
        ]
        return max(used)

    @property
    def whole_half(self) -> Cost:
        """The cost of one look at the whole architecture half."""
        half = len(self.search.indices["architecture"])
        return _looked_at(half, self.search.config.validation.batch)

    @property
    def evaluation(self) -> Cost:
        """The cost of an evaluation, without its calibration."""
        half = len(self.search.indices["architecture"])
        batch = min(self.search.config.validation.batch, half)
        few = min(self.search.config.searcher.supernet.batches * batch, half)
        return _looked_at(few, batch) + self.calibration

    @property
    def calibration(self) -> Cost:
        """The cost of the statistics that each score of a cell takes anew."""
        own = self.search.config.searcher.supernet
        if own.statistics == "batch":
            return _NOTHING
        half = len(self.search.indices["architecture"])
        batch = min(self.search.config.validation.batch, half)
        images = min(own.calibration * batch, len(self.search.indices["weights"]))
        return _looked_at(images, batch)

    @property
    def final(self) -> Cost:
        """The cost of scoring a finalist."""
        return self.whole_half + self.calibration

    def beside(self, evaluations: int) -> Cost:
        """The cost of the whole search with so many evaluations, without their own passes.

        As many of them as may be finalists are scored again.
        """
        if not self.bounded:
            return _NOTHING
        finalists = min(evaluations, self.search.config.searcher.supernet.finalists)
        return self.spent + self.calibration * evaluations + self.final * finalists

    def state(self) -> dict[str, Any]:
        """Plain data for a checkpoint; nothing where nothing is bounded."""
        if not self.bounded:
            return {}
        spent = {"images": self.spent.images, "steps": self.spent.steps, "over": self.is_over}
        return {"spending": spent}


def _looked_at(images: int, batch: int) -> Cost:
    return Cost(images, -(-images // batch))
