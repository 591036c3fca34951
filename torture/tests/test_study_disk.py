"""A study whose disk is full: one message, and with space again it goes on."""

from pathlib import Path

import pytest

from prnas.io.yaml_files import dump_yaml
from prnas.studies.folder import read_plan
from prnas.studies.states import read_states
from tests.support.make_runs import TRAINING
from tests.support.real_processes import finish, prnas
from torture.disk import can_mount, grow, small_disk


@pytest.mark.slow  # as all of disks
@pytest.mark.skipif(not can_mount(), reason="small disks need an administrator of Linux")
def test_a_full_disk_is_told_and_the_study_goes_on(tmp_path: Path) -> None:
    training = {**TRAINING, "training": {"epochs": 1}}
    (tmp_path / "training.yaml").write_text(dump_yaml(training))
    rows = [{"name": "c", "cell": "darts-v2"}]
    study = {"rows": rows, "seeds": 1, "retrain": "training.yaml"}
    (tmp_path / "tiny.yaml").write_text(dump_yaml(study))
    disk = tmp_path / "disk"
    words = ("study", "tiny.yaml", "--quiet", "--runs", disk)
    with small_disk(disk, 4):  # Not even for the plan.
        for size in (8, 80):  # Then for the plan, and not for the training.
            code, out, err = finish(prnas(*words, cwd=tmp_path))
            assert (code, err.count("prnas: ")) == (2, 1), out + err
            assert "No space left on device" in err
            assert "Traceback" not in out + err
            grow(disk, size)
        code, out, err = finish(prnas(*words, cwd=tmp_path))
        assert code == 2, out + err
        assert "No space left on device" in err
        assert "Traceback" not in out + err
        grow(disk, 20_000)
        code, out, err = finish(prnas(*words, cwd=tmp_path))
        assert (code, err) == (0, ""), out
        plan = read_plan(disk / "tiny")
        assert read_states(disk / "tiny", plan)[1].state == "done"
