"""`prnas truth`, as real processes."""

import json
from pathlib import Path

import pytest

from prnas.space.nasbench201.cells import genotype_of, index_of_string
from prnas.space.nasbench201.truth import truth_at
from tests.support.command_line import bad, good

STRING = "|nor_conv_3x3~0|+|none~0|avg_pool_3x3~1|+|skip_connect~0|nor_conv_1x1~1|skip_connect~2|"


def test_a_string_and_a_file_say_the_same(tmp_path: Path) -> None:
    text = good("truth", STRING)
    assert STRING in text
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    assert "93.16 %  1,051    1.21" in lines["CIFAR-10"]
    assert "69.37 %" in lines["CIFAR-100"]
    assert "42.19 %" in lines["ImageNet16-120"]
    file = tmp_path / "cell.json"
    file.write_text(genotype_of(index_of_string(STRING)).dumps())
    assert good("truth", str(file)) == text


def test_json() -> None:
    data = json.loads(good("truth", STRING, "--json"))
    assert data == {"cell": STRING, **truth_at(index_of_string(STRING)).to_json()}
    assert data["string"] == STRING
    assert data["cells"] == 15_625
    assert data["data_sets"]["cifar10"] == {
        "test": 93.163,
        "validation": 89.88,
        "test_12": 87.44,
        "validation_12": 81.884,
        "rank": 1051,
        "regret": 1.21,
        "parameters": 344_346,
        "macs": 47_104_640,
    }


def test_several_cells_and_their_mean(tmp_path: Path) -> None:
    file = tmp_path / "cell.json"
    file.write_text(genotype_of(0).dumps())
    text = good("truth", STRING, "cell.json", cwd=tmp_path)
    assert [STRING, "93.16", "69.37", "42.19", "1,051", "1.21"] in map(str.split, text.splitlines())
    assert "mean ± sd, n = 2" in text
    mean = (93.163 + truth_at(0).data_sets["cifar10"].test) / 2
    assert f"{mean:.2f} ± " in text
    data = json.loads(good("truth", STRING, "cell.json", "--json", cwd=tmp_path))
    assert [one["cell"] for one in data] == [STRING, "cell.json"]
    assert [one["index"] for one in data] == [9911, 0]


def test_no_cell_at_all() -> None:
    assert "name a cell: '|op~0|" in bad("truth")


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (STRING.replace("none", "nun"), "no operation of NAS-Bench-201 is called 'nun'"),
        (STRING[1:], "a cell of NAS-Bench-201 must be |op~0|+|op~0|op~1|+|op~0|op~1|op~2|"),
        ("|\x1b[31m", "'|\\x1b[31m'"),
        ("darts-v1", "'darts-v1' is not a cell of NAS-Bench-201"),
        ("nowhere.json", "no published cell and no file is called 'nowhere.json'"),
        (".", "is not a run's folder"),
    ],
)
def test_what_is_no_cell_of_it(cell: str, said: str) -> None:
    message = bad("truth", cell)
    assert said in message
    assert message.count("\n") == 1
