"""The benchmark of fits: which pictures it draws, and what it records."""

import csv
from collections import Counter
from pathlib import Path
from random import Random

from PIL import Image

from benchmarks.fits import COLUMNS, drawn, write_pictures, write_records
from prnas.fitting.folder import FitFolder
from prnas.runs.names import GENOTYPE
from prnas.space.nasbench201.cells import genotype_of, index_of_string
from tests.support.made_fits import NAMES, made_folder, made_results
from tests.support.settings import write_images


def test_it_draws_as_many_of_each_class() -> None:
    labels = [0, 1, 2, 1] * 20
    chosen = drawn(labels, 30, Random(0))
    assert Counter(labels[index] for index in chosen) == {0: 10, 1: 10, 2: 10}
    assert len(set(chosen)) == 30
    assert chosen == drawn(labels, 30, Random(0))
    assert chosen != drawn(labels, 30, Random(1))
    assert len(drawn(labels, 300, Random(0))) == len(labels), "no more than there are"


def test_pictures_are_files_of_the_set(tmp_path: Path) -> None:
    write_pictures("digits", 40, 0, tmp_path)
    train, test = (sorted((tmp_path / part).glob("*/*.png")) for part in ("train", "test"))
    assert Counter(file.parent.name for file in train) == {str(digit): 4 for digit in range(10)}
    assert len(test) == 359, "all, if there are fewer than wanted"
    assert Image.open(train[0]).size == (8, 8)


def test_a_record_for_each_network(tmp_path: Path) -> None:
    images = write_images(tmp_path / "few.npz", 12)
    (tmp_path / "runs" / "few").mkdir(parents=True)
    path = made_folder(images, tmp_path / "runs" / "few", "seed-1")
    made_folder(images, tmp_path / "runs" / "few", "seed-2")  # It is not done.
    folder = FitFolder(path)
    folder.write_results(made_results())
    folder.close()
    cell = "|{0}~0|+|{0}~0|{0}~1|+|skip_connect~0|{0}~1|{0}~2|".format("nor_conv_3x3")
    (path / "search").mkdir(exist_ok=True)
    (path / "search" / GENOTYPE).write_text(genotype_of(index_of_string(cell)).dumps())
    (path.parent / "seed-1.seconds.json").write_text("61.5")
    assert write_records(tmp_path / "runs", tmp_path / "out.csv") == 1
    with (tmp_path / "out.csv").open(newline="") as text:
        lines = list(csv.DictReader(text))
    assert tuple(lines[0]) == COLUMNS
    assert [line["network"] for line in lines] == list(NAMES)
    assert {line["seconds"] for line in lines} == {"61.5"}
    assert [line["best"] for line in lines] == ["1", "0", "0"]
    assert (lines[0]["cell"], lines[0]["true_accuracy"]) == (cell, "94.363")
    assert {line["cell"] for line in lines[1:]} == {""}
    assert lines[0]["p"] == "", "it is not compared with itself"
    assert (lines[1]["only_found"], lines[1]["only_other"]) == ("0", "3")
    assert {line["test_error"] for line in lines} == {"0.25"}
    assert {(line["error_low"], line["error_high"]) for line in lines} == {("0.09", "0.53")}
    assert {line["fit"] for line in lines} == {"few, seed 1"}
