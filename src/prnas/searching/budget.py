"""The budget of measurements at a cycle's end: a share of the cycle's work.

Work is counted, not timed, so that the same config gives the same result on any machine. Its unit
is a pass forward of the whole supernet, for one image.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from prnas.config.search import SearchConfig
from prnas.searching.steps import step_costs

TRAINING = 3.0  # forward, and backward with gradients of weights
SALIENCY = 2.0  # without those
PASSES = 32  # passes with candidates left out for one pass with all of them
LEAST_IMAGES = 32  # fewer images show nothing by removal
LEAST_EDGES = 4
LEAST_BATCHES = 4  # batches for saliency, whose error is over batches
# How much of it goes to saliency: half where it decides, else a little.
DECIDING, BESIDE = 0.5, 0.1


@dataclass(frozen=True, slots=True)
class Budget:
    """The amount of measurements, and its share of the cycle's work."""

    removal_images: int
    edges: int  # number of edges whose candidates are removed
    saliency_batches: int  # none: saliency is not measured
    saliency_batch: int
    share: float
    limited_by: Literal["share", "images", "half"] | None  # what bounds the images of removal

    @property
    def saliency_images(self) -> int:
        return self.saliency_batches * self.saliency_batch


def cycle_work(config: SearchConfig, number: int, weights: int, architecture: int) -> float:
    """The work of a cycle, with so many images in each half."""
    cycle = config.schedule.cycles[number]
    architecture_cost, weights_cost = step_costs(config.architecture)
    work = weights_cost * cycle.epochs
    work += architecture_cost * (cycle.epochs - cycle.grace_epochs)  # on as many images
    validated = [config.validation.includes(epoch, cycle.epochs) for epoch in range(cycle.epochs)]
    return TRAINING * weights * work + architecture * sum(validated)


def budget(
    config: SearchConfig,
    work: float,
    passes: Sequence[float],
    overhead: float,
    architecture: int,
    all_edges: bool,
) -> Budget:
    """The amount of measurements on images of the `architecture` half.

    `work` is that of the cycle, `passes` how many whole passes removal takes for each edge, and
    `overhead` what each costs on top of its images. What decides is measured in any case, and so
    are `all_edges`, if they must; then it may be more than the share that the config allows.
    """
    scoring, batch = config.architecture.scoring, config.validation.batch
    allowed = config.evidence.share * work
    most = min(config.evidence.images, architecture)
    share = DECIDING if scoring == "saliency" else BESIDE
    size = max(min(config.batch.min, most // LEAST_BATCHES), 1)
    batches = int(share * allowed / (SALIENCY * (size + overhead)))
    if batches < LEAST_BATCHES:
        batches = LEAST_BATCHES if scoring == "saliency" else 0
    batches = min(batches, most // size)
    if config.evidence.measure == "none" and scoring != "saliency":
        batches = 0
    repeated = 1 + 1 / PASSES
    least, edges = min(LEAST_IMAGES, most), len(passes)
    allowed -= SALIENCY * batches * (size + overhead)
    images = affordable(allowed / (1 + repeated * sum(passes)), overhead, batch)
    if images < least and not all_edges and sum(passes):
        each = repeated * fmean(passes)
        edges = int((allowed / (least + overhead) - 1) / each)
        edges = min(max(edges, LEAST_EDGES), len(passes))
    images = min(max(images, least), most)
    used = SALIENCY * batches * (size + overhead)
    of_edges = sum(passes) * edges / max(len(passes), 1)
    used += (1 + repeated * of_edges) * (images + overhead * -(-images // batch))
    limited_by = "share"
    if images == most:
        limited_by = "half" if most == architecture else "images"
    return Budget(images, edges, batches, size, used / work, limited_by)


def affordable(allowed: float, overhead: float, batch: int) -> int:
    """The most images that cost no more than `allowed`, with an overhead for each batch."""
    full = int(allowed / (batch + overhead))  # batches
    rest = int(allowed - full * (batch + overhead) - overhead)
    return full * batch + min(max(rest, 0), batch)
