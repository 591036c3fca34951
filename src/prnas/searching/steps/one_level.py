"""A step of one level: both parts learn from the same images."""

from prnas.runs.attempt import attempt
from prnas.searching.steps.base import SearchStep


class OneLevelStep(SearchStep):
    """Both parts follow the gradients of one loss, by one pass on the weights' images.

    So SNAS does. The architecture half of the images is then for validation and measurements alone.
    """

    name = "one-level"
    architecture_cost = 0.0  # nothing on top of the weights' own pass
    num_batches = 1

    def take(self) -> None:
        if self.search.grace:
            outcome = attempt(self.search, ["weights"], lambda: self.gradients("weights"))
        else:
            both = lambda: self.gradients("weights", "architecture")  # noqa: E731
            outcome = attempt(self.search, ["weights"], both)
            self.update("architecture", outcome)
        self.update("weights", outcome)
