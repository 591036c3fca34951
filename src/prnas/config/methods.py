"""The methods that prnas knows: what to set for each, what a step costs, where it comes from."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from prnas.io.errors import FormatError, suggestion


@dataclass(frozen=True, slots=True)
class Method:
    """A way to search, or an option of any way.

    `cost` is what a step takes, architecture and weights, relative to first-order DARTS with the
    same candidates and images: measured (results/method-steps.csv), or 1 for those whose steps are
    not of this kind. `settings` has the sections (or parts of them, by their dotted paths) and keys
    that switch it on in any search, as plain data.
    """

    name: str
    line: str  # what it does, in a line
    source: str
    cost: float = 1.0
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    recipe: str | None = None  # The recipe with its published settings.

    @property
    def authors(self) -> str:
        """The first of them, and the year."""
        years = re.findall(r"\b(?:19|20)[0-9]{2}\b", self.source)
        return f"{re.split('[,:]', self.source)[0]} {years[-1]}"

    def overrides(self) -> list[str]:
        """The settings, as `--set` takes them."""
        return [
            f"{section}.{key}={_flow(value)}"
            for section, keys in self.settings.items()
            for key, value in keys.items()
        ]


def _flow(value: Any) -> str:
    """A value as YAML in one line."""
    if isinstance(value, Mapping):
        pairs = cast(Mapping[str, Any], value).items()
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in pairs) + "}"
    return str(value).lower() if isinstance(value, bool) else str(value)


# How methods train and judge candidates that they mix; some searches have a step that samples them.
_MIXED = {"step": "first-order", "scoring": "weights"}

METHODS: tuple[Method, ...] = (
    Method(
        "pr-darts",
        "cycles of pruning, and of children that morphisms make of parents",
        "Laube, Zell: Prune and Replace NAS. ICMLA 2019",
        recipe="darts-like",
    ),
    Method(
        "darts",
        "candidates mixed by a softmax, architecture and weights in turn",
        "Liu, Simonyan, Yang: DARTS: Differentiable Architecture Search. ICLR 2019",
        settings={"architecture": {"relaxation": "softmax", **_MIXED}},
        recipe="darts",
    ),
    Method(
        "darts-2nd",
        "the architecture looks one weight step ahead",
        "Liu, Simonyan, Yang: DARTS: Differentiable Architecture Search. ICLR 2019",
        cost=2.69,
        settings={"architecture": {**_MIXED, "step": "second-order"}},
        recipe="darts-2nd",
    ),
    Method(
        "p-darts",
        "the network grows while pools shrink; dropout on skips",
        "Chen, Xie, Wu, Tian: Progressive Differentiable Architecture Search. ICCV 2019",
        settings={
            "schedule.cycles.1": {
                "skip_dropout": 0.4,
                "skip_dropout_decay": 0.2,
                "protect_conv": False,
            }
        },
        recipe="p-darts",
    ),
    Method(
        "snas",
        "samples that become one-hot as they cool; one level",
        "Xie, Zheng, Liu, Lin: SNAS: Stochastic Neural Architecture Search. ICLR 2019",
        cost=0.61,
        settings={
            "architecture": {
                "relaxation": "concrete",
                **_MIXED,
                "step": "one-level",
                "temperature": {"start": 1.0, "end": 0.03},
                "resource_penalty": 1e-5,
            }
        },
        recipe="snas",
    ),
    Method(
        "nasp",
        "the discrete network in every pass, a continuous architecture",
        "Yao, Xu, Tu, Zhu: Efficient Neural Architecture Search via Proximal Iterations. AAAI 2020",
        cost=0.55,
        settings={"architecture": {"relaxation": "proximal", **_MIXED}},
        recipe="nasp",
    ),
    Method(
        "mdenas",
        "sampled paths, whose accuracies move probabilities",
        "Zheng, Ji, Tang, Zhang, Liu, Tian: Multinomial Distribution Learning for Effective Neural "
        "Architecture Search. ICCV 2019",
        cost=0.21,
        settings={"architecture": {"relaxation": "multinomial", **_MIXED, "step": "multinomial"}},
        recipe="mdenas",
    ),
    Method(
        "asap",
        "a cooling softmax; what falls below a threshold goes",
        "Noy, Nayman, Ridnik, Zamir, Doveh, Friedman, Giryes, Zelnik-Manor: ASAP: Architecture "
        "Search, Anneal and Prune. AISTATS 2020",
        cost=1.04,
        settings={
            "architecture": {
                "relaxation": "threshold",
                **_MIXED,
                "temperature": {"start": 0.957979, "end": 0.129592, "shape": "exponential"},
            }
        },
        recipe="asap",
    ),
    Method(
        "sharpdarts",
        "Max-W: the best candidate weighs 1; a bent cosine",
        "Hundt, Jain, Hager: sharpDARTS: Faster and More Accurate Differentiable Architecture "
        "Search. 2019",
        cost=1.04,
        settings={
            "architecture": {"relaxation": "max-w", **_MIXED},
            "weights": {"cosine_power": 2.0},
        },
        recipe="sharpdarts",
    ),
    Method(
        "beta-darts",
        "a growing decay of the candidates that lead on their edges",
        "Ye, Li, Li, Chen, Fan, Ouyang: β-DARTS. CVPR 2022",
        cost=1.06,
        settings={"architecture": {**_MIXED, "beta_decay": {"start": 0.0, "end": 24.5}}},
        recipe="beta-darts",
    ),
    Method(
        "fairdarts",
        "sigmoids that do not compete, driven to 0 or 1",
        "Chu, Zhou, Zhang, Li: Fair DARTS. ECCV 2020",
        cost=1.08,
        settings={"architecture": {"relaxation": "sigmoid", **_MIXED, "zero_one": 10.0}},
        recipe="fairdarts",
    ),
    Method(
        "darts-minus",
        "a skip beside every edge, whose weight falls",
        "Chu, Wang, Zhang, Lu, Wei, Yan: DARTS-. ICLR 2021",
        cost=1.06,
        settings={"architecture": {**_MIXED, "auxiliary_skip": {"start": 1.0, "end": 0.02}}},
        recipe="darts-minus",
    ),
    Method(
        "drnas",
        "mixing weights drawn from a distribution that is learned",
        "Chen, Wang, Cheng, Tang, Hsieh: DrNAS. ICLR 2021",
        cost=1.02,
        settings={"architecture": {"relaxation": "dirichlet", **_MIXED}},
        recipe="drnas",
    ),
    Method(
        "sdarts-rs",
        "mixtures that train weights are moved at random",
        "Chen, Hsieh: Stabilizing DARTS via Perturbation-based Regularization. ICML 2020",
        cost=0.99,
        settings={"architecture": {**_MIXED, "random_smoothing": {"start": 0.03, "end": 0.2946}}},
        recipe="sdarts-rs",
    ),
    Method(
        "gdas",
        "one sampled candidate an edge, straight-through",
        "Dong, Yang: Searching for a Robust Neural Architecture in Four GPU Hours. CVPR 2019",
        cost=0.24,
        settings={
            "architecture": {
                "relaxation": "gdas",
                **_MIXED,
                "temperature": {"start": 10.0, "end": 0.1},
            }
        },
        recipe="gdas",
    ),
    Method(
        "rome",
        "GDAS with sampled edges and several samples a step",
        "Wang, Chu, Fan, Zhang, Zhang, Yang, Yan: ROME: Robustifying Memory-Efficient NAS via "
        "Topology Disentanglement and Gradient Accumulation. ICCV 2023",
        cost=1.10,
        settings={
            "architecture": {
                "relaxation": "rome",
                **_MIXED,
                "temperature": {"start": 10.0, "end": 0.1},
                "samples": 7,
            }
        },
    ),
    Method(
        "pc-darts",
        "candidates on a part of the channels; edge weights",
        "Xu, Xie, Zhang, Chen, Qi, Tian, Xiong: PC-DARTS. ICLR 2020",
        cost=0.70,
        settings={
            "network": {"partial_channels": 4},
            "architecture": {**_MIXED, "edge_weights": True},
        },
        recipe="pc-darts",
    ),
    Method(
        "oles",
        "candidates that overfit stop training, one by one",
        "Jiang, Ji, Zhu, Yuan, Huang: Operation-Level Early Stopping for Robustifying "
        "Differentiable NAS. NeurIPS 2023",
        cost=1.28,
        settings={"architecture": {**_MIXED, "step": "oles"}},
        recipe="oles",
    ),
    Method(
        "darts-pt",
        "edges become discrete in turn, by what is lost without",
        "Wang, Cheng, Chen, Tang, Hsieh: Rethinking Architecture Selection in Differentiable NAS. "
        "ICLR 2021",
        cost=0.59,
        settings={"architecture": {"step": "none", "scoring": "removal", "sequential": 70}},
        recipe="darts-pt",
    ),
    Method(
        "random-search",
        "cells drawn at random, of which the best is kept",
        "Li, Talwalkar: Random Search and Reproducibility for Neural Architecture Search. UAI 2019",
        settings={"searcher": {"method": "random"}},
        recipe="random",
    ),
    Method(
        "random-shared",
        "random cells train shared weights, by which others are scored",
        "Li, Talwalkar: Random Search and Reproducibility for Neural Architecture Search. UAI 2019",
        cost=0.13,
        settings={
            "architecture": {"step": "sampled-cells", "scoring": "paths"},
            "searcher": {"method": "random"},
        },
        recipe="random-shared",
    ),
    Method(
        "evolution",
        "ageing evolution: the best of a sample is mutated, the oldest dies",
        "Real, Aggarwal, Huang, Le: Regularized Evolution for Image Classifier Architecture "
        "Search. AAAI 2019",
        settings={"searcher": {"method": "evolution"}},
        recipe="evolution",
    ),
    Method(
        "local-search",
        "from a cell to its best neighbour, as long as that is better",
        "White, Nolen, Savani: Exploring the Loss Landscape in Neural Architecture Search. 2020",
        settings={"searcher": {"method": "local-search"}},
        recipe="local-search",
    ),
    Method(
        "halving",
        "many cells are trained a little, the better ones more",
        "Jamieson, Talwalkar: Non-stochastic Best Arm Identification and Hyperparameter "
        "Optimization. AISTATS 2016",
        settings={"searcher": {"method": "halving", "scorer": "training"}},
        recipe="halving-small",
    ),
    Method(
        "enas",
        "an LSTM writes the cells that train shared weights, and learns",
        "Pham, Guan, Zoph, Le, Dean: Efficient Neural Architecture Search via Parameter Sharing. "
        "ICML 2018",
        cost=0.11,
        settings={
            "architecture": {"step": "enas", "scoring": "paths"},
            "searcher": {"method": "controller"},
        },
        recipe="enas",
    ),
    Method(
        "expected-cost",
        "the final network's expected cost is a part of the loss",
        "Cai, Zhu, Han: ProxylessNAS: Direct Neural Architecture Search on Target Task and "
        "Hardware. ICLR 2019",
        cost=1.02,
        settings={
            "architecture": {**_MIXED, "cost": {"of": "params", "weight": 0.2, "reference": "3M"}}
        },
    ),
)


def method(name: str) -> Method:
    """The method of that name; the error for an unknown one lists them."""
    methods = {method.name: method for method in METHODS}
    if name not in methods:
        raise FormatError([f"no method is called '{name:.60}'." + suggestion(name, methods)])
    return methods[name]
