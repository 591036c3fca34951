"""A small search and a small training end as those of an older release, to the bit."""

import json
from pathlib import Path

import pytest

from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.retraining import api as retraining
from prnas.runs.integrity import read_config_data
from prnas.runs.record_versions import header_line
from prnas.searching import api as searching
from tests.support.old_runs import OLD_RUNS, assert_repeats, rounds_alike

NAMES = ("search-finished", "training-finished")


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of new runs by the configs of old ones."""
    folder = tmp_path_factory.mktemp("golden")
    search, training = (read_config_data(OLD_RUNS / name / "config.yaml") for name in NAMES)
    searching.start(SearchConfig.from_data(search), runs=folder, name=NAMES[0])
    retraining.start(RetrainConfig.from_data(training), runs=folder, name=NAMES[1])
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_the_same_but_for_rounding(repeated: Path, name: str) -> None:
    assert_repeats(repeated / name, OLD_RUNS / name, exactly=False)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits(repeated: Path, name: str) -> None:
    if not rounds_alike():
        pytest.skip("another processor or version of PyTorch than the old runs': it rounds anew")
    assert_repeats(repeated / name, OLD_RUNS / name, exactly=True)


def test_new_runs_have_the_new_version_of_records(repeated: Path) -> None:
    text = (repeated / NAMES[0] / "records.jsonl").read_text()
    assert text.startswith(header_line())
    assert {json.loads(line).get("cycle") for line in text.splitlines()} == {1, 2, None}
