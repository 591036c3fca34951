"""The learning rate of architecture weights for `auto`: by how far they are to come.

With Adam, a step moves a weight by about its rate at most, whatever the gradient. So the rates of a
cycle's steps, added up, are how far a weight can travel before it is judged. That carries over
from large data to small, where a cycle has fewer steps; a rate does not.
"""

from math import ceil


def architecture_rate(travel_left: float, images_left: int, batch: int) -> float:
    """The rate of the next architecture step: the same for all that are left in the cycle.

    Their number follows from the images that the cycle has yet to train the weights on, at `batch`
    images a step over all processes. If the batch size changes later, so do the steps, and the
    rate: at the cycle's end all of the travel is spent.
    """
    return max(travel_left, 0.0) / max(ceil(images_left / batch), 1)
