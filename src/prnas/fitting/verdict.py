"""The conclusions from a fit's tests: the choice, paired comparisons, calibration. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb

from prnas.models.metrics import interval

LEVEL = 0.05
BINS = 10  # Bins of confidence, for calibration.


@dataclass(frozen=True)
class Trained:
    """A network after its training and its test."""

    name: str
    label: str
    parameters: int
    macs: int
    epochs: int
    kept_epoch: int | None
    seconds: float
    validation: float  # Accuracy, by which the best is chosen.
    validation_loss: float
    validation_images: int
    correct: int
    images: int
    latency: float  # Milliseconds for one image, measured here.
    within_limits: bool = True

    @property
    def accuracy(self) -> float:
        return self.correct / self.images

    @property
    def interval(self) -> tuple[float, float]:
        return interval(self.correct, self.images)


@dataclass(frozen=True)
class Compared:
    """The found network beside another one, on the same test images."""

    other: str
    only_found: int  # Images that only the found network has right,
    only_other: int  # and only the other one.
    p: float  # Exact, two-sided,
    corrected: float  # and corrected for the number of comparisons.

    @property
    def better(self) -> bool:
        return self.corrected < LEVEL and self.only_found > self.only_other

    @property
    def worse(self) -> bool:
        return self.corrected < LEVEL and self.only_found < self.only_other


def best_of(tested: Sequence[Trained]) -> Trained:
    """The best by validation, of those that keep the limits; of equals, by the loss."""
    allowed = [network for network in tested if network.within_limits] or list(tested)
    return max(allowed, key=lambda network: (network.validation, -network.validation_loss))


def mcnemar(only_first: int, only_second: int) -> float:
    """The exact p-value of so many images that only one of two networks has right.

    By chance each of them is as likely the one's as the other's (McNemar, 1947).
    """
    number, least = only_first + only_second, min(only_first, only_second)
    tail = sum(comb(number, count) for count in range(least + 1))
    return min(1.0, 2 * tail / 2**number)


def compare(searched: Sequence[bool], others: Mapping[str, Sequence[bool]]) -> list[Compared]:
    """`searched` and `others`: which test images each network has right. Corrected after Holm."""
    counts: dict[str, tuple[int, int]] = {}
    for name, theirs in others.items():
        pairs = list(zip(searched, theirs, strict=True))
        counts[name] = (
            sum(ours and not other for ours, other in pairs),
            sum(other and not ours for ours, other in pairs),
        )
    by_p = sorted(counts, key=lambda name: mcnemar(*counts[name]))
    corrected: dict[str, float] = {}
    largest = 0.0
    for rank, name in enumerate(by_p):
        largest = max(largest, min(1.0, (len(by_p) - rank) * mcnemar(*counts[name])))
        corrected[name] = largest
    return [Compared(name, *pair, mcnemar(*pair), corrected[name]) for name, pair in counts.items()]


@dataclass(frozen=True)
class Bin:
    """Test images of similar confidence: from `low` to `high`."""

    low: float
    high: float
    images: int
    confidence: float  # Means over its images.
    accuracy: float


def calibration(confidences: Sequence[float], right: Sequence[bool]) -> tuple[list[Bin], float]:
    """Bins of equal width that hold images, and the expected calibration error (ECE).

    That is the mean distance of confidence and accuracy, over all images (Guo et al., 2017).
    """
    held: list[list[int]] = [[] for _ in range(BINS)]
    for index, confidence in enumerate(confidences):
        held[min(int(confidence * BINS), BINS - 1)].append(index)
    bins: list[Bin] = []
    for number, indices in enumerate(held):
        if indices:
            mean = sum(confidences[index] for index in indices) / len(indices)
            accuracy = sum(right[index] for index in indices) / len(indices)
            bins.append(Bin(number / BINS, (number + 1) / BINS, len(indices), mean, accuracy))
    total = max(len(confidences), 1)
    error = sum(bin_.images * abs(bin_.confidence - bin_.accuracy) for bin_ in bins) / total
    return bins, error


# ---------------------------------------------------------------- words


def in_percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def with_interval(network: Trained) -> str:
    low, high = network.interval
    return f"{in_percent(network.accuracy)} (95 % interval {in_percent(low)} to {in_percent(high)})"


def sentences(tested: Sequence[Trained], best: Trained, compared: Sequence[Compared]) -> list[str]:
    """The summary of a fit for people, a sentence a line."""
    chosen = "by the validation images" if len(tested) > 1 else "the only one that was trained"
    lines = [
        f"The best network, {chosen}, is the one {_called(best)}: it is right on "
        f"{with_interval(best)} of the {best.images:,} held-out images."
    ]
    lines += _about_search({network.name: network for network in tested}, compared)
    slow = [network for network in tested if not network.within_limits]
    lines += [f"The network {_called(network)} does not keep the limits." for network in slow]
    return lines


def _called(network: Trained) -> str:
    return (
        network.label if network.label.startswith(("found", "from")) else f"called {network.label}"
    )


def _about_search(tested: Mapping[str, Trained], compared: Sequence[Compared]) -> list[str]:
    if not compared:
        return []
    worse = [each for each in compared if each.worse]
    equal = [each for each in compared if not each.better and not each.worse]
    if not worse and not equal:
        others = " and ".join(_short(tested[each.other]) for each in compared)
        return [
            f"The search paid off on this data: what it found is better than {others}, beyond "
            f"chance ({_numbers(compared)})."
        ]
    lines: list[str] = []
    if worse:
        names = " and ".join(_short(tested[each.other]) for each in worse)
        verb = "was" if len(worse) == 1 else "were"
        lines.append(
            f"The search did not pay off on this data: {names} {verb} better than what it found "
            f"({_numbers(worse)})."
        )
    if equal:
        names = " and ".join(_short(tested[each.other]) for each in equal)
        verb = "was" if len(equal) == 1 else "were"
        begin = "The search did not pay off on this data: " if not worse else ""
        text = f"{names} {verb} as good, as far as these test images can tell ({_numbers(equal)})."
        lines.append(begin + (text if begin else text[0].upper() + text[1:]))
    better = [each for each in compared if each.better]
    if better:
        names = " and ".join(_short(tested[each.other]) for each in better)
        lines.append(f"Beyond chance, what it found is better than {names} ({_numbers(better)}).")
    return lines


def _short(network: Trained) -> str:
    return _by_name(network.name)


def _by_name(name: str) -> str:
    called = {"plain": "the plain network", "zoo": "the published cell"}
    return called.get(name, "the network that was given")


def _numbers(compared: Sequence[Compared]) -> str:
    pairs = "; ".join(
        f"the found network {each.only_found}, {_by_name(each.other)} {each.only_other}, "
        f"p = {each.corrected:.2g}"
        for each in compared
    )
    return f"test images that only one of the two got right: {pairs}"
