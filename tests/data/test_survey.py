"""A look at a set of images before it is read: the same facts as those of the set itself."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from prnas.config.sections import ImagesConfig
from prnas.data.dataset import load
from prnas.data.survey import survey
from prnas.io.errors import UserError
from tests.support.made_data import picture, picture_folder


def facts_of(name: str, **settings: object) -> tuple[Any, ...]:
    found = survey(ImagesConfig(name=name, **settings))  # pyright: ignore
    return found.class_sizes, found.sides, found.channels, found.class_names


def test_a_folder(tmp_path: Path) -> None:
    root = picture_folder(tmp_path / "images", 10)
    picture(root / "dog" / "tall.jpg", size=(20, 70))
    picture(root / "dog" / "huge.png", size=(400, 300))
    (root / "dog" / "broken.png").write_bytes(b"no image")
    (root / "dog" / "notes.txt").touch()
    name = f"folder:{root}"
    sizes, sides, channels, names = facts_of(name, broken="skip")
    loaded = load(ImagesConfig(name=name, broken="skip"), torch.device("cpu"), lambda note: None)
    assert sum(sizes) == len(loaded.train) + 1  # the broken one is not noticed before it is read
    assert (sides, channels, names) == ((20, 30, 300), 3, loaded.class_names)
    assert facts_of(name, broken="refuse", test_share=0.5)[0] == (5, 7)


def test_a_grey_folder_with_a_part_to_test(tmp_path: Path) -> None:
    picture_folder(tmp_path / "images" / "train", 4, mode="L")
    picture_folder(tmp_path / "images" / "test", 2)
    assert facts_of(f"folder:{tmp_path}/images") == ((4, 4), (30, 30, 30), 1, ("cat", "dog"))


def test_a_folder_of_many_files_is_known_by_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = picture_folder(tmp_path / "images", 9)
    monkeypatch.setattr("prnas.data.survey.MOST_OPENED", 3)
    opened: list[Path] = []

    def look(path: Path) -> tuple[int, int, bool]:
        opened.append(path)
        return 8, 9, False

    monkeypatch.setattr("prnas.data.survey.look_at", look)
    assert facts_of(f"folder:{root}")[:3] == ((7, 7), (8, 8, 8), 3)
    assert len(opened) == 3
    assert {path.parent.name for path in opened} == {"cat", "dog"}


def test_arrays_and_sets_with_names(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    arrays = {"x_train": np.zeros((30, 6, 9, 3), np.uint8), "y_train": np.arange(30) % 3}
    np.savez(path, **arrays)
    # Classes without names may be anything, so that images are not taken for those of digits.
    assert facts_of(f"npz:{path}") == ((8, 8, 8), (6, 6, 6), 3, ())
    assert not survey(ImagesConfig(name=f"npz:{path}")).like_letters
    np.savez(path, **arrays, class_names=np.array(["0", "1", "2"]))
    assert facts_of(f"npz:{path}")[3] == ("0", "1", "2")
    assert survey(ImagesConfig(name=f"npz:{path}")).like_letters
    sizes, sides, channels, _ = facts_of("cifar10", root="/nowhere")  # nothing is looked for
    assert (sizes, sides, channels) == ((5_000,) * 10, (32, 32, 32), 3)
    assert survey(ImagesConfig(name="digits")).like_letters


def test_what_cannot_be_looked_at(tmp_path: Path) -> None:
    picture_folder(tmp_path / "images", 3)
    for path in (tmp_path / "images").rglob("*.png"):
        path.write_bytes(b"x")
    for name, said in (
        (f"folder:{tmp_path}/images", "none of its images can be read"),
        (f"folder:{tmp_path}/none", "there is no such folder. Say which images are meant"),
        (f"folder:{tmp_path}", "needs a folder of images for each of at least two classes"),
        ("folder:~nobody-here/x", "nobody of that name has a home folder"),
        ("npz:none.npz", "cannot read none.npz"),
        ("nothing", "no set of images is called 'nothing'"),
    ):
        with pytest.raises(UserError) as error:
            facts_of(name)
        assert said in str(error.value)
