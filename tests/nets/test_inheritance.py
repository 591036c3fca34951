"""Weights follow every morphism; the true ones keep the function."""

import pytest
import torch
from torch import nn

from prnas.nets.inheritance import INHERITANCE, inherit
from prnas.nets.operations import SeparableConv, build
from prnas.nets.weights import construct
from prnas.space.morphisms import MORPHISMS
from prnas.space.operations import Conv, Operation, PlainConv
from prnas.space.setting import Limits
from tests.support.strategies import EXAMPLES

CHANNELS = 4
LIMITS = Limits(1, 9, 3, None, None)
CONVS = [Conv(3), Conv(5, 2), Conv(3, 1, (1,)), Conv(3, 2, (2, 1)), Conv(7, 1, (1, 2, 1))]
SPECS: list[Operation] = [*CONVS, *(op for op in EXAMPLES if not isinstance(op, Conv))]
CASES = [
    pytest.param(spec, name, id=f"{spec.label}, {name}")
    for spec in SPECS
    for name, morphism in MORPHISMS.items()
    if morphism.legal(spec, LIMITS)
]
KEEPING = [case for case in CASES if case.values[1] in ("grow kernel", "widen")]


def trained(spec: Operation, stride: int) -> nn.Module:
    """A parent whose running statistics are not the initial ones."""
    module = construct(
        lambda: build(spec, CHANNELS, stride, affine=False), torch.Generator().manual_seed(3)
    ).double()
    for _ in range(3):
        module(torch.randn(4, CHANNELS, 9, 9, dtype=torch.float64) + 0.3)
    return module


def links(chain: nn.Module) -> list[SeparableConv]:
    return [link for link in chain.children() if isinstance(link, SeparableConv)]


def child(
    parent: nn.Module, spec: Operation, name: str, stride: int = 1, seed: int = 0
) -> nn.Module:
    return inherit(parent, spec, name, CHANNELS, stride, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("spec", "name"), CASES)
@pytest.mark.parametrize("stride", [1, 2])
def test_a_child_has_the_shapes_of_its_spec_and_shares_no_tensor(
    spec: Operation, name: str, stride: int
) -> None:
    parent = trained(spec, stride)
    before = {key: value.clone() for key, value in parent.state_dict().items()}
    made = child(parent, spec, name, stride)
    expected = build(MORPHISMS[name].apply(spec), CHANNELS, stride, affine=False)
    shapes = {key: value.shape for key, value in made.state_dict().items()}
    assert shapes == {key: value.shape for key, value in expected.state_dict().items()}
    for convolution, wanted in zip(made.modules(), expected.modules(), strict=True):
        if isinstance(convolution, nn.Conv2d):
            assert isinstance(wanted, nn.Conv2d)
            assert (convolution.stride, convolution.dilation) == (wanted.stride, wanted.dilation)
    assert all(torch.equal(value, before[key]) for key, value in parent.state_dict().items())
    owned = {value.data_ptr() for value in parent.state_dict().values()}
    assert owned.isdisjoint(value.data_ptr() for value in made.state_dict().values())
    assert {value.dtype for value in made.parameters()} == {torch.float64}
    again = child(parent, spec, name, stride).state_dict()
    assert all(torch.equal(value, again[key]) for key, value in made.state_dict().items())


@pytest.mark.parametrize(("spec", "name"), KEEPING)
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("training", [True, False])
def test_true_morphisms_keep_the_function(
    spec: Conv, name: str, stride: int, training: bool
) -> None:
    parent = trained(spec, stride).train(training)
    made = child(parent, spec, name, stride)
    assert made.training == training
    x = torch.randn(3, CHANNELS, 10, 11, dtype=torch.float64)
    torch.testing.assert_close(made(x), parent(x), rtol=1e-9, atol=1e-9)


def test_a_larger_kernel_has_zeros_around() -> None:
    parent = trained(Conv(3, 1, (1,)), 1)
    for new, old in zip(
        links(child(parent, Conv(3, 1, (1,)), "grow kernel")), links(parent), strict=True
    ):
        assert torch.equal(new.depthwise.weight[:, :, 1:-1, 1:-1], old.depthwise.weight)
        assert new.depthwise.weight.abs().sum() == old.depthwise.weight.abs().sum()
        assert torch.equal(new.bn.running_var, old.bn.running_var)  # pyright: ignore[reportArgumentType]


def test_a_full_convolution_grows_around_its_kernel_and_shrinks_to_it() -> None:
    parent = trained(PlainConv(1), 1)
    grown = child(parent, PlainConv(1), "grow kernel")
    weight, old = grown.get_parameter("conv.weight"), parent.get_parameter("conv.weight")
    assert weight.shape == (CHANNELS, CHANNELS, 3, 3)
    assert torch.equal(weight[:, :, 1:2, 1:2], old)
    assert weight.abs().sum() == old.abs().sum()
    back = child(grown, PlainConv(3), "shrink kernel")
    assert all(
        torch.equal(value, back.state_dict()[key]) for key, value in parent.state_dict().items()
    )


def test_a_smaller_kernel_is_the_centre() -> None:
    parent = trained(Conv(5), 1)
    smaller = child(parent, Conv(5), "shrink kernel")
    assert torch.equal(
        links(smaller)[0].depthwise.weight, links(parent)[0].depthwise.weight[:, :, 1:4, 1:4]
    )
    assert torch.equal(links(smaller)[0].pointwise.weight, links(parent)[0].pointwise.weight)


@pytest.mark.parametrize(
    ("spec", "name"), [(Conv(3), "grow dilation"), (Conv(3, 2), "shrink dilation")]
)
def test_another_dilation_leaves_weights_alone(spec: Conv, name: str) -> None:
    parent = trained(spec, 1)
    made = child(parent, spec, name)
    assert all(
        torch.equal(value, made.state_dict()[key]) for key, value in parent.state_dict().items()
    )


def test_an_inserted_expansion_starts_as_the_identity() -> None:
    parent = trained(Conv(3), 1)
    made = child(parent, Conv(3), "insert expansion")
    x = torch.randn(2, CHANNELS, 8, 8, dtype=torch.float64)
    new = links(made)[1]
    inner = new.pointwise(new.depthwise(x))
    assert torch.equal(inner, x)  # but for its ReLU before and its BN after
    assert torch.equal(new.bn.running_mean, torch.zeros(CHANNELS).double())  # pyright: ignore[reportArgumentType]
    parent.eval()
    made.eval()
    expected = parent(x).relu() / (1 + 1e-5) ** 0.5
    torch.testing.assert_close(made(x), expected)


def test_widened_channels_learn_at_once() -> None:
    spec = Conv(3, 1, (1, 2))
    made = child(trained(spec, 1), spec, "widen")
    assert [link.pointwise.out_channels for link in links(made)] == [8, 8, 4]
    reader = links(made)[1]
    assert (reader.pointwise.weight[:, CHANNELS:] == 0).all()
    assert (reader.depthwise.weight[CHANNELS:] != 0).all()
    weights = torch.randn(2, CHANNELS, 8, 8, dtype=torch.float64)
    (made(torch.randn(2, CHANNELS, 8, 8, dtype=torch.float64)) * weights).sum().backward()
    assert reader.pointwise.weight.grad is not None
    assert (reader.pointwise.weight.grad[:, CHANNELS:] != 0).any()


def test_new_weights_come_from_the_generator() -> None:
    spec = Conv(3, 1, (1,))
    parent = trained(spec, 1)
    torch.manual_seed(0)
    one = child(parent, spec, "widen", seed=1).state_dict()
    torch.manual_seed(1)
    same = child(parent, spec, "widen", seed=1).state_dict()
    other = child(parent, spec, "widen", seed=2).state_dict()
    assert all(torch.equal(value, same[key]) for key, value in one.items())
    assert any(not torch.equal(value, other[key]) for key, value in one.items())


def test_weights_follow_every_morphism() -> None:
    assert set(INHERITANCE) == set(MORPHISMS)


def test_an_unknown_morphism_is_refused() -> None:
    with pytest.raises(ValueError, match="no rule says how weights follow the morphism 'shuffle'"):
        child(trained(Conv(3), 1), Conv(3), "shuffle")
