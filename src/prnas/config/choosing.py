"""The choice of a run's open values for someone's own images: by facts about them, with reasons.

Nothing here reads a file or a clock: the same facts give the same choice everywhere.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from prnas.config.architecture import GRACELESS
from prnas.config.retrain import DEFAULT_GENOTYPE, RetrainConfig
from prnas.config.search import SearchConfig
from prnas.config.undecided import Draft
from prnas.space import zoo
from prnas.space.nasbench201.cells import genotype_of, index_of_string
from prnas.space.network_size import network_size, supernet_macs
from prnas.space.pools import Pools
from prnas.space.resnet import RESNET, resnet_size

SIZES = (64, 48, 32, 24, 16)  # Sides of images in pixels.
FEW = 200  # Training images: fewer are not worth large images or a large network,
SIZE_OF_FEW = 32  # but images of this size.
SMALL = 64  # Grey images up to this size are taken for letters or drawings, not for photos.
UNEVEN = 5  # A class that is so many times as large as another is worth a word.
STEPS = 32  # Steps of an epoch, as far as batches from 8 to 64 allow.
BATCHES = (8, 64)
# The cell of NAS-Bench-201 that computes most.
LARGEST_CELL = "|{0}~0|+|{0}~0|{0}~1|+|{0}~0|{0}~1|{0}~2|".format("nor_conv_3x3")
# Plain networks: resnet8 with 16 and with 32 channels, resnet14, resnet20.
PLAIN_SIZES = ((3, 16), (3, 32), (6, 32), (9, 32))
GRACE = 0.3  # Share of a cycle's epochs, about as in the paper.
FIRST_CYCLES = 1.5  # The paper's first two cycles are so many times as long as the others.


@dataclass(frozen=True)
class ImageFacts:
    """Facts about a set of images that are known before it is read."""

    class_sizes: tuple[int, ...]  # Number of training images of each class.
    sides: tuple[int, int, int]  # The short sides of images, in pixels: least, median, greatest.
    channels: int
    class_names: tuple[str, ...] = ()  # Empty: not known.
    square: bool = True  # False: all images have the same size, which is no square.

    def all_are(self, size: int) -> bool:
        """Whether all images are squares of this size."""
        return self.square and set(self.sides) == {size}

    @property
    def train(self) -> int:
        return sum(self.class_sizes)

    @property
    def like_letters(self) -> bool:
        """Whether they may be digits or letters, which mean something else when flipped."""
        names = self.class_names
        named_so = bool(names) and all(len(name) == 1 and name.isalnum() for name in names)
        return named_so or (self.channels == 1 and self.sides[1] <= SMALL)

    def __str__(self) -> str:
        few, many = min(self.class_sizes), max(self.class_sizes)
        each = f"{few:,}" if few == many else f"{few:,} to {many:,}"
        low, middle, high = self.sides
        size = f"{low} pixels" if low == high else f"{low} to {high} pixels, median {middle}"
        kind = {1: "grey", 3: "colour"}.get(self.channels, f"{self.channels} channels")
        return (
            f"{self.train:,} training images of {len(self.class_sizes)} classes ({each} each), "
            f"{kind}, short side {size}"
        )


@dataclass(frozen=True)
class Choice:
    """Values for the open keys of a config, and a reason for each thing that was chosen."""

    values: dict[str, Any]
    reasons: tuple[tuple[str, str], ...]  # What, and which and why.


@dataclass(frozen=True)
class _Plan:
    """All that costs time."""

    size: int
    cells: int
    channels: int
    epochs: int
    images: int  # Number in the training part.


@dataclass(frozen=True)
class _Task:
    """Sensible ranges for a search or a training, and its costs."""

    networks: tuple[tuple[int, int], ...]  # Cells and channels: the least, then better ones.
    # The fewest epochs; as many as a larger image must leave time for; and enough.
    epochs: tuple[int, int, int]
    weights_share: float  # Share of the training images that train the network's weights.
    # Seconds for a multiply-accumulate of the network on one image, and for a step of any batch.
    mac_seconds: float
    step_seconds: float
    budget: float  # Seconds that the whole may take.
    macs: Callable[[int, int, int], int]  # A function of image size, cells and channels.

    def weight_images(self, plan: _Plan) -> int:
        return max(round(plan.images * self.weights_share), 1)

    def batch(self, plan: _Plan) -> int:
        images = self.weight_images(plan)
        least, most = BATCHES
        return min(max(8 * round(images / STEPS / 8), least), most, images)

    def seconds(self, plan: _Plan) -> float:
        images = self.weight_images(plan)
        steps = images / self.batch(plan)
        macs = self.macs(plan.size, plan.cells, plan.channels)
        return plan.epochs * (images * macs * self.mac_seconds + steps * self.step_seconds)

    def fits(self, plan: _Plan) -> bool:
        return self.seconds(plan) <= self.budget


def choose(draft: Draft[Any], facts: ImageFacts) -> Choice:
    """The open values of a draft. Values that it has already stay, and count for the others."""
    config = draft.config
    task = _search(config, facts) if isinstance(config, SearchConfig) else _training(config, facts)
    plan = _plan(draft, facts, task)
    batch, letters = task.batch(plan), facts.like_letters
    fixed = config.batch
    values: dict[str, Any] = {
        "data.image_size": None if _is_own_size(config, facts, plan.size) else plan.size,
        "data.images": plan.images if plan.images < facts.train else None,
        "data.flip": not letters,
        "data.crop_padding": plan.size // 8,
        "data.cutout": 0 if letters or isinstance(config, SearchConfig) else plan.size // 4,
        "network.cells": plan.cells,
        "network.channels": plan.channels,
        "batch.min": batch if "batch.max" in draft.open else min(batch, fixed.max),
        "batch.max": batch if "batch.min" in draft.open else max(batch, fixed.min),
        "training.epochs": plan.epochs,
        **_cycle_values(draft, plan.epochs),
    }
    values = {key: values[key] for key in draft.open}
    return Choice(values, tuple(_reasons(draft, facts, task, plan, values)))


def _plan(draft: Draft[Any], facts: ImageFacts, task: _Task) -> _Plan:
    """Large images first, then many epochs, then a better network, as far as the time allows."""
    few, good, enough = task.epochs
    if not any(key.endswith(".epochs") for key in draft.open):
        few = good = enough = _num_epochs(draft.config)
    networks = _networks(draft, task)
    size_is_open = "data.image_size" in draft.open
    sizes = image_sizes(facts) if size_is_open else [_given_size(draft.config, facts)]
    images = min(draft.config.data.images or facts.train, facts.train)
    plans = [_Plan(size, *networks[0], good, images) for size in sizes]
    plan = next(filter(task.fits, plans), plans[-1])
    longer = [replace(plan, epochs=epochs) for epochs in range(enough, few, -10)]
    plan = next(filter(task.fits, longer), replace(plan, epochs=few))
    if "data.images" in draft.open and not task.fits(plan):
        least, most = 1, images  # The greatest number that fits, by bisection.
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (
                (middle, most) if task.fits(replace(plan, images=middle)) else (least, middle)
            )
        return replace(plan, images=max(least // 100 * 100, min(images, 100)))
    if plan.epochs == enough and images >= FEW:
        better = [replace(plan, cells=cells, channels=channels) for cells, channels in networks]
        plan = next(filter(task.fits, reversed(better)), plan)
    return plan


def image_sizes(facts: ImageFacts) -> list[int]:
    """Possible sizes, largest first; images are not enlarged."""
    low, middle, high = facts.sides
    sizes = {size for size in SIZES if size <= middle}
    if low == high and low <= SIZES[0]:
        sizes.add(low)  # Their own size, at which nothing is lost.
    if facts.train < FEW:
        sizes = {size for size in sizes if size <= SIZE_OF_FEW}
    return sorted(sizes, reverse=True) or [max(min(middle, SIZES[-1]), 1)]


def _given_size(config: Any, facts: ImageFacts) -> int:
    return config.data.image_size or (
        32 if config.data.name.startswith("folder:") else facts.sides[1]
    )


def _is_own_size(config: Any, facts: ImageFacts, size: int) -> bool:
    """Whether images stay as they are, square or not; those of a folder always become squares."""
    return facts.sides[0] == facts.sides[2] == size and not config.data.name.startswith("folder:")


def _networks(draft: Draft[Any], task: _Task) -> list[tuple[int, int]]:
    config = draft.config
    given = config.network
    genotype = None if isinstance(config, SearchConfig) else config.genotype
    shape = given.shape if isinstance(config, SearchConfig) else genotype and genotype.shape
    # Residual networks have three equal stages; a plain one has blocks for cells.
    unit = 3 if shape is None or shape.network == "residual" else 1
    cells_open, channels_open = ("network.cells" in draft.open, "network.channels" in draft.open)
    networks = [
        (
            cells // unit * unit if cells_open else given.cells,
            channels if channels_open else given.channels,
        )
        for cells, channels in task.networks
    ]
    return sorted(set(networks))


def _num_epochs(config: Any) -> int:
    if isinstance(config, SearchConfig):
        return config.schedule.num_epochs
    return config.training.epochs


def _cycle_values(draft: Draft[Any], epochs: int) -> dict[str, int]:
    """Epochs and grace epochs of each cycle, of some `epochs` in all."""
    config = draft.config
    if not isinstance(config, SearchConfig):
        return {}
    cycles, graceless = config.schedule.cycles, config.architecture.step in GRACELESS
    shares = [FIRST_CYCLES if number < 2 else 1.0 for number in range(len(cycles))]
    values: dict[str, int] = {}
    for number, (cycle, share) in enumerate(zip(cycles, shares, strict=True)):
        path = f"schedule.cycles.{number}"
        length = cycle.epochs
        if f"{path}.epochs" in draft.open:
            length = max(2, cycle.grace_epochs + 1, round(epochs * share / sum(shares)))
        values[f"{path}.epochs"] = length
        grace = 0 if graceless else min(max(1, round(GRACE * length)), length - 1)
        values[f"{path}.grace_epochs"] = grace
    return values


# ---------------------------------------------------------------- what it costs


def _search(config: SearchConfig, facts: ImageFacts) -> _Task:
    @cache
    def macs(size: int, cells: int, channels: int) -> int:
        """Multiply-accumulates of the first supernet; `mac_seconds` allows for larger ones."""
        return supernet_macs(
            Pools.initial(config.network.nodes, config.space.initial_pool, config.network.shape),
            channels,
            cells,
            len(facts.class_sizes),
            output=config.network.output,
            input_channels=facts.channels,
            pixels=(size, size),
        )

    plain = config.network.shape.network == "residual"  # Plain convolutions need no allowance.
    return _Task(
        networks=((5, 8), (5, 16), (8, 16)),
        epochs=(20, 40, 100),
        weights_share=1 - config.data.architecture_share,
        mac_seconds=4e-10 if plain else 1.1e-8,
        step_seconds=0.05 if plain else 0.12,
        budget=640.0,  # What is measured at every cycle's end takes up to a fifth more.
        macs=macs,
    )


def _training(config: RetrainConfig, facts: ImageFacts) -> _Task:
    plain = config.network.kind == RESNET
    genotype = config.genotype
    residual = genotype is not None and genotype.shape.network == "residual"
    typical = genotype_of(index_of_string(LARGEST_CELL)) if residual else zoo.get(DEFAULT_GENOTYPE)

    @cache
    def macs(size: int, cells: int, channels: int) -> int:
        """Multiply-accumulates of fixed cells, so that all cells are trained alike."""
        if plain:
            sizes = {"input_channels": facts.channels, "image_size": size}
            return resnet_size(channels, cells, len(facts.class_sizes), **sizes).macs
        return network_size(
            typical,
            channels,
            cells,
            len(facts.class_sizes),
            stem=config.network.stem,
            output=config.network.output,
            input_channels=facts.channels,
            image_size=size,
        ).macs

    return _Task(
        networks=PLAIN_SIZES if plain else ((5, 8), (5, 16), (8, 16), (8, 24)),
        epochs=(10, 60, 100),
        weights_share=1.0 - config.data.validation,
        mac_seconds=3.5e-10 if residual and not plain else 1.0e-9,
        step_seconds=0.03,
        budget=840.0,
        macs=macs,
    )


# ---------------------------------------------------------------- words


def _reasons(
    draft: Draft[Any], facts: ImageFacts, task: _Task, plan: _Plan, values: dict[str, Any]
) -> list[tuple[str, str]]:
    """A line for each thing that was chosen, and the facts before them."""
    size, batch = plan.size, task.batch(plan)
    minutes = max(round(task.seconds(plan) / 60), 1)
    lines = [("images", str(facts))]
    if values.get("data.images"):
        lines.append(("of these", f"{plan.images:,}, as many as there is time for"))
    if "data.image_size" in values:
        lines.append(("size", f"{size} x {size} pixels: {_why_size(facts, task, plan)}"))
    if "network.cells" in values or "network.channels" in values:
        larger = (plan.cells, plan.channels) != _networks(draft, task)[0]
        why = "there is time for more than the least" if larger else "small, so that it trains fast"
        network = f"{plan.cells} {_cells(draft.config)} of {plan.channels} channels"
        lines.append(("network", f"{network}: {why}"))
    if any(key.endswith(".epochs") for key in values):
        lines.append(("epochs", _why_epochs(task, plan)))
    if "batch.min" in values or "batch.max" in values:
        steps = max(round(task.weight_images(plan) / batch), 1)
        lines.append(("batch", f"{batch} images, {_counted(steps, 'step')} an epoch"))
    if "data.flip" in values or "data.crop_padding" in values:
        lines.append(("augment", _why_variants(draft, facts, values)))
    few, many = min(facts.class_sizes), max(facts.class_sizes)
    if many >= UNEVEN * max(few, 1):
        lines.append(
            ("note", f"the largest class has {many / max(few, 1):,.0f} times the smallest one's "
             f"images, {_made_up_for(draft.config)}")
        )  # fmt: skip
    if facts.train < FEW:
        lines.append(("note", f"{facts.train} images are few: what is found may be chance"))
    return [*lines, ("work", f"some {_counted(minutes, 'minute')} of one core")]


def _cells(config: Any) -> str:
    plain = isinstance(config, RetrainConfig) and config.network.kind == RESNET
    return "blocks" if plain else "cells"


def _made_up_for(config: Any) -> str:
    if isinstance(config, SearchConfig):
        return "and nothing makes up for it"
    if config.training.class_weights == "balanced":
        return "which class weights make up for"
    return "and nothing makes up for it (training.class_weights=balanced would)"


def _why_size(facts: ImageFacts, task: _Task, plan: _Plan) -> str:
    low, middle, high = facts.sides
    if plan.size == low == high:
        return "their own size"
    larger = [size for size in image_sizes(facts) if size > plan.size]
    if larger:
        return f"larger ones leave no time for {task.epochs[1]} epochs"
    if facts.train < FEW and plan.size == SIZE_OF_FEW:
        return "enough for so few"
    if plan.size == SIZES[0]:
        return "the largest that this recipe takes"
    return f"the next below the short side of most, {middle}"


def _why_epochs(task: _Task, plan: _Plan) -> str:
    few, _, enough = task.epochs
    if plan.epochs == enough:
        return f"about {plan.epochs}: enough"
    why = "the fewest that make sense" if plan.epochs == few else "as many as there is time for"
    return f"about {plan.epochs}: {why}"


def _why_variants(draft: Draft[Any], facts: ImageFacts, values: dict[str, Any]) -> str:
    data = draft.config.data
    flip, shift = (
        values.get("data.flip", data.flip),
        values.get("data.crop_padding", data.crop_padding),
    )
    changes = ["flipped" if flip else "not flipped", f"shifted by up to {shift}"]
    if cutout := values.get("data.cutout", data.cutout):
        changes.append(f"a square of {cutout} cut out")
    why = (
        "they may be letters or digits (small and grey, or by the names of the classes)"
        if facts.like_letters
        else "as photos"
    )
    return f"{', '.join(changes)}: {why}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
