"""Inference: the device, and logits of images in batches that fit into memory."""

from collections.abc import Generator
from contextlib import contextmanager

import torch
from torch import Tensor

from prnas.data.augment import plain
from prnas.data.dataset import Normalization
from prnas.io.errors import UserError
from prnas.io.memory import is_out_of_memory
from prnas.models.model import Model


def choose_device(accelerator: str, threads: int | None = None) -> torch.device:
    """The device of an accelerator; `auto` takes a GPU before the CPU. Also sets the threads."""
    if threads is not None:
        if not 1 <= threads <= 1024:
            raise UserError(f"threads must be from 1 to 1024, got {threads}")
        torch.set_num_threads(threads)
    return torch.device(check_accelerator(accelerator))


def check_accelerator(accelerator: str) -> str:
    """The accelerator's name, resolved if it is `auto`; a `UserError` if it is not available."""
    available = ["cuda"] if torch.cuda.is_available() else []
    available += ["mps"] if torch.backends.mps.is_available() else []
    available += ["cpu"]
    if accelerator == "auto":
        return available[0]
    if accelerator not in available:
        raise UserError(
            f"cannot compute on '{accelerator:.60}': PyTorch finds here only {', '.join(available)}"
        )
    return accelerator


@contextmanager
def evaluating(model: Model) -> Generator[None]:
    """Keep the model in evaluation mode within it."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


class Forward:
    """Computes logits. If memory runs out, `batch` is halved, and stays so."""

    def __init__(self, model: Model, batch: int) -> None:
        if batch < 1:
            raise UserError(f"a batch needs at least one image, got {batch}")
        self.model, self.batch = model, batch
        self.device: torch.device = model.mean.device
        self._normalization = Normalization(model.card.mean, model.card.std)

    def prepared(self, pixels: Tensor) -> Tensor:
        """The network's input, on its device, for images of bytes (n x C x H x W)."""
        images = plain(pixels.to(self.device), self._normalization)
        return images.to(self.model.mean.dtype)

    @torch.inference_mode()
    def __call__(self, pixels: Tensor) -> Tensor:
        """Logits, in double precision and on the CPU, of images of bytes."""
        outputs: list[Tensor] = []
        start = 0
        while start < len(pixels):
            batch = pixels[start : start + self.batch]
            try:
                logits = self.model.network(self.prepared(batch))
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if self.batch == 1:
                    raise UserError("out of memory with a single image") from None
                self.batch = -(-self.batch // 2)
                continue
            start += len(batch)
            outputs.append(logits.cpu().double())  # Not every device has doubles.
        result = torch.cat(outputs)
        if not result.isfinite().all():
            raise UserError(
                "the model's outputs are not finite numbers: its training went wrong, or its "
                "normalisation does not suit the images"
            )
        return result
