"""The architecture weights of a search: how they are trained, and how they mix candidates."""

from collections.abc import Callable, Collection
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from prnas.config.choices import Scoring
from prnas.config.final import CostConfig
from prnas.config.numbers import Decay, Portion, Rate, RateOrAuto, Share, Size
from prnas.config.sections import Section
from prnas.io.errors import suggestion
from prnas.space.schedule import MOST_EPOCHS
from prnas.space.scores import Scores, exponential, identity, sigmoid, softmax

# The relaxations by name, each with the scores by which it judges candidates; and the steps.
# A new one has a line here and a class of that name in nets/relaxations or searching/steps.
RELAXATIONS: dict[str, Scores] = {
    "softmax": softmax,
    "concrete": softmax,
    "max-w": softmax,
    "multinomial": identity,
    "proximal": identity,
    "threshold": exponential,
    "sigmoid": sigmoid,
    "dirichlet": softmax,
    "gdas": softmax,
    "rome": exponential,
}
STEPS: list[str] = [
    "first-order",
    "none",
    "sampled",
    "sampled-cells",
    "second-order",
    "one-level",
    "multinomial",
    "oles",
    "enas",
]
SAMPLING = ("sampled", "sampled-cells", "enas")  # steps that train one network of the supernet's
GRACELESS = ("none", "sampled", "sampled-cells")  # steps that do the same in grace epochs
UNTRAINED = ("none", *SAMPLING, "multinomial")  # steps without gradients of architecture weights
# Settings that only some relaxations of prnas, or only some steps of it, know what to do with.
_OF_RELAXATIONS: dict[str, tuple[str, ...]] = {
    "temperature": ("concrete", "threshold", "gdas", "rome"),
    "samples": ("concrete", "dirichlet", "gdas", "rome"),
    "threshold": ("threshold",),
    "zero_one": ("sigmoid",),
    "dirichlet_kl": ("dirichlet",),
}
_OF_STEPS: dict[str, tuple[str, ...]] = {
    "resource_penalty": ("first-order", "second-order", "one-level", "oles"),
    "samples": ("first-order", "one-level", "oles", "none"),
    "oles_threshold": ("oles",),
    "oles_checks": ("oles",),
    "transfer": ("multinomial",),
}


def _choice_of(choices: Collection[str], kind: str) -> AfterValidator:
    def check(name: str) -> str:
        if name not in choices:
            raise ValueError(f"no {kind} is called '{name:.60}'.{suggestion(name, choices)}")
        return name

    return AfterValidator(check)


def mover_of(step: str | None, lr: object) -> str:
    """The key that says how far candidates' weights come in a cycle with such a step and rate."""
    if step == "multinomial":
        return "architecture.transfer"
    return "architecture.travel" if lr == "auto" else "architecture.lr"


class Anneal(Section):
    """A value that goes from `start` to `end` in the epochs of a cycle after its grace epochs."""

    #: Value in the first epoch after the grace epochs.
    start: Decay
    #: Value in the cycle's last epoch.
    end: Decay
    #: Course between them.
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


def _at_most_one(anneal: Anneal) -> Anneal:
    if max(anneal.start, anneal.end) > 1:
        raise ValueError("start and end are at most 1")
    return anneal


class ArchitectureConfig(Section):
    """Adam for the architecture weights, and the relaxation that mixes candidates by them."""

    #: How architecture weights mix the candidates of an edge.
    relaxation: Annotated[str, _choice_of(RELAXATIONS, "relaxation")] = "softmax"
    #: How architecture weights and network weights are trained in a step.
    step: Annotated[str, _choice_of(STEPS, "step")] = "first-order"
    #: Learning rate; auto: so that the rates of a cycle's steps add up to `travel`.
    lr: RateOrAuto = 6e-4
    #: How far architecture weights may come in a cycle; without effect if `lr` is a number.
    travel: Rate = 1.0
    #: Decays of Adam's moving averages.
    betas: Annotated[tuple[Portion, Portion], Field(strict=False)] = (0.5, 0.999)
    #: Weight decay of Adam.
    weight_decay: Decay = 1e-3
    #: Largest norm of the gradients; longer ones are scaled down to it.
    gradient_norm: Rate = 5.0
    #: What judges candidates at a cycle's end: their architecture weights, or their measured worth.
    scoring: Scoring = "weights"
    #: Whether others on the edge make up for a candidate that is left out to measure its worth.
    renormalise: bool = False
    #: Of relaxations that divide architecture weights by it; null: 1.
    temperature: Annotated[Anneal, AfterValidator(_above_zero)] | None = None
    #: The expected cost of the final network, as a penalty; null: none.
    cost: CostConfig | None = None
    #: Relaxation threshold: share of the even probability below which candidates are left out.
    threshold: Portion = 0.4
    #: Step multinomial: what a better candidate takes of a worse one's probability after an epoch.
    transfer: Share = 0.01
    #: Weight of what the mixed candidates cost in the loss, as in SNAS; 0: none.
    resource_penalty: Decay = 0.0
    #: Samples whose gradients a part of a step averages.
    samples: Annotated[int, Field(ge=1, le=1_000)] = 1
    #: How strongly leading candidates are pulled down; null: not at all.
    beta_decay: Anneal | None = None
    #: Relaxation sigmoid: how strongly the sigmoids are driven to 0 or 1; 0: not at all.
    zero_one: Decay = 0.0
    #: Relaxation dirichlet: how strongly the distribution is kept from being decided.
    dirichlet_kl: Decay = 0.0
    #: Weight of a skip beside every edge, as in DARTS-; null: none.
    auxiliary_skip: Annotated[Anneal, AfterValidator(_at_most_one)] | None = None
    #: How far mixing weights are moved at random in weight steps, as in SmoothDARTS; null: none.
    random_smoothing: Annotated[Anneal, AfterValidator(_at_most_one)] | None = None
    #: Step oles: mean cosine of gradients below which a candidate is stopped.
    oles_threshold: Annotated[float, Field(ge=-1, le=1)] = 0.4
    #: Step oles: number of steps that this mean is taken of.
    oles_checks: Size = 20
    #: The last epochs over which edges become discrete, one after the other; 0: all at the end.
    sequential: Annotated[int, Field(ge=0, le=MOST_EPOCHS)] = 0
    #: Whether the edges into a node have architecture weights, too.
    edge_weights: bool = False

    @property
    def mover(self) -> str:
        """The key that says how far candidates' weights come in a cycle."""
        return mover_of(self.step, self.lr)

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if reasons := [reason for rule in RULES if (reason := rule(self)) is not None]:
            raise ValueError("; ".join(reasons))
        return self


def _has_something_to_judge_by(settings: ArchitectureConfig) -> str | None:
    if settings.step not in ("none", *SAMPLING) or settings.scoring not in ("weights", "blend"):
        return None
    return (
        f"step '{settings.step}' trains no architecture weights, so that scoring "
        f"'{settings.scoring}' would be by chance: set scoring to paths, removal or saliency"
    )


def _cost_has_weights(settings: ArchitectureConfig) -> str | None:
    if settings.cost is None or settings.step not in UNTRAINED:
        return None
    return (
        f"cost has no effect with step '{settings.step}', which trains no architecture weights: "
        "use a step that does, such as first-order"
    )


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
    others = {"softmax", "multinomial"} if settings.step == "sampled" else {"softmax"}
    if settings.step in SAMPLING and relaxation in _BUILT_IN[0] - others:
        return (
            f"step '{settings.step}' trains single candidates, so that relaxation '{relaxation}' "
            "has nothing to mix: use softmax, or a step that mixes candidates, such as first-order"
        )
    if settings.step == "none" and relaxation in ("proximal", "threshold"):
        return (
            f"step 'none' trains no architecture weights, without which relaxation '{relaxation}' "
            "would choose by chance: use softmax"
        )
    return None


def _terms_are_trained(settings: ArchitectureConfig) -> str | None:
    terms = {
        "beta_decay": settings.beta_decay,
        "zero_one": settings.zero_one,
        "dirichlet_kl": settings.dirichlet_kl,
        "edge_weights": settings.edge_weights,
    }
    names = [name for name, value in terms.items() if value]
    if settings.step not in UNTRAINED or not names:
        return None
    has = "have" if len(names) > 1 else "has"
    return (
        f"step '{settings.step}' trains no architecture weights by gradients, so that "
        f"{' and '.join(names)} {has} no effect: use a step that does, such as first-order"
    )


def _decays_probabilities(settings: ArchitectureConfig) -> str | None:
    others = ("sigmoid", "dirichlet", "proximal", "multinomial")
    if settings.beta_decay is None or settings.relaxation not in others:
        return None
    return (
        f"beta_decay pulls down the leading probabilities of a softmax, and relaxation "
        f"'{settings.relaxation}' has none: use softmax"
    )


def _smooths_mixtures(settings: ArchitectureConfig) -> str | None:
    if settings.random_smoothing is None:
        return None
    if settings.relaxation in _BUILT_IN[0] - {"softmax"}:
        return (
            f"random_smoothing moves the weights of a fixed mixture, and relaxation "
            f"'{settings.relaxation}' makes another kind: use softmax"
        )
    if settings.step in ("one-level", "second-order", *SAMPLING):
        return (
            "random_smoothing moves the mixtures of a weight step of its own, which step "
            f"'{settings.step}' does not have: use first-order or none"
        )
    return None


def _edges_are_weighed(settings: ArchitectureConfig) -> str | None:
    if settings.edge_weights and settings.relaxation in ("proximal", "rome"):
        return (
            f"edge_weights go without relaxation '{settings.relaxation}', which chooses edges by "
            "itself"
        )
    return None


def _selects_by_removal(settings: ArchitectureConfig) -> str | None:
    if not settings.sequential:
        return None
    if settings.scoring != "removal":
        return (
            f"sequential decides edges by what is lost without a candidate: it needs scoring "
            f"'removal', got '{settings.scoring}'"
        )
    if settings.step in (*SAMPLING, "multinomial"):
        return f"sequential goes without step '{settings.step}', which mixes nothing on an edge"
    return None


def _measures_what_it_trains(settings: ArchitectureConfig) -> str | None:
    measured = settings.scoring in ("removal", "saliency", "blend")
    if settings.relaxation not in ("gdas", "rome", "proximal") or not measured:
        return None
    return (
        f"relaxation '{settings.relaxation}' computes one candidate an edge, so that scoring "
        f"'{settings.scoring}' would find all others worth nothing: set scoring to weights or paths"
    )


_BUILT_IN = (frozenset(RELAXATIONS), frozenset(STEPS))
# Why a combination makes no sense, if it makes none: each rule gives a reason or `None`.
RULES: list[Callable[[ArchitectureConfig], str | None]] = [
    _has_something_to_judge_by,
    _cost_has_weights,
    _settings_are_used,
    _probabilities_are_moved,
    _mixes_something,
    _terms_are_trained,
    _decays_probabilities,
    _smooths_mixtures,
    _edges_are_weighed,
    _measures_what_it_trains,
    _selects_by_removal,
]
