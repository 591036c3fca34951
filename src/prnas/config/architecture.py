"""The architecture weights of a search: how they are trained, and how they mix candidates."""

from collections.abc import Callable, Collection
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from prnas.config.choices import Scoring
from prnas.config.final import CostConfig
from prnas.config.numbers import Decay, Portion, Rate, RateOrAuto, Share
from prnas.config.sections import Section
from prnas.io.errors import suggestion
from prnas.space.scores import Scores, exponential, identity, softmax

# The relaxations by name, each with the scores by which it judges candidates; and the steps.
# A new one has a line here and a class of that name in nets/relaxations or searching/steps.
RELAXATIONS: dict[str, Scores] = {
    "softmax": softmax,
    "concrete": softmax,
    "max-w": softmax,
    "multinomial": identity,
    "proximal": identity,
    "threshold": exponential,
}
STEPS: list[str] = [
    "first-order",
    "none",
    "sampled",
    "second-order",
    "one-level",
    "multinomial",
]
UNTRAINED = ("none", "sampled", "multinomial")  # steps without gradients of architecture weights
# Settings that only some relaxations of prnas, or only some steps of it, know what to do with.
_OF_RELAXATIONS: dict[str, tuple[str, ...]] = {
    "temperature": ("concrete", "threshold"),
    "threshold": ("threshold",),
}
_OF_STEPS: dict[str, tuple[str, ...]] = {
    "resource_penalty": ("first-order", "second-order", "one-level"),
    "transfer": ("multinomial",),
}


def _choice_of(choices: Collection[str], kind: str) -> AfterValidator:
    def check(name: str) -> str:
        if name not in choices:
            raise ValueError(f"no {kind} is called '{name:.60}'.{suggestion(name, choices)}")
        return name

    return AfterValidator(check)


class Anneal(Section):
    """A value that goes from `start` to `end` in the epochs of a cycle after its grace epochs."""

    start: Decay
    end: Decay
    shape: Literal["linear", "exponential"] = "linear"

    @model_validator(mode="after")
    def _has_logarithms(self) -> Self:
        if self.shape == "exponential" and not (self.start and self.end):
            raise ValueError("an exponential course has a start and an end above 0")
        return self

    def at(self, fraction: float) -> float:
        """The value at a fraction of the way; exactly `start` at 0 and `end` at 1."""
        if fraction <= 0 or self.start == self.end:
            return self.start
        if fraction >= 1:
            return self.end
        if self.shape == "linear":
            return self.start + (self.end - self.start) * fraction
        return self.start * (self.end / self.start) ** fraction


def _above_zero(anneal: Anneal) -> Anneal:
    if not (anneal.start and anneal.end):
        raise ValueError("a temperature is above 0")
    return anneal


class ArchitectureConfig(Section):
    """Adam for the architecture weights, and the relaxation that mixes candidates by them."""

    relaxation: Annotated[str, _choice_of(RELAXATIONS, "relaxation")] = "softmax"
    step: Annotated[str, _choice_of(STEPS, "step")] = "first-order"
    lr: RateOrAuto = 6e-4  # "auto": so that the rates of a cycle's steps add up to `travel`.
    travel: Rate = 1.0  # Without effect if `lr` is a number.
    betas: Annotated[tuple[Portion, Portion], Field(strict=False)] = (0.5, 0.999)
    weight_decay: Decay = 1e-3
    gradient_norm: Rate = 5.0
    # What judges candidates at a cycle's end: their architecture weights, or their measured worth.
    scoring: Scoring = "weights"
    renormalise: bool = False  # Whether others on the edge make up for a removed candidate.
    # Of relaxations that divide architecture weights by it; None: 1.
    temperature: Annotated[Anneal, AfterValidator(_above_zero)] | None = None
    cost: CostConfig | None = None  # The expected cost of the final network, as a penalty.
    # Relaxation threshold: the share of the even probability below which candidates are left out.
    threshold: Portion = 0.4
    # Step multinomial: what a better candidate takes of a worse one's probability after an epoch.
    transfer: Share = 0.01
    resource_penalty: Decay = 0.0  # Of what the mixed candidates cost, as in SNAS.

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if reasons := [reason for rule in RULES if (reason := rule(self)) is not None]:
            raise ValueError("; ".join(reasons))
        return self


def _has_something_to_judge_by(settings: ArchitectureConfig) -> str | None:
    if settings.step not in ("none", "sampled") or settings.scoring not in ("weights", "blend"):
        return None
    return (
        f"step '{settings.step}' trains no architecture weights, so that scoring "
        f"'{settings.scoring}' would be by chance: set scoring to paths, removal or saliency"
    )


def _cost_has_weights(settings: ArchitectureConfig) -> str | None:
    if settings.cost is None or settings.step not in UNTRAINED:
        return None
    return f"cost has no effect with step '{settings.step}', which trains no architecture weights"


def _settings_are_used(settings: ArchitectureConfig) -> str | None:
    """Programs may register relaxations and steps of their own, which may use any setting."""
    chosen = (
        ("relaxation", settings.relaxation, _OF_RELAXATIONS, _BUILT_IN[0]),
        ("step", settings.step, _OF_STEPS, _BUILT_IN[1]),
    )
    for kind, name, owners, built_in in chosen:
        for setting, users in owners.items():
            default = ArchitectureConfig.model_fields[setting].default
            if name in built_in and name not in users and getattr(settings, setting) != default:
                owner = f"{kind} {' or '.join(users)}" if users else f"a {kind} of one's own"
                return f"{setting} has no effect with {kind} '{name}': it belongs to {owner}"
    return None


def _probabilities_are_moved(settings: ArchitectureConfig) -> str | None:
    """Relaxation and step `multinomial` need each other."""
    if (settings.relaxation == "multinomial") == (settings.step == "multinomial"):
        return None
    if settings.step == "multinomial":
        return (
            "step 'multinomial' moves probabilities, which only relaxation 'multinomial' has, got "
            f"'{settings.relaxation}'"
        )
    return (
        "relaxation 'multinomial' holds probabilities, which gradients would spoil: it needs step "
        f"'multinomial', got '{settings.step}'"
    )


def _mixes_something(settings: ArchitectureConfig) -> str | None:
    """Steps that train no architecture weights go with few relaxations."""
    relaxation = settings.relaxation
    if settings.step == "sampled" and relaxation in _BUILT_IN[0] - {"softmax", "multinomial"}:
        return (
            f"step 'sampled' trains single candidates, so that relaxation '{relaxation}' has "
            "nothing to mix: use softmax"
        )
    if settings.step == "none" and relaxation in ("proximal", "threshold"):
        return (
            f"step 'none' trains no architecture weights, without which relaxation '{relaxation}' "
            "would choose by chance: use softmax"
        )
    return None


_BUILT_IN = (frozenset(RELAXATIONS), frozenset(STEPS))
# Why a combination makes no sense, if it makes none: each rule gives a reason or `None`.
RULES: list[Callable[[ArchitectureConfig], str | None]] = [
    _has_something_to_judge_by,
    _cost_has_weights,
    _settings_are_used,
    _probabilities_are_moved,
    _mixes_something,
]
