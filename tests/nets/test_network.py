import copy
import pickle
import shutil
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import prnas
from prnas.nets import network as network_module
from prnas.nets import plain_network
from prnas.nets.kernels import batch_norm as normalisation
from prnas.nets.network import AuxiliaryHead, Network, build, paths
from prnas.space import zoo
from prnas.space.genotype import Cell, Edge, Genotype
from prnas.space.network_size import NetworkSize, Output, Stem, network_size
from prnas.space.operations import Conv, Pool, Skip
from tests.support.networks import as_plain, measured
from tests.support.strategies import genotypes

SMALL_CELL = Cell(
    ((Edge(0, Conv(3, 1, (1,))), Edge(1, Skip())), (Edge(1, Pool("max")), Edge(2, Conv(5, 2)))),
    (2, 3),
)
SMALL = Genotype(SMALL_CELL, SMALL_CELL)
# What compilers take their time for, once: each kind of operation.
ONE_NODE = Genotype(
    Cell(((Edge(0, Conv(5, 2)), Edge(1, Pool("avg"))),), (2,)),
    Cell(((Edge(0, Conv(3, 1, (1,))), Edge(1, Skip())),), (2,)),
)
PUBLISHED = {
    "darts-v1": NetworkSize(3169414, 500987520),
    "p-darts": NetworkSize(3433798, 532174464),
    "pr-darts-dl1": NetworkSize(3174166, 491200128),
    "pr-darts-dl2": NetworkSize(4017646, 650369664),
}


def small(**options: object) -> Network:
    return build(SMALL, channels=4, cells=3, classes=5, **options)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_sizes_come_out_exactly(name: str) -> None:
    assert network_size(zoo.get(name)) == PUBLISHED[name]
    network = prnas.build(zoo.get(name))
    assert sum(weight.numel() for weight in network.parameters()) == PUBLISHED[name].parameters


def test_a_published_network_is_measured_as_counted() -> None:
    network = build(zoo.get("pr-darts-dl2")).eval()
    assert measured(network, torch.randn(1, 3, 32, 32)) == PUBLISHED["pr-darts-dl2"]


def test_the_mean_of_the_nodes_gives_the_other_size() -> None:
    assert network_size(zoo.get("pr-darts-dl2"), output="mean").parameters == 3006334


@settings(max_examples=15)
@given(
    genotypes,
    st.sampled_from(["cifar", "imagenet"]),
    st.sampled_from(["concat", "mean"]),
    st.data(),
)
def test_counted_sizes_are_those_of_the_real_network(
    genotype: Genotype, stem: str, output: str, data: st.DataObject
) -> None:
    cells, size = data.draw(st.integers(3, 5)), data.draw(st.sampled_from([33, 40, 64]))
    colours = data.draw(st.sampled_from([1, 3]))
    options = {"stem": stem, "output": output, "input_channels": colours}
    network = build(genotype, 4, cells, 7, **options).eval()  # pyright: ignore[reportArgumentType]
    counted = network_size(genotype, 4, cells, 7, image_size=size, **options)  # pyright: ignore[reportArgumentType]
    assert measured(network, torch.randn(1, colours, size, size)) == counted


def test_every_cell_of_the_zoo_builds_at_its_size() -> None:
    for entry in zoo.entries().values():
        with torch.device("meta"):
            network = Network(entry.genotype, 36, 5, 10, "cifar", False, "concat", 3)
        counted = network_size(entry.genotype, 36, 5).parameters
        assert sum(weight.numel() for weight in network.parameters()) == counted, entry.title


# All kinds of operations and shapes; the cells after these have those of DARTS.
@pytest.mark.parametrize(
    ("name", "output"), [*((name, "concat") for name in zoo.names()[:9]), ("darts-v2", "mean")]
)
def test_every_published_cell_trains(name: str, output: str) -> None:
    network = build(zoo.get(name), 4, 6, 3, auxiliary=True, output=output)  # pyright: ignore[reportArgumentType]
    network.drop_path_probability = 0.2
    logits, auxiliary = network(torch.randn(2, 3, 32, 32))
    assert logits.shape == auxiliary.shape == (2, 3)
    (logits.sum() + auxiliary.sum()).backward()
    assert all(weight.grad is not None for weight in network.parameters())
    assert network.eval()(torch.randn(1, 3, 32, 32)).shape == (1, 3)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(
    ("name", "stem", "output"),
    [
        ("darts-v2", "cifar", "concat"),
        ("nasnet-a", "cifar", "concat"),
        ("pr-darts-ur", "cifar", "mean"),
        ("amoebanet-a", "imagenet", "concat"),
    ],
)
def test_it_is_the_plain_network(
    name: str,
    stem: Stem,
    output: Output,
    layout: torch.memory_format,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(normalisation, "_LARGE", 2)  # so that the faster way is within
    ours = build(zoo.get(name), 4, 6, 5, stem=stem, output=output, auxiliary=True).double()
    twin = plain_network.Network(zoo.get(name), 4, 6, 5, stem=stem, output=output).double()
    twin.load_state_dict(as_plain(ours.state_dict()))
    size = 32 if stem == "cifar" else 224
    images = torch.randn(2, 3, size, size, dtype=torch.float64)
    outputs: list[tuple[torch.Tensor, torch.Tensor]] = []
    for network in (ours, twin):
        network.drop_path_probability = 0.3
        torch.manual_seed(1)  # for the paths that drop
        outputs.append(network(images.contiguous(memory_format=layout)))
        logits, auxiliary = outputs[-1]
        (logits.square().sum() + 0.4 * auxiliary.square().sum()).backward()
    torch.testing.assert_close(*outputs, rtol=1e-9, atol=1e-9)
    theirs = dict(twin.named_parameters())
    for weight_name, weight in as_plain({**dict(ours.named_parameters())}).items():
        assert weight.grad is not None
        expected = theirs[weight_name].grad
        assert expected is not None
        close = 1e-9 * max(1, expected.abs().max().item())
        torch.testing.assert_close(weight.grad, expected, rtol=0, atol=close, msg=weight_name)
    state = as_plain(ours.state_dict())
    torch.testing.assert_close(state, dict(twin.state_dict()), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(ours.eval()(images), twin.eval()(images))


@pytest.mark.parametrize("size", [8, 9, 15, 28, 33])
@pytest.mark.parametrize("colours", [1, 4])
def test_any_image_size_and_colours(size: int, colours: int) -> None:
    network = small(auxiliary=True, input_channels=colours)
    logits, auxiliary = network(torch.randn(2, colours, size, size + 1))
    assert logits.shape == auxiliary.shape == (2, 5)


def test_the_auxiliary_head_pools_as_published() -> None:
    head = AuxiliaryHead(4, 3, stride=3).eval()
    x = torch.randn(1, 4, 8, 8)
    pooled = nn.AvgPool2d(5, 3, padding=0, count_include_pad=False)(x.relu())
    assert pooled.shape[2:] == (2, 2)
    expected = head.classifier(head.features(pooled).flatten(1))
    assert torch.equal(head(x), expected)
    assert nn.AvgPool2d(5, 2)(torch.zeros(1, 1, 7, 7)).shape[2:] == (2, 2)
    place = {len(plan.cells): plan.auxiliary_index for plan in (small(), build(SMALL, 4, 20))}
    assert place == {3: 2, 20: 13}


def test_the_imagenet_form() -> None:
    network = build(SMALL, 6, 5, 11, stem="imagenet", auxiliary=True)
    logits, auxiliary = network(torch.randn(2, 3, 224, 224))
    assert logits.shape == auxiliary.shape == (2, 11)
    quarter, eighth = network.stem(torch.randn(1, 3, 224, 224))
    assert (quarter.shape, eighth.shape) == ((1, 6, 56, 56), (1, 6, 28, 28))
    with pytest.raises(ValueError, match="must be even, got 5"):
        build(SMALL, 5, stem="imagenet")


def test_the_same_seed_gives_the_same_weights_whatever_ran_before() -> None:
    before = torch.get_rng_state()
    first = small().state_dict()
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(99)
    torch.randn(10)
    second = small().state_dict()
    other = small(generator=torch.Generator().manual_seed(1)).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["classifier.weight"], other["classifier.weight"])


def test_weights_are_spread_as_pytorch_spreads_them() -> None:
    network = build(SMALL, 16, 3, 10)
    for part in network.modules():
        if isinstance(part, nn.Conv2d | nn.Linear):
            reference = copy.deepcopy(part)
            reference.reset_parameters()
            bound = part.weight[0].numel() ** -0.5
            assert part.weight.abs().max() <= bound
            if part.weight.numel() > 500:
                expected = reference.weight.std().item()
                assert part.weight.std().item() == pytest.approx(expected, rel=0.15)


def test_it_is_a_plain_module() -> None:
    network = small().eval()
    images = torch.randn(2, 3, 16, 16)
    expected = network(images)
    assert torch.equal(copy.deepcopy(network)(images), expected)
    assert torch.equal(pickle.loads(pickle.dumps(network))(images), expected)  # noqa: S301
    other = small(generator=torch.Generator().manual_seed(5)).eval()
    other.load_state_dict(network.state_dict())
    assert torch.equal(other(images), expected)
    last = network.to(memory_format=torch.channels_last)(  # pyright: ignore[reportCallIssue]
        images.contiguous(memory_format=torch.channels_last)
    )
    torch.testing.assert_close(last, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("output", ["concat", "mean"])
@pytest.mark.parametrize("concat", [(2, 3), (3,)])
def test_hooks_see_what_modules_made(
    layout: torch.memory_format,
    output: Output,
    concat: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(normalisation, "_LARGE", 2)
    cell = replace(SMALL_CELL, concat=concat)
    network = build(Genotype(cell, cell), 4, 4, 5, output=output)
    network.to(memory_format=layout)  # pyright: ignore[reportCallIssue]
    kept: list[tuple[torch.Tensor, torch.Tensor]] = []
    silent = {
        name: module
        for name, module in network.named_modules()
        if not isinstance(module, nn.ModuleList | nn.ModuleDict)
    }
    names = {module: name for name, module in silent.items()}

    def keep(module: nn.Module, given: object, made: object) -> None:
        silent.pop(names[module], None)
        if isinstance(made, torch.Tensor):
            kept.append((made, made.detach().clone()))

    for module in list(silent.values()):
        module.register_full_backward_hook(lambda *_: None)
        module.register_forward_hook(keep)
    images = torch.randn(2, 3, 16, 16).contiguous(memory_format=layout).requires_grad_()
    network(images).sum().backward()
    assert not silent
    assert all(torch.equal(made, copy) for made, copy in kept)


def test_functional_transforms_and_symbolic_tracing() -> None:
    network = small()
    network.to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    images = torch.randn(2, 3, 16, 16).contiguous(memory_format=torch.channels_last)
    expected = torch.autograd.grad(
        network(images).square().sum(), list(network.parameters()), allow_unused=True
    )

    def loss(parameters: dict[str, torch.Tensor]) -> torch.Tensor:
        state = {**parameters, **{name: one.clone() for name, one in network.named_buffers()}}
        return torch.func.functional_call(network, state, (images,)).square().sum()

    found = torch.func.grad(loss)(dict(network.named_parameters()))
    for (name, one), other in zip(found.items(), expected, strict=True):
        if other is not None:
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3, msg=name)
    traced = torch.fx.symbolic_trace(network.eval())
    torch.testing.assert_close(traced(images), network(images))


def test_it_exports() -> None:
    network = small().eval()
    images = torch.randn(2, 3, 16, 16)
    program = torch.export.export(
        network, (images,), dynamic_shapes={"images": {0: torch.export.Dim("batch")}}
    )
    more = torch.randn(5, 3, 16, 16)
    torch.testing.assert_close(program.module()(more), network(more))


def test_it_compiles() -> None:
    network = small().eval()
    images = torch.randn(2, 3, 16, 16)
    compiled = torch.compile(network, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(images), network(images))


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_it_trains_compiled(backend: str, layout: torch.memory_format) -> None:
    if backend == "inductor" and shutil.which("c++") is None:
        pytest.skip("inductor needs a C++ compiler")
    genotype = zoo.get("darts-v2") if backend == "inductor" else ONE_NODE
    network = build(genotype, 4, 3, 5).to(memory_format=layout)  # pyright: ignore[reportCallIssue]
    twin = copy.deepcopy(network)
    compiled = torch.compile(twin, backend=backend, fullgraph=True)
    images = torch.randn(3, 3, 15, 16).contiguous(memory_format=layout)
    expected, found = network(images), compiled(images)
    torch.testing.assert_close(found, expected)
    expected.square().sum().backward()
    found.square().sum().backward()
    for one, other in zip(network.parameters(), twin.parameters(), strict=True):
        assert one.grad is not None
        close = 1e-4 * max(1, one.grad.abs().max().item())
        torch.testing.assert_close(other.grad, one.grad, rtol=0, atol=close)
    torch.testing.assert_close(twin.state_dict(), network.state_dict(), rtol=1e-4, atol=1e-4)


def test_drop_path_keeps_the_mean_and_draws_from_the_generator() -> None:
    x = torch.ones(4000, 2, 3, 3)
    kept = paths(x, 0.3, torch.Generator().manual_seed(0))
    assert kept.shape == (4000, 1, 1, 1)
    assert torch.equal(kept, paths(x, 0.3, torch.Generator().manual_seed(0)))
    assert kept.unique().tolist() == pytest.approx([0, 1 / 0.7])
    assert kept.mean().item() == pytest.approx(1, abs=0.05)


def test_identities_are_not_dropped() -> None:
    cell = Cell(((Edge(0, Skip()), Edge(1, Skip())),), (2,))
    network = build(Genotype(cell, SMALL_CELL), 4, 3, 2)
    first = network.cells[0]
    assert isinstance(first, network_module.Cell)
    x = torch.rand(3, 12, 6, 6)
    states = first.preprocess[0](x), first.preprocess[1](x)
    assert torch.equal(first(x, x, 0.99, None), states[0] + states[1])
    assert (network.cells[1](x, first(x, x, 0.0, None), 0.99, None) == 0).float().mean() > 0.2


def test_drop_path_is_for_training_only() -> None:
    network = small().eval()
    images = torch.randn(2, 3, 16, 16)
    expected = network(images)
    network.drop_path_probability = 0.9
    assert torch.equal(network(images), expected)


def test_all_wrong_arguments_at_once() -> None:
    with pytest.raises(ValueError, match="channels must be") as error:
        build(SMALL, 0, 2, stem="mnist", output="max")  # pyright: ignore[reportArgumentType]
    for part in (
        "cells must be a whole number of at least 3",
        "stem must be one of",
        "output must",
    ):
        assert part in str(error.value)
