"""A plain residual network, to compare with: nothing of it was searched.

That of He et al., 2016 (arXiv:1512.03385) for small images: a convolution, three stages of equally
many blocks of two convolutions, and a classifier; 6n + 2 layers with n blocks a stage. A shortcut
between two stages is a 1 x 1 convolution, their option B. Exported Python files are made of the
classes below, which know nothing but PyTorch, and keep to 88 columns.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prnas.nets.kernels.batch_norm import BatchNorm
from prnas.nets.weights import construct
from prnas.space.resnet import check_resnet


class Block(nn.Module):
    """Two 3 x 3 convolutions, whose output is added to what they read."""

    def __init__(
        self, c_in: int, c_out: int, stride: int, norm: Callable[[int], nn.Module]
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride, padding=1, bias=False)
        self.bn1 = norm(c_out)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, padding=1, bias=False)
        self.bn2 = norm(c_out)
        self.shortcut = nn.Sequential()
        if stride > 1 or c_in != c_out:
            self.shortcut.append(nn.Conv2d(c_in, c_out, 1, stride, bias=False))
            self.shortcut.append(norm(c_out))

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(out + self.shortcut(x))


class ResNet(nn.Module):
    """Three stages of blocks; the second and third halve images and double channels.

    There are equally many `blocks` in each, and `channels` in the first.
    """

    def __init__(
        self,
        channels: int,
        blocks: int,
        classes: int,
        input_channels: int,
        norm: Callable[[int], nn.Module] = nn.BatchNorm2d,
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(input_channels, channels, 3, padding=1, bias=False)
        self.bn = norm(channels)
        self.blocks = nn.Sequential()
        c_in = channels
        for index in range(blocks):
            stage, first = 3 * index // blocks, index % (blocks // 3) == 0
            c_out = 2**stage * channels
            stride = 2 if stage > 0 and first else 1
            self.blocks.append(Block(c_in, c_out, stride, norm))
            c_in = c_out
        self.classifier = nn.Linear(c_in, classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.blocks(F.relu(self.bn(self.conv(images))))
        return self.classifier(x.mean(dim=(2, 3)))


def build_resnet(
    channels: int = 16,
    blocks: int = 3,
    classes: int = 10,
    *,
    input_channels: int = 3,
    generator: torch.Generator | None = None,
) -> ResNet:
    """A plain residual network of so many blocks in all, a multiple of 3.

    Its weights come from `generator` (a new one of seed 0 by default) alone.
    """
    if problems := check_resnet(blocks):
        raise ValueError("; ".join(problems))
    return construct(
        lambda: ResNet(channels, blocks, classes, input_channels, BatchNorm),
        generator or torch.Generator().manual_seed(0),
    )
