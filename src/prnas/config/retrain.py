"""The config of the training of a final network."""

from typing import Annotated, Any, Literal, Self, cast

from pydantic import Field, model_validator

from prnas.config.choices import NetworkKind
from prnas.config.numbers import Decay, Portion, Rate, Share, Size
from prnas.config.sections import BatchConfig, ImagesConfig, RunConfig, Section, ValidationConfig
from prnas.space import zoo
from prnas.space.network_plan import Stem, genotype_problems
from prnas.space.resnet import RESNET, check_resnet
from prnas.space.schedule import MIN_CELLS, MOST_CELLS, MOST_CHANNELS
from prnas.space.shape import Output
from prnas.space.zoo import OptionalGenotypeField, genotype_data

DEFAULT_GENOTYPE = "pr-darts-dl2"  # the paper's best
# What a plain network does not have.
PLAIN: dict[str, Any] = {
    "stem": "cifar",
    "output": "concat",
    "auxiliary_weight": 0.0,
    "drop_path": 0.0,
}


class FinalNetworkConfig(Section):
    """The network that repeats the cells, or a plain one to compare with."""

    #: A network of cells, or a plain residual network, which has blocks in the place of cells.
    kind: NetworkKind = "cells"
    #: Number of cells, or of blocks.
    cells: Annotated[int, Field(ge=MIN_CELLS, le=MOST_CELLS)] = 20
    #: Channels of the first cells; every reduction doubles them.
    channels: Annotated[int, Field(ge=1, le=MOST_CHANNELS)] = 36
    #: The first layers: for small images, or for large ones, which they make smaller.
    stem: Stem = "cifar"
    #: How a cell's output is made of the nodes that the genotype's `concat` names.
    output: Output = "concat"
    #: Weight of the auxiliary head's loss; 0: no head.
    auxiliary_weight: Decay = 0.4
    #: Probability of dropping a path in the last epoch; it rises linearly from 0.
    drop_path: Portion = 0.3
    #: A trained model whose weights it starts with: a training's folder, or an exported one.
    start_from: Annotated[str, Field(min_length=1, max_length=4096)] | None = None

    @model_validator(mode="after")
    def _plain(self) -> Self:
        if self.kind == "cells":
            return self
        problems = check_resnet(self.cells)
        for name, least in PLAIN.items():
            if (value := getattr(self, name)) != least:
                problems.append(f"{name} must be {least} in a ResNet, which has none, got {value}")
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @model_validator(mode="after")
    def _even(self) -> Self:
        if self.stem == "imagenet" and self.channels % 2:
            raise ValueError(
                f"the ImageNet stem halves the channels: they must be even, got {self.channels}"
            )
        return self


class TrainingConfig(Section):
    """SGD with a cosine from `lr` to `lr_min`, epoch by epoch, after a linear warm-up."""

    #: Number of epochs.
    epochs: Size = 600
    #: Learning rate at the start, or after the warm-up.
    lr: Rate = 0.025
    #: Learning rate towards which the cosine falls.
    lr_min: Decay = 0.0
    #: Epochs in which the rate rises linearly, step by step.
    warmup_epochs: Annotated[int, Field(ge=0)] = 0
    #: Momentum of SGD.
    momentum: Portion = 0.9
    #: Weight decay of SGD.
    weight_decay: Decay = 3e-4
    #: Largest norm of the gradients; longer ones are scaled down to it.
    gradient_norm: Rate = 5.0
    #: Share of each label that is spread over all classes.
    label_smoothing: Portion = 0.0
    #: Decay of a moving average of the weights, which is what is tested and saved; null: none.
    average_decay: Share | None = None
    #: With balanced, an image counts the more in the loss, the fewer there are of its class.
    class_weights: Literal["none", "balanced"] = "none"
    #: Images blended in pairs, by shares of the distribution Beta(mixup, mixup); 0: not at all.
    mixup: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.0
    #: The weights that are tested and saved: of the last epoch, or of the best by validation.
    keep: Literal["last", "best"] = "last"

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.lr_min > self.lr:
            raise ValueError(f"lr_min ({self.lr_min}) must not exceed lr ({self.lr})")
        if self.warmup_epochs >= self.epochs:
            raise ValueError(
                f"warmup_epochs ({self.warmup_epochs}) must be fewer than epochs ({self.epochs})"
            )
        return self


class RetrainDataConfig(ImagesConfig):
    """The images of a training: all of the training part, with Cutout."""

    #: Side of the square that is cut out of a training image; 0: none.
    cutout: Annotated[int, Field(ge=0, le=10_000)] = 16
    #: Brightness, contrast and saturation times 1 - this to 1 + this; 0: not at all.
    color_jitter: Annotated[float, Field(ge=0, le=1)] = 0.0
    #: Operations of RandAugment for each image; 0: none.
    rand_augment: Annotated[int, Field(ge=0, le=10)] = 0
    #: Strength of these operations.
    rand_magnitude: Annotated[int, Field(ge=0, le=30)] = 9
    #: Share of the training images, of each class, that train nothing: they are for validation.
    validation: Portion = 0.0


class RetrainConfig(RunConfig):
    """The training of a genotype's network. The defaults are the paper's, for CIFAR-10.

    A plain network has no genotype.
    """

    #: What the config is for.
    task: Literal["retrain"] = "retrain"
    #: The cells: a published cell's name, or a genotype; null: a plain network has none.
    genotype: OptionalGenotypeField = zoo.get(DEFAULT_GENOTYPE)
    network: FinalNetworkConfig = FinalNetworkConfig()
    data: RetrainDataConfig = RetrainDataConfig()
    training: TrainingConfig = TrainingConfig()
    batch: BatchConfig = BatchConfig(min=96, multiple=8, max=96)
    testing: ValidationConfig = ValidationConfig()

    @model_validator(mode="before")
    @classmethod
    def _without_cells(cls, data: Any) -> Any:
        """A plain network that is asked for has no genotype, unless one is named beside it."""
        if not isinstance(data, dict) or "genotype" in data:
            return cast(Any, data)
        network = cast(dict[str, Any], data).get("network")
        kind = cast(dict[str, Any], network).get("kind") if isinstance(network, dict) else None
        return {**cast(dict[str, Any], data), **({"genotype": None} if kind == RESNET else {})}

    @model_validator(mode="after")
    def _shape_fits(self) -> Self:
        network = self.network
        if network.kind == RESNET and self.genotype is not None:
            raise ValueError("network.kind resnet has no cells: genotype must be null")
        if self.genotype is None:
            if network.kind != RESNET:
                raise ValueError("genotype: null is for network.kind resnet; name a genotype")
            return self
        problems = genotype_problems(self.genotype, network.cells, network.output, network.stem)
        if problems:
            raise ValueError("; ".join(f"network.{problem}" for problem in problems))
        return self

    @model_validator(mode="after")
    def _can_choose(self) -> Self:
        if self.training.keep == "best" and not self.data.validation:
            raise ValueError(
                "training.keep best needs images to choose by: set data.validation to a share of "
                "the training images, such as 0.1"
            )
        return self

    @model_validator(mode="after")
    def _cannot_recompute(self) -> Self:
        if self.compute.recompute:
            raise ValueError("compute.recompute is for searches; a training has none")
        return self

    @classmethod
    def _write_out_names(cls, data: dict[str, Any]) -> None:
        data["genotype"] = genotype_data(data["genotype"])
