from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.config import recipes
from prnas.io.errors import FormatError, UserError
from prnas.io.yaml_files import dump_yaml, parse_yaml
from prnas.studies.config import StudyConfig, read_study, ready_studies, ready_text
from prnas.studies.plan import make_plan

ROWS = [{"name": "a", "search": "quick"}, {"name": "b", "cell": "darts-v2"}]


def study(**changes: Any) -> StudyConfig:
    return StudyConfig.from_data({"rows": ROWS, **changes})


def problems(**changes: Any) -> str:
    with pytest.raises(FormatError) as error:
        make_plan(study(**changes))
    return str(error.value)


@pytest.mark.parametrize("name", ready_studies())
def test_every_ready_study_has_a_plan(name: str) -> None:
    config = read_study(name)
    assert config.description
    assert StudyConfig.from_data(parse_yaml(dump_yaml(config.to_data()))) == config
    assert make_plan(config).jobs
    assert name not in recipes.names(), "a name says what it is the recipe for"
    assert ready_text(name).startswith("#")


def test_the_quick_baselines_can_show_something() -> None:
    """With fewer seeds no difference could ever be significant after Holm's correction."""
    config = read_study("baselines-quick")
    assert [row.kind for row in config.rows] == ["search", "random", "cell"]
    assert config.seeds >= 5


def test_overrides_are_those_of_other_configs() -> None:
    config = study()
    changed = StudyConfig.from_data(config.to_data(), ["seeds=7", "rows.0.search=darts-like"])
    assert (changed.seeds, changed.rows[0].search) == (7, "darts-like")
    with pytest.raises(FormatError, match="no 'sedes'"):
        StudyConfig.from_data(config.to_data(), ["sedes=7"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": []}, "rows"),
        ({"seeds": 0}, "seeds"),
        ({"sedes": 3}, "Did you mean 'seeds'"),
        ({"rows": [{"name": "a"}]}, "this one has none"),
        ({"rows": [{"name": "a", "search": "quick", "cell": "x"}]}, "search and cell"),
        ({"rows": [{"name": "a", "cell": "x", "set": {"seed": 1}}]}, "a cell has none"),
        ({"rows": [{"name": "../a", "cell": "x"}]}, "a folder's name"),
        ({"rows": [{"name": "study.json", "cell": "x"}]}, "a file of the study itself"),
        ({"rows": [{**ROWS[0]}, {**ROWS[1], "name": "A"}]}, "two rows are called 'a'"),
        ({"trainings": 0}, "nothing to do"),
        ({"engine": "lokal"}, "no engine is called 'lokal'. Did you mean 'local'?"),
        ({"engine": {"name": "ray", "address": "ray://a:1"}}, "auto .* or HOST:PORT"),
        ({"engine": {"address": "auto"}}, "for the engine ray, and this one is local"),
        ({"engine": {"name": "ray", "adress": "auto"}}, "Did you mean 'address'"),
        ({"resources": {"gpus": 1.5}}, "a whole number or a share"),
    ],
)
def test_mistakes_in_the_file_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        study(**changes)


def test_an_engine_is_a_name_or_has_an_address() -> None:
    assert study().engine == study(engine="local").engine == study(engine={"name": "local"}).engine
    for address in ("auto", "10.0.0.1:6379", "head-1.cluster:6379", "[fe80::1]:6379"):
        engine = study(engine={"name": "ray", "address": address}).engine
        assert (engine.name, engine.address) == ("ray", address)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "search", "set", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*StudyConfig.model_fields, "x"]), plain, max_size=5))
def test_any_data_is_a_study_or_named_as_wrong(data: dict[str, Any]) -> None:
    with suppress(FormatError):
        StudyConfig.from_data({"rows": ROWS, **data})


def test_all_mistakes_of_all_rows_are_named_at_once() -> None:
    text = problems(
        rows=[
            {"name": "a", "search": "qick"},
            {"name": "b", "search": "quick", "set": {"network.cels": 3}},
            {"name": "c", "search": "retrain-quick"},
            {"name": "d", "cell": "darts-v9"},
        ],
        retrain="quick",
    )
    assert "row 'a': no recipe and no file is called 'qick'. Did you mean 'quick'" in text
    assert "row 'b': 'network.cels=3': no 'cels' in 'network'" in text
    assert "row 'c': 'retrain-quick' is a recipe for retrain" in text
    assert "row 'd': no published cell and no file is called 'darts-v9'" in text
    assert "retrain: 'quick' is a recipe for search" in text


def test_files_beside_the_study_are_found_and_its_data_goes_to_every_run(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("{network: {cells: 4}, data: {name: cifar10}}")
    config = study(
        rows=[{"name": "a", "search": "own.yaml", "set": {"data.images": 50}}],
        data={"name": "digits", "images": 100},
    )
    plan = make_plan(config, tmp_path)
    search, training = plan.rows[0].config, plan.retrain
    assert search is not None
    assert training is not None
    assert search.network.cells == 4
    assert (search.data.name, search.data.images) == ("digits", 50)
    assert (training.data.name, training.data.images) == ("digits", 100)
    with pytest.raises(FormatError, match="no recipe and no file"):
        make_plan(config)


def test_a_file_that_is_no_study(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no study .* Did you mean 'baselines-quick'"):
        read_study("baselines-quik")
    path = tmp_path / "search.yaml"
    path.write_text("network: {cells: 4}")
    with pytest.raises(UserError, match=r"search\.yaml: rows: a study needs them"):
        read_study(str(path))
    path.write_text("rows: [")
    with pytest.raises(UserError, match="line 1"):
        read_study(str(path))
