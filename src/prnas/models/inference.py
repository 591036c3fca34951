"""Images into a trained model, as in its training: bytes, normalised, in batches that fit."""

import torch
from torch import Tensor

from prnas.data.augment import plain
from prnas.data.dataset import Normalization
from prnas.io.errors import UserError
from prnas.io.memory import is_out_of_memory
from prnas.models.model import Model


def choose_device(accelerator: str, threads: int | None = None) -> torch.device:
    """The device that a word names, if it is there; `auto` takes a GPU before the CPU."""
    if threads is not None:
        if not 1 <= threads <= 1024:
            raise UserError(f"threads must be from 1 to 1024, got {threads}")
        torch.set_num_threads(threads)
    there = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if accelerator == "auto":
        accelerator = next(name for name, usable in there.items() if usable)
    if not there.get(accelerator, False):
        usable = ", ".join(name for name, one in there.items() if one)
        raise UserError(f"cannot compute on '{accelerator:.60}': PyTorch finds here only {usable}")
    return torch.device(accelerator)


class Forward:
    """Gives logits. If memory runs out, `batch` is halved, and stays so."""

    def __init__(self, model: Model, batch: int) -> None:
        if batch < 1:
            raise UserError(f"a batch needs at least one image, got {batch}")
        self.model, self.batch = model, batch
        self.device: torch.device = model.mean.device
        self._normalization = Normalization(model.card.mean, model.card.std)

    def prepared(self, pixels: Tensor) -> Tensor:
        """Bytes (n x C x H x W) as the network takes them, on its device."""
        images = plain(pixels.to(self.device), self._normalization)
        return images.to(self.model.mean.dtype)

    @torch.inference_mode()
    def __call__(self, pixels: Tensor) -> Tensor:
        """Logits, in double precision and on the CPU, of images of bytes."""
        done: list[Tensor] = []
        start = 0
        while start < len(pixels):
            some = pixels[start : start + self.batch]
            try:
                logits = self.model.network(self.prepared(some))
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if self.batch == 1:
                    raise UserError("out of memory with a single image") from None
                self.batch = -(-self.batch // 2)
                continue
            start += len(some)
            done.append(logits.cpu().double())  # not every device has doubles
        whole = torch.cat(done)
        if not whole.isfinite().all():
            raise UserError(
                "the model's outputs are not finite numbers: its training went wrong, or its "
                "normalisation does not suit the images"
            )
        return whole
