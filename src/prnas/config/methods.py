"""The methods that prnas knows: what to set for each, what a step costs, where it comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Method:
    """A way to search, or an option of any way."""

    name: str  # that of its recipe, if there is one
    line: str  # what it does, in a line
    source: str
    # What a step takes, architecture and weights, relative to first-order DARTS with the same
    # candidates and images, as estimated: the sum of the passes that it takes.
    cost: float = 1.0
    # The sections and keys that switch it on in any search, as plain data.
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, dict[str, Any]])


METHODS: tuple[Method, ...] = (
    Method(
        "darts",
        "all candidates mixed by a softmax of architecture weights, trained in turn with weights",
        "Liu, Simonyan, Yang: DARTS: Differentiable Architecture Search. ICLR 2019",
    ),
    Method(
        "beta-darts",
        "DARTS with a growing decay of the candidates that lead on their edges",
        "Ye, Li, Li, Chen, Fan, Ouyang: β-DARTS. CVPR 2022",
        settings={"architecture": {"beta_decay": {"start": 0.0, "end": 24.5}}},
    ),
    Method(
        "fairdarts",
        "sigmoids in place of the softmax: candidates do not compete, and a loss decides them",
        "Chu, Zhou, Zhang, Li: Fair DARTS. ECCV 2020",
        settings={"architecture": {"relaxation": "sigmoid", "zero_one": 10.0}},
    ),
    Method(
        "darts-minus",
        "an auxiliary skip on every edge, whose weight falls, takes the candidate skip's advantage",
        "Chu, Wang, Zhang, Lu, Wei, Yan: DARTS-. ICLR 2021",
        settings={"architecture": {"auxiliary_skip": {"start": 1.0, "end": 0.02}}},
    ),
    Method(
        "drnas",
        "mixing weights are drawn from a Dirichlet distribution, which is learned",
        "Chen, Wang, Cheng, Tang, Hsieh: DrNAS. ICLR 2021",
        settings={"architecture": {"relaxation": "dirichlet"}},
    ),
    Method(
        "sdarts-rs",
        "the network's weights are trained with mixtures that are moved at random",
        "Chen, Hsieh: Stabilizing DARTS via Perturbation-based Regularization. ICML 2020",
        settings={"architecture": {"random_smoothing": {"start": 0.03, "end": 0.2946}}},
    ),
    Method(
        "gdas",
        "one sampled candidate an edge, with a straight-through gradient",
        "Dong, Yang: Searching for a Robust Neural Architecture in Four GPU Hours. CVPR 2019",
        cost=0.25,
        settings={
            "architecture": {"relaxation": "gdas", "temperature": {"start": 10.0, "end": 0.1}}
        },
    ),
    Method(
        "pc-darts",
        "candidates compute one of K parts of the channels, and edges have weights of their own",
        "Xu, Xie, Zhang, Chen, Qi, Tian, Xiong: PC-DARTS. ICLR 2020",
        cost=0.3,
        settings={"network": {"partial_channels": 4}, "architecture": {"edge_weights": True}},
    ),
)
