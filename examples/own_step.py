"""A step of one's own: the architecture weights learn in every second step only.

So they follow weights that had twice as many images to settle, and a step costs less. What counts
the steps is the search's own position, which a checkpoint holds.
"""

from pathlib import Path

import prnas
from prnas.runs.attempt import attempt
from prnas.searching.steps import Part, SearchStep, register

TINY = Path(__file__).with_name("tiny.yaml")


class EverySecondStep(SearchStep):
    """An architecture step before every second weight step."""

    name = "every-second"
    architecture_cost = 0.5 * SearchStep.architecture_cost  # for the estimate of the time left

    def take(self) -> None:
        even = self.search.state.position.cycle_step % 2 == 0
        if even and not self.search.grace:
            self.train("architecture")
        self.train("weights")

    def train(self, part: Part) -> None:
        """If memory runs out, `attempt` computes the gradients again, with fewer images."""
        self.update(part, attempt(self.search, [part], lambda: self.gradients(part)))


register(EverySecondStep)

if __name__ == "__main__":
    result = prnas.search(TINY, overrides=["architecture.step=every-second"])
    print(result.genotype)
