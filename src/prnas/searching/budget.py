"""How many images are measured at a cycle's end: as many as a share of the cycle's work allows.

Work is counted, not timed, so that the same config gives the same result on any machine. Its unit
is a pass forward of the whole supernet, for one image.
"""

from dataclasses import dataclass

from prnas.config.search import SearchConfig
from prnas.searching.step import step_type

TRAINING = 3.0  # forward, and backward with gradients of weights
SALIENCY = 2.0  # without those
LEAST_IMAGES = 32  # fewer say nothing: then it takes more than its share
# How much of it goes to saliency: half where it decides, else a little.
DECIDING, BESIDE = 0.5, 0.1


@dataclass(frozen=True, slots=True)
class Budget:
    """Images to measure with, and the share of the cycle's work that this is."""

    removal_images: int
    saliency_images: int
    share: float


def cycle_work(config: SearchConfig, number: int, weights: int, architecture: int) -> float:
    """The work of a cycle, with so many images in each half."""
    cycle = config.schedule.cycles[number]
    step = step_type(config.architecture)
    work = step.weights_cost * cycle.epochs
    work += step.architecture_cost * (cycle.epochs - cycle.grace_epochs)  # on as many images
    validated = [config.validation.includes(epoch, cycle.epochs) for epoch in range(cycle.epochs)]
    return TRAINING * weights * work + architecture * sum(validated)


def budget(
    config: SearchConfig, work: float, passes: float, overhead: float, architecture: int
) -> Budget:
    """How many images to use, of the `architecture` half.

    `work` is that of the cycle, `passes` how many whole passes removal takes, and `overhead` what
    each costs on top of its images.
    """
    settings = config.evidence
    allowed = settings.share * work
    most = min(settings.images, architecture)
    least = min(LEAST_IMAGES, most)
    part = DECIDING if config.architecture.scoring == "saliency" else BESIDE
    saliency = min(max(int(part * allowed / SALIENCY), least), most)
    batch = config.validation.batch
    removal = min(max(affordable((1 - part) * allowed / passes, overhead, batch), least), most)
    used = saliency * SALIENCY + passes * (removal + overhead * -(-removal // batch))
    return Budget(removal, saliency, used / work)


def affordable(allowed: float, overhead: float, batch: int) -> int:
    """The most images that cost no more than `allowed`, with an overhead for each batch."""
    full = int(allowed / (batch + overhead))  # batches
    rest = int(allowed - full * (batch + overhead) - overhead)
    return full * batch + min(max(rest, 0), batch)
