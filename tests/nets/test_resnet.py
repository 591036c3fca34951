"""The plain residual network: its size, its names, its layers."""

import pytest
import torch
from torch import nn

from prnas.nets.resnet import ResNet, build_resnet
from prnas.space.resnet import resnet_blocks, resnet_name, resnet_size


@pytest.mark.parametrize(("channels", "blocks"), [(16, 3), (4, 6), (3, 9)])
@pytest.mark.parametrize("pixels", [(8, 8), (9, 7)])
def test_its_size_is_counted_exactly(channels: int, blocks: int, pixels: tuple[int, int]) -> None:
    network = build_resnet(channels, blocks, 5, input_channels=2).eval()
    size = resnet_size(channels, blocks, 5, input_channels=2, image_size=pixels)
    assert size.parameters == sum(weight.numel() for weight in network.parameters())
    macs = 0

    def count(layer: nn.Module, _: object, out: torch.Tensor) -> None:
        nonlocal macs
        assert isinstance(layer, nn.Conv2d | nn.Linear)
        macs += layer.weight.numel() * out[0, 0].numel()

    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(count)
    with torch.no_grad():
        assert network(torch.zeros(1, 2, *pixels)).shape == (1, 5)
    assert macs == size.macs


def test_the_published_one_has_its_size() -> None:
    """He et al. give 0.27 million parameters for 20 layers; ours has two shortcuts more."""
    shortcuts = 16 * 32 + 32 * 64 + 2 * (32 + 64)
    assert resnet_size(16, 9).parameters - shortcuts == 269_722
    layers = [one for one in build_resnet(16, 9).modules() if isinstance(one, nn.Conv2d)]
    assert len([one for one in layers if one.kernel_size == (3, 3)]) + 1 == 20


def test_it_is_the_one_with_ordinary_batch_normalisation() -> None:
    fast = build_resnet(4, 3, 3, generator=torch.Generator().manual_seed(1))
    plain = ResNet(4, 3, 3, 3)
    plain.load_state_dict(fast.state_dict())
    images = torch.randn(5, 3, 9, 8, generator=torch.Generator().manual_seed(2))
    assert torch.allclose(fast(images), plain(images), atol=1e-5)
    again = build_resnet(4, 3, 3, generator=torch.Generator().manual_seed(1))
    other = build_resnet(4, 3, 3, generator=torch.Generator().manual_seed(2))
    assert torch.equal(again.conv.weight, plain.conv.weight)
    assert not torch.equal(other.conv.weight, plain.conv.weight)


def test_names() -> None:
    assert [resnet_blocks(name) for name in ("resnet", "resnet8", "resnet20")] == [3, 3, 9]
    assert resnet_name(9) == "resnet20"
    for other in ("ResNet8", "resnet-8", "darts-v1", ""):
        assert resnet_blocks(other) is None
    for wrong in ("resnet0", "resnet2", "resnet18", "resnet9998"):
        with pytest.raises(ValueError, match="6 n"):
            resnet_blocks(wrong)
    with pytest.raises(ValueError, match="multiple of 3"):
        build_resnet(4, 4)
