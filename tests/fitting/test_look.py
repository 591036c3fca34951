"""What is said of the images: numbers, classes, copies, and the names of test images."""

from pathlib import Path

import pytest
import torch

from prnas.config.choosing import ImageFacts
from prnas.config.search import DataConfig
from prnas.data.dataset import DataSet, InMemory, load
from prnas.fitting.look import Copies, find_copies, names_in_test, sentences
from prnas.fitting.plan import Task
from prnas.fitting.variants import augmentation
from tests.support.made_data import images, picture_folder


def made(train: InMemory, test: InMemory) -> DataSet:
    return DataSet("made", train, test, ("cat", "dog", "moose"))


def test_copies_are_found_within_and_between_the_parts() -> None:
    train, test = images(12), images(6)
    assert find_copies(made(train, test)) == Copies()
    train.pixels[1] = train.pixels[0]  # of classes 0 and 1
    test.pixels[3] = train.pixels[6]  # both of class 0
    assert find_copies(made(train, test)) == Copies(2, 1, 2)


def test_it_is_said_in_sentences() -> None:
    train = InMemory(torch.zeros(30, 3, 4, 4, dtype=torch.uint8), torch.tensor([0] * 25 + [1] * 5))
    data = DataSet("made", train, images(10), ("cat", "dog"))
    facts = ImageFacts((25, 5), (4, 9, 20), 3, ("cat", "dog"))
    lines = sentences(facts, data, Copies(3, 2, 1), ["skipped 1 broken image: x.png"])
    text = " ".join(lines)
    assert "40 images of 2 classes: 30 to train with, 10 held out" in text
    assert "in colour; the short side is 4 to 20 pixels, 9 typically" in text
    assert "from 5 ('dog') to 25 ('cat') images to train with. That is uneven." in text
    assert "Skipped 1 broken image: x.png." in text
    assert "Copies of others, to the pixel: 3 images." in text
    assert "Among the training images, too: 2 test images (20 %)" in text
    assert "another class, so that one of the two is wrong: 1 image." in text
    clean = " ".join(
        sentences(ImageFacts((9, 9), (4, 4, 4), 1), made(images(9), images(3)), Copies())
    )
    assert "They are grey; the short side is 4 pixels." in clean
    assert "Every class has 3 images" in clean
    assert "No image is there twice." in clean


@pytest.mark.parametrize(("few", "uneven"), [(20, True), (21, False)])
def test_uneven_are_those_that_a_plan_weighs(few: int, uneven: bool) -> None:
    labels = torch.tensor([0] * 30 + [1] * few)
    train = InMemory(torch.zeros(len(labels), 3, 4, 4, dtype=torch.uint8), labels)
    facts = ImageFacts((30, few), (4, 4, 4), 3, ("cat", "dog"))
    text = " ".join(sentences(facts, DataSet("made", train, images(10), ("cat", "dog")), Copies()))
    assert ("That is uneven." in text) is uneven
    values, _ = augmentation(Task(facts, 10, ("found",)), 4)
    assert ("training.class_weights" in values) is uneven


def test_test_images_of_a_folder_have_their_files_names(tmp_path: Path) -> None:
    folder = picture_folder(tmp_path / "pictures", per_class=10)
    config = DataConfig(name=f"folder:{folder}", image_size=8, broken="skip")
    data = load(config, torch.device("cpu"), lambda note: None)
    names = names_in_test(config.name, config.test_share, data)
    assert len(names) == len(data.test)
    assert all((folder / name).is_file() for name in names)
    assert [data.class_names[label] for label in data.test.labels.tolist()] == [
        Path(name).parent.name for name in names
    ]
    first = names[0]
    (folder / first).write_bytes(b"no picture")
    data = load(config, torch.device("cpu"), lambda note: None)
    assert names_in_test(config.name, config.test_share, data) == names[1:]
    assert names_in_test("digits", 0.2, data)[0] == "test image 1"
