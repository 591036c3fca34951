"""The learning rate of architecture weights for `auto`: by how far they are to come.

With Adam, a step moves a weight by about its rate at most, whatever the gradient. So the rates of a
cycle's steps, added up, are how far a weight can travel before it is judged. That carries over
from large data to small, where a cycle has fewer steps; a rate does not.
"""

from math import ceil

from prnas.config.architecture import UNTRAINED
from prnas.config.search import SearchConfig

LITTLE = 0.3  # The paper's cycles have a travel of 0.8 to 1.2.


def architecture_rate(travel_left: float, images_left: int, batch: int) -> float:
    """The rate of the next architecture step: the same for all that are left in the cycle.

    Their number follows from the images that the cycle has yet to train the weights on, at `batch`
    images a step over all processes. If the batch size changes later, so do the steps, and the
    rate: at the cycle's end all of the travel is spent.
    """
    return max(travel_left, 0.0) / max(ceil(images_left / batch), 1)


def little_travel(config: SearchConfig, images: int, batch: int) -> str | None:
    """A sentence if architecture weights decide, and cannot get anywhere before they do.

    `images` train the network's weights in an epoch, at least `batch` a step.
    """
    settings = config.architecture
    if settings.lr == "auto" or settings.step in UNTRAINED:
        return None
    if settings.scoring not in ("weights", "blend"):
        return None
    epochs = max(cycle.epochs - cycle.grace_epochs for cycle in config.schedule.cycles)
    steps = epochs * ceil(images / batch)
    if (travel := settings.lr * steps) >= LITTLE:
        return None
    return (
        f"architecture weights can move by {travel:.2g} in a cycle at most ({steps:,} steps at a "
        f"rate of {settings.lr:g}), where the paper's can by 0.8 or more: architecture.lr=auto "
        "takes a rate that suits so few steps"
    )
