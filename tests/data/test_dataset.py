"""Loading by name, storage, halves and means."""

import hashlib
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from prnas.config.search import DataConfig
from prnas.data import dataset as data_module
from prnas.data.catalog import ABOUT, default_root, is_absent
from prnas.data.dataset import DataSet, InMemory, Streamed, halves, load, normalization
from prnas.data.split import stratified
from prnas.data.streams import Stream
from prnas.io.errors import UserError
from tests.support.made_data import images, picture_folder

CPU = torch.device("cpu")


def load_quietly(**settings: object) -> DataSet:
    """Load, and fail on any message."""
    return load(DataConfig.model_validate(settings), CPU, pytest.fail)


def npz_file(path: Path, number: int = 40, shape: tuple[int, ...] = (6, 5, 3)) -> Path:
    random = np.random.default_rng(0)
    pixels = random.integers(0, 256, (number, *shape), np.uint8)
    np.savez(path, x_train=pixels, y_train=np.arange(number) % 4)
    return path


def test_digits_are_the_real_ones() -> None:
    digits = load_quietly(name="digits")
    assert (len(digits.train), len(digits.test)) == (ABOUT["digits"].train, ABOUT["digits"].test)
    assert digits.shape == ABOUT["digits"].shape == (1, 8, 8)
    assert digits.class_names == tuple("0123456789")
    labels = torch.cat([digits.train.labels, digits.test.labels])
    # The number of each digit that the repository states for these 1,797 images.
    assert labels.bincount().tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    shares = digits.test.labels.bincount() / labels.bincount()
    assert ((shares - 0.2).abs() < 0.005).all()
    parts = (digits.train, digits.test)
    pixels = torch.cat([part.fetch(torch.arange(len(part))) for part in parts])
    assert set(pixels.unique().tolist()) == {(255 * value + 8) // 16 for value in range(17)}
    assert pixels.flatten(1).unique(dim=0).shape[0] == 1797
    assert digits.train.fetch(torch.tensor([3])).dtype == torch.uint8
    digest = hashlib.sha256(pixels.numpy().tobytes()).hexdigest()
    assert digest == "87f8b28813542e2caedc5e812b4ab7b5a748bf3ca8fdaf384468ca187a814979"


@pytest.mark.parametrize(
    ("kind", "workers"), [("npz", 0), ("folder", 0), ("resized", 0), ("npz", 2), ("folder", 2)]
)
def test_streamed_sets_are_what_they_are_in_memory(kind: str, workers: int, tmp_path: Path) -> None:
    if kind == "folder":
        settings: dict[str, object] = {"name": f"folder:{picture_folder(tmp_path, 9)}"}
    else:
        settings = {"name": f"npz:{npz_file(tmp_path / 'set.npz')}"}
        settings["image_size"] = 7 if kind == "resized" else None
    kept = load_quietly(**settings, storage="memory")
    read = load_quietly(**settings, storage="stream", workers=workers)
    assert isinstance(kept.train, InMemory)
    assert isinstance(read.train, Streamed)
    try:
        assert kept.shape == read.shape
        assert torch.equal(kept.test.labels, read.test.labels)
        everything = torch.arange(len(kept.test))
        assert torch.equal(kept.test.fetch(everything), read.test.fetch(everything))
        # Two streams share the set, and a batch is taken twice, as after a rewind.
        for number in (3, 50, 4, 4):
            for part in (torch.arange(0, 6), torch.arange(6, 13)):
                streams = [Stream(one.train, part, number) for one in (kept, read)]
                for _ in range(3):
                    state = streams[1].state()
                    wanted, found = (stream.next(number) for stream in streams)
                    streams[1].load_state(state)
                    again = streams[1].next(number)
                    for a, b, c in zip(wanted, found, again, strict=True):
                        assert torch.equal(a, b)
                        assert torch.equal(a, c)
        assert normalization(kept.train) == normalization(read.train)
    finally:
        read.close()


def test_storage_auto_follows_the_memory_that_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"npz:{npz_file(tmp_path / 'set.npz')}"
    size = 40 * 6 * 5 * 3
    for free, kind in ((2 * size, InMemory), (2 * size - 2, Streamed)):
        monkeypatch.setattr("prnas.data.dataset.free_memory", lambda free=free: free)
        assert isinstance(load_quietly(name=name).train, kind)
    cuda = torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (3 * size, 3 * size))
    from prnas.data.storage import fits

    assert fits(size, cuda, 0)
    assert not fits(size + 1, cuda, 1e12)


def test_workers_end_with_a_killed_parent(tmp_path: Path) -> None:
    name = f"npz:{npz_file(tmp_path / 'set.npz')}"
    program = tmp_path / "program.py"
    program.write_text(
        "if __name__ == '__main__':\n"
        "    import os, signal, torch, psutil\n"
        "    from prnas.config.search import DataConfig\n"
        "    from prnas.data.dataset import load\n"
        f"    found = load(DataConfig(name={name!r}, storage='stream'), torch.device('cpu'))\n"
        "    found.train.fetch(torch.arange(20))\n"
        "    workers = [one.pid for one in psutil.Process().children(recursive=True)\n"
        "               if 'resource_tracker' not in ' '.join(one.cmdline())]\n"
        "    print(*workers, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    workers = list(map(int, done.stdout.split()))
    assert len(workers) == 2, done.stderr
    deadline = time.monotonic() + 20
    while any(_runs(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(_runs(pid) for pid in workers)


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_file_that_vanishes_from_a_streamed_set_is_named(tmp_path: Path) -> None:
    found = load_quietly(
        name=f"folder:{picture_folder(tmp_path)}", storage="stream", workers=1, test_share=0.2
    )
    for path in tmp_path.rglob("*.png"):
        path.write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"\.png cannot be read as an image"):
        found.train.fetch(torch.arange(3))
    found.close()


def test_a_worker_that_dies_is_reported(tmp_path: Path) -> None:
    found = load_quietly(name=f"npz:{npz_file(tmp_path / 'set.npz')}", storage="stream", workers=1)
    found.train.fetch(torch.arange(3))
    for child in psutil.Process().children(recursive=True):
        if "spawn_main" in " ".join(child.cmdline()):
            child.kill()

    def fetch_until_noticed() -> None:
        for _ in range(200):
            found.train.fetch(torch.arange(3))
            time.sleep(0.02)

    with pytest.raises(UserError, match=r"data\.workers=0"):
        fetch_until_noticed()
    found.close()


@given(st.integers(2, 300), st.floats(0.001, 0.999), st.integers(0, 1000))
def test_halves_share_nothing_and_leave_nothing_out(number: int, share: float, seed: int) -> None:
    labels = torch.zeros(number, dtype=torch.int64)
    weights, architecture = halves(labels, share, torch.Generator().manual_seed(seed))
    assert sorted(weights.tolist() + architecture.tolist()) == list(range(number))
    assert len(architecture) == min(max(round(number * share), 1), number - 1)
    same = halves(labels, share, torch.Generator().manual_seed(seed))
    assert torch.equal(weights, same[0])


def test_too_few_images_for_two_halves() -> None:
    with pytest.raises(UserError, match="at least two training images"):
        halves(torch.zeros(1), 0.5, torch.Generator())


@given(st.integers(1, 30), st.integers(1, 4))
def test_means_are_exact(number: int, batch_images: int) -> None:
    found = images(number)
    # Batches of a few images give the same numbers as one batch of all.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_module, "_BATCH_PIXELS", batch_images * 60)
        normal = normalization(found)
    assert normal == normalization(found)
    pixels = found.pixels.double() / 255
    assert np.allclose(normal.mean, pixels.mean((0, 2, 3)), rtol=1e-12)
    assert np.allclose(normal.std, pixels.std((0, 2, 3), correction=0), rtol=1e-12)
    some = normalization(found, torch.tensor([0]))
    assert np.allclose(some.mean, pixels[0].mean((1, 2)), rtol=1e-12)


def test_a_constant_channel_has_deviation_one() -> None:
    flat = InMemory(torch.full((4, 2, 3, 3), 51, dtype=torch.uint8), torch.zeros(4).long())
    normal = normalization(flat)
    assert normal.std == (1.0, 1.0)
    assert all(math.isclose(mean, 0.2) for mean in normal.mean)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cifar-10", "Did you mean 'cifar10'? Choose from: cifar10, cifar100, digits"),
        ("folder:", "no set of images is called 'folder:'"),
        ("npz: ", "Choose from"),
        ("folder:\0", "no set of images"),
        ("\0", "no set of images"),
        ("folder:nowhere", "folder:nowhere: there is no such folder"),
        ("npz:nowhere.npz", "cannot read nowhere.npz: No such file"),
        ("npz:.", "cannot read ."),
        ("x" * 4000, "no set of images"),
    ],
)
def test_unknown_names(name: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        load_quietly(name=name)
    assert said in str(caught.value)


def test_a_path_without_its_kind_is_understood(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"say folder:{tmp_path}"):
        load_quietly(name=str(tmp_path))
    path = npz_file(tmp_path / "set.npz")
    with pytest.raises(UserError, match=f"say npz:{path}"):
        load_quietly(name=str(path))


def test_roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRNAS_DATA", str(tmp_path / "mine"))
    assert default_root() == tmp_path / "mine"
    with pytest.raises(UserError, match=r"data\.root: there is no folder"):
        load_quietly(name="cifar10", root=str(tmp_path / "nowhere"))
    assert list(tmp_path.iterdir()) == []
    assert is_absent("cifar10", None)
    assert is_absent("cifar10", str(tmp_path / "other"))
    assert not is_absent("digits", None)
    assert not is_absent("folder:pictures", None)
    monkeypatch.delenv("PRNAS_DATA")
    assert "prnas" in default_root().parts


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.floats(0.01, 0.99))
def test_the_automatic_split_takes_the_same_share_of_every_class(
    kinds: list[int], share: float
) -> None:
    labels = np.repeat(np.array(kinds), 2)
    keys = [str(number).encode() for number in range(len(labels))]
    train, test = stratified(labels, keys, share, "abcd")
    assert sorted([*train, *test]) == list(range(len(labels)))
    for label in set(kinds):
        number = int((labels == label).sum())
        assert (labels[test] == label).sum() == min(max(round(number * share), 1), number - 1)


def test_workers_load_no_torch() -> None:
    program = "import sys, prnas.data.workers; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout == "False\n"
