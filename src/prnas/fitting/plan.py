"""The plan of a fit's time: pure arithmetic on a budget and measured step times.

Nothing here reads a file or a clock. All times are in seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log

from prnas.config.choosing import BATCHES, FEW, FIRST_CYCLES, STEPS, ImageFacts, image_sizes
from prnas.io.errors import UserError

AIM = 0.95  # Share of the budget that is planned; the rest is for what cannot be foreseen.
SEARCH_SHARE = 0.4  # Largest share of the time for the search; each training has the same.
ENDING = 10.0  # Seconds for exports, page and latency; 4 to 7 where it was measured.
CYCLES = 2  # Cycles of the recipe `pictures`.
EVIDENCE = 0.2  # What is measured at the end of a cycle may take so much of the cycle's time.
OVERHEAD = 1.5  # A report and its records grow: at the end they take longer than at first.
ARCHITECTURE_SHARE = 0.5  # Share of a search's images that train architecture weights.
FEWEST, GOOD, ENOUGH = 10, 30, 100  # Epochs of a search.
FEWEST_TRAINING, GOOD_TRAINING, ENOUGH_TRAINING = 5, 30, 200  # Epochs of a training.
SEARCH_IMAGES = 500  # With so many a search is good enough to rather train on larger images.
# What a step takes grows with its work to this power, at the least: a rung that is not measured yet
# is rather measured in vain than passed over.
LEAST_POWER = 0.5
LEAST_TRAINING = 16  # With fewer pictures, none of the search's judges have enough to judge by.
LEAST_IMAGES = 200  # With fewer (of more) there is no search.
# Cells and channels of networks of published cells; beside each, those of the network of cells that
# are found, most of which compute less, and of the supernet.
FINALS = ((5, 8), (5, 16), (8, 16), (8, 24))
FOUND_WITHIN = {
    (3, 4): (3, 4),
    (3, 8): (3, 4),
    (5, 8): (3, 8),
    (5, 16): (3, 16),
    (8, 16): (6, 16),
    (8, 24): (6, 24),
}
# Without limits, there are 16 channels at least: fewer save little time on a CPU. With 16, found
# cells take less time for an epoch than published ones with 8 (docs/results.md).
FOUND = FOUND_WITHIN | {(5, 8): (3, 16)}
SUPERNETS = ((3, 8), (3, 8), (3, 16), (6, 16))
VALIDATION = ((2_000, 0.15), (20_000, 0.1))  # Share that validates, up to so many images;
VALIDATION_OF_MANY = 0.05  # and of more.
CALLED = {
    "found": "the found network",
    "zoo": "the published cell",
    "plain": "the plain network",
    "given": "the given model",
}


@dataclass(frozen=True)
class Rung:
    """A choice of everything that makes a step slow; the higher on the ladder, the better."""

    size: int  # Side of the images.
    search: tuple[int, int]  # Cells and channels of the supernet.
    final: tuple[int, int]  # Those of the network of a published cell,
    own: tuple[int, int] | None = None  # and of the found one, if they differ.

    @property
    def found(self) -> tuple[int, int]:
        return self.own or self.final


@dataclass(frozen=True)
class StepTimes:
    """The measured times of a training."""

    step: float
    validation: float  # Seconds for each image.
    overhead: float  # Seconds of an epoch for checkpoint and report.
    start: float  # Seconds before the first step.


@dataclass(frozen=True)
class SearchTimes:
    """The measured times of a search, in its first cycle."""

    step: float
    validation: float
    overhead: float
    start: float
    growth: tuple[float, ...] = (1.0,) * CYCLES  # Expected cost of each cycle, by the first's.


@dataclass(frozen=True)
class RungTimes:
    """The measured times of a rung: those of the search, and of each network that is known."""

    search: SearchTimes
    networks: Mapping[str, StepTimes]


@dataclass(frozen=True)
class Task:
    """The facts that the plan depends on beside times."""

    facts: ImageFacts
    test_images: int
    contenders: tuple[str, ...]  # Names of the networks to train: the found one first.
    size: int | None = None  # If it is given: that of a model to start from.
    # Cells and channels of the networks to train, from the cheapest to the dearest.
    finals: tuple[tuple[int, int], ...] = FINALS
    most_size: int | None = None  # With larger images, no network keeps the limits.
    limited: bool = False  # Whether there are limits on the networks.
    num_rungs: int | None = None  # On higher rungs, nothing that could be found keeps them.

    @property
    def train(self) -> int:
        return self.facts.train

    @property
    def validation(self) -> float:
        """The share of the training images that choose, and that no training uses."""
        for most, share in VALIDATION:
            if self.train <= most:
                return share
        return VALIDATION_OF_MANY

    @property
    def validation_images(self) -> int:
        return max(round(self.train * self.validation), len(self.facts.class_sizes))

    @property
    def training_images(self) -> int:
        return max(self.train - self.validation_images, 1)

    @property
    def search_batch(self) -> int:
        """Also for a search on fewer images: a smaller batch would take more steps."""
        return batch_size(int(self.train * (1 - ARCHITECTURE_SHARE)))


@dataclass(frozen=True)
class SearchPlan:
    images: int
    epochs: int  # About: a cycle has whole ones.
    seconds: float


@dataclass(frozen=True)
class TrainingPlan:
    epochs: int
    seconds: float


@dataclass(frozen=True)
class Plan:
    """The sizes and times of a fit's stages, and the reasons for them."""

    rung: Rung
    search: SearchPlan
    trainings: dict[str, TrainingPlan]
    spent: float  # Before the search: looking at the images and measuring.
    ending: float  # After the trainings: tests, exports, page.
    reasons: tuple[tuple[str, str], ...] = field(default=())

    @property
    def seconds(self) -> float:
        trainings = sum(each.seconds for each in self.trainings.values())
        return self.spent + self.search.seconds + trainings + self.ending


def batch_size(images: int) -> int:
    """The batch for an epoch of so many images: some steps, as far as sensible batches allow."""
    least, most = BATCHES
    return min(max(8 * round(images / STEPS / 8), least), most, max(images, 1))


def cycle_lengths(epochs: int) -> list[int]:
    """Epochs of each cycle, of about `epochs` in all."""
    shares = [FIRST_CYCLES if number < 2 else 1.0 for number in range(CYCLES)]
    return [max(2, int(epochs * share / sum(shares))) for share in shares]


def ladder(task: Task) -> list[Rung]:
    """The rungs from the cheapest to the dearest: larger images first, then better networks."""
    sizes, found = usable_sizes(task), FOUND_WITHIN if task.limited else FOUND
    (supernet, *supernets), (final, *finals) = SUPERNETS, task.finals
    rungs = [Rung(size, supernet, final, found[final]) for size in sizes]
    if task.train >= FEW:
        better = zip(supernets, finals, strict=False)
        rungs += [Rung(sizes[-1], search, network, found[network]) for search, network in better]
    return rungs[: task.num_rungs]


def usable_sizes(task: Task) -> list[int]:
    """Sides of images in pixels, the least first."""
    if task.size is not None:
        return [task.size]
    most = task.most_size
    return [size for size in sorted(image_sizes(task.facts)) if most is None or size <= most]


# ---------------------------------------------------------------- what it takes


def search_seconds(times: SearchTimes, task: Task, images: int, epochs: int) -> float:
    weights = images * (1 - ARCHITECTURE_SHARE)
    steps, validated = weights / task.search_batch, images - weights
    total = 0.0
    for length, growth in zip(cycle_lengths(epochs), times.growth, strict=True):
        computed = growth * length * (steps * times.step + validated * times.validation)
        total += computed * (1 + EVIDENCE) + length * OVERHEAD * times.overhead
    return times.start + total


def epoch_seconds(times: StepTimes, task: Task) -> float:
    images = task.training_images
    steps = images / batch_size(images)
    validated = task.validation_images * times.validation
    return steps * times.step + validated + OVERHEAD * times.overhead


def ending_seconds(times: Mapping[str, StepTimes], task: Task) -> float:
    """Every network is tested at its end, and once more at the end of all."""
    slowest = max((each.validation for each in times.values()), default=0.0)
    return ENDING + 2 * len(task.contenders) * task.test_images * slowest


def plan_search(times: SearchTimes, task: Task, seconds: float) -> SearchPlan | None:
    """A search of as many epochs as fit, of fewer images if those would be too few; or `None`."""

    def longest(images: int, least: int, most: int) -> SearchPlan | None:
        plan = None
        for epochs in range(least, most + 1):
            took = search_seconds(times, task, images, epochs)
            if took > seconds:
                break
            plan = SearchPlan(images, epochs, took)
        return plan

    def most_images(epochs: int, least: int) -> SearchPlan | None:
        few, many = least, task.train
        if search_seconds(times, task, few, epochs) > seconds:
            return None
        while many - few > 1:
            middle = (few + many) // 2
            fits = search_seconds(times, task, middle, epochs) <= seconds
            few, many = (middle, many) if fits else (few, middle)
        return SearchPlan(few, epochs, search_seconds(times, task, few, epochs))

    enough = min(task.train, SEARCH_IMAGES)
    return (
        longest(task.train, GOOD, ENOUGH)
        or most_images(GOOD, enough)
        or longest(enough, FEWEST, GOOD)
        or most_images(FEWEST, min(task.train, LEAST_IMAGES))
    )


def plan_trainings(
    times: Mapping[str, StepTimes], task: Task, seconds: float
) -> dict[str, TrainingPlan]:
    """The same time for each: as many epochs as fit, of each network its own number.

    A network without times is taken for one that is as slow as the slowest.
    """
    slowest = max(times.values(), key=lambda each: epoch_seconds(each, task))
    share = seconds / len(task.contenders)
    plans: dict[str, TrainingPlan] = {}
    for name in task.contenders:
        own = times.get(name, slowest)
        epoch = epoch_seconds(own, task)
        epochs = int(max(share - own.start, 0.0) / epoch)
        epochs = min(max(epochs, FEWEST_TRAINING), ENOUGH_TRAINING)
        plans[name] = TrainingPlan(epochs, own.start + epochs * epoch)
    return plans


def on_rung(
    rung: Rung, times: RungTimes, task: Task, budget: float, spent: float
) -> tuple[Plan | None, bool]:
    """The plan on a rung, if any fits the budget; and whether there is time for a good one."""
    ending = ending_seconds(times.networks, task)
    left = AIM * budget - spent - ending
    search = plan_search(times.search, task, SEARCH_SHARE * left) if left > 0 else None
    if search is None:
        return None, False
    trainings = plan_trainings(times.networks, task, left - search.seconds)
    plan = Plan(rung, search, trainings, spent, ending)
    if plan.seconds > AIM * budget:
        return None, False
    enough = search.epochs >= GOOD
    return plan, enough and all(each.epochs >= GOOD_TRAINING for each in trainings.values())


def decide(
    task: Task,
    budget: float,
    spent: float,
    measured: Mapping[int, RungTimes],
    work: Sequence[float],
) -> Plan | int:
    """The plan, or the number of the rung that has to be measured first.

    The highest rung is taken that leaves time for a good number of epochs; if none does, the
    lowest. `work` is the multiply-accumulates of each rung: by it, what a rung takes is guessed
    from those around it that are `measured`, before it is measured itself.
    """
    rungs = ladder(task)
    if 0 not in measured:
        return 0
    for number in reversed(range(1, len(rungs))):
        times = _guessed(number, measured, work)
        good = on_rung(rungs[number], times, task, budget, spent)[1]
        if good and number not in measured:
            return number
        if good:
            return _explained(number, measured[number], task, budget, spent)
    return _explained(0, measured[0], task, budget, spent)


def _guessed(number: int, measured: Mapping[int, RungTimes], work: Sequence[float]) -> RungTimes:
    """The times of a rung: measured, or between those of the rungs that are."""
    below = max(rung for rung in measured if rung <= number)
    if below == number:
        return measured[number]
    power = LEAST_POWER
    if above := [rung for rung in measured if rung > number]:
        slower = measured[min(above)].search.step / measured[below].search.step
        more = work[min(above)] / work[below]
        if more > 1 and slower > 1:
            power = max(power, min(log(slower) / log(more), 1.0))
    return _scaled(measured[below], (work[number] / work[below]) ** power)


def _scaled(times: RungTimes, factor: float) -> RungTimes:
    if factor == 1:
        return times

    def slower(network: StepTimes) -> StepTimes:
        return StepTimes(
            network.step * factor,
            network.validation * factor,
            network.overhead,
            network.start + network.step,
        )

    search = times.search
    return RungTimes(
        SearchTimes(
            search.step * factor,
            search.validation * factor,
            search.overhead,
            search.start,
            search.growth,
        ),
        {name: slower(network) for name, network in times.networks.items()},
    )


def _explained(number: int, times: RungTimes, task: Task, budget: float, spent: float) -> Plan:
    rung = ladder(task)[number]
    plan, good = on_rung(rung, times, task, budget, spent)
    if plan is None:
        raise UserError(
            f"too little time for these images: {_minutes(budget)}, and even the smallest plan "
            f"takes about {_minutes(_needed(rung, times, task, spent))}"
        )
    reasons = tuple(_reasons(plan, number, good, task))
    return Plan(rung, plan.search, plan.trainings, plan.spent, plan.ending, reasons)


def _needed(rung: Rung, times: RungTimes, task: Task, spent: float) -> float:
    """A budget that is enough, rounded up to half minutes."""
    budget = 30.0
    while on_rung(rung, times, task, budget, spent)[0] is None:
        budget += 30.0 * max(1, int(budget / 600))
    return budget


# ---------------------------------------------------------------- words


def _reasons(plan: Plan, number: int, good: bool, task: Task) -> list[tuple[str, str]]:
    rung, search = plan.rung, plan.search
    rungs = ladder(task)
    sizes = sorted({each.size for each in rungs})
    if task.size is not None:
        why = "those of the model to start from"
    elif rung.size == sizes[-1]:
        own = task.facts.all_are(rung.size)
        why = "their own size" if own else "the largest that makes sense for these"
        if rung.size < max(image_sizes(task.facts)):
            why = "networks for larger ones do not keep the limits"
    else:
        why = "larger ones leave no time for enough epochs"
    lines = [("size", f"{rung.size} x {rung.size} pixels: {why}")]
    why = "a larger one leaves no time for enough epochs"
    if rung == rungs[-1]:
        why = "the largest here" if task.num_rungs is None else "the largest that keeps the limits"
    elif rung.size < sizes[-1]:
        why = "small, so that it trains fast"
    if task.train < FEW:
        why = f"small, since {task.train} images are few"
    cells, channels = rung.found
    published = "{} of {}".format(*rung.final)
    sizes = f"{cells} cells of {channels} channels for what is found"
    if "zoo" in task.contenders:
        sizes = f"{sizes}, {published} for the published cell"
    lines.append(("network", f"{sizes}: {why}"))
    cells, channels = rung.search
    images = "all training images"
    if search.images < task.train:
        images = f"{search.images:,} of {task.train:,} training images, as time allows"
    epochs = sum(cycle_lengths(search.epochs))
    lines.append(
        ("search", f"{epochs} epochs in {CYCLES} cycles, {cells} cells of {channels} channels, "
         f"on {images}")
    )  # fmt: skip
    # What is found may be smaller than the slowest network, which its time is taken from.
    lengths = {name: each.epochs for name, each in plan.trainings.items() if name != "found"}
    each = ", ".join(f"{epochs} of {CALLED.get(name, name)}" for name, epochs in lengths.items())
    capped = [epochs == ENOUGH_TRAINING for epochs in lengths.values()]
    why = "the same time for each"
    if any(capped):
        enough = f"{ENOUGH_TRAINING} are enough"
        why = f"{enough} for all" if all(capped) else f"{why}, but {enough}"
    later = "those of the found network are planned when it is found"
    lines.append(("trainings", f"about so many epochs ({why}): {each}; {later}"))
    if not good:
        lines.append(("note", "the time is short for so many images: more of it would help"))
    return lines


def _minutes(seconds: float) -> str:
    minutes = seconds / 60
    return f"{minutes:.3g} minute{'' if minutes == 1 else 's'}"
