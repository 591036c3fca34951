"""What rounding depends on: PyTorch's version, the processor, and what its kernels make of both."""

import hashlib
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


def arithmetic() -> dict[str, Any]:
    """The same for two machines if runs with one thread may be expected to give the same bits."""
    return {
        "torch": torch.__version__,
        "capability": torch.backends.cpu.get_cpu_capability(),
        "kernels": _digest_of_kernels(),
    }


def _digest_of_kernels() -> str:
    """Of PyTorch's own results in a small network, forwards and backwards; nothing of prnas."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return hashlib.sha256(b"".join(map(_bytes, _results()))).hexdigest()
    finally:
        torch.set_num_threads(threads)


def _results() -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)

    def made(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, requires_grad=True)

    stem, wide, head = made(4, 1, 3, 3), made(8, 4, 1, 1), made(8, 10)
    deep = [made(8, 1, size, size) for size in (3, 5)]
    results: list[Tensor] = []
    for layout in (torch.contiguous_format, torch.channels_last):
        x = torch.rand((16, 1, 8, 8), generator=generator).to(memory_format=layout)
        for batch in (16, 8):
            y = F.batch_norm(F.conv2d(x[:batch], stem, padding=1), None, None, training=True)
            y = F.conv2d(y, wide).relu()
            for kernel in deep:
                y = y + F.conv2d(y, kernel, padding=kernel.shape[-1] // 2, groups=8)
            y = F.max_pool2d(y, 3, 2, 1) + F.avg_pool2d(y, 3, 2, 1)
            y = F.batch_norm(y, None, None, training=True).mean((2, 3)) @ head
            loss = F.cross_entropy(y, torch.arange(batch) % 10, label_smoothing=0.1)
            parameters = [stem, wide, *deep, head]
            results += [y, loss, *torch.autograd.grad(loss, parameters)]
    return results


def _bytes(tensor: Tensor) -> bytes:
    return tensor.detach().contiguous().numpy().tobytes()
