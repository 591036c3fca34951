"""First-order DARTS; and a step that trains no architecture weights."""

from prnas.runs.attempt import attempt
from prnas.searching.steps.base import Part, SearchStep


class FirstOrderStep(SearchStep):
    """First-order DARTS: an architecture step on its half of the images, then a weight step."""

    name = "first-order"

    def take(self) -> None:
        if not self.search.grace:
            self.train("architecture")
        self.train("weights")

    def train(self, part: Part) -> None:
        outcome = attempt(self.search, [part], lambda: self.gradients(part))
        self.update(part, outcome)


class WeightStep(FirstOrderStep):
    """No architecture weights are trained: candidates are judged by measured worth alone."""

    name = "none"
    architecture_cost = 0.0
    num_batches = 1

    def take(self) -> None:
        self.train("weights")
