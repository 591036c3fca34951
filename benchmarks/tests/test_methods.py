"""The benchmark of methods knows each of them."""

from pathlib import Path
from statistics import median

from benchmarks.methods import config_of, trained, write_csv
from benchmarks.results import RESULTS, read_records
from prnas.config.methods import METHODS


def test_every_method_that_trains_a_supernet_takes_part_with_its_own_settings() -> None:
    names = [method.name for method in trained()]
    assert {"darts", "darts-2nd", "gdas", "pc-darts", "random-shared"} <= set(names)
    assert not {"evolution", "local-search"} & set(names)
    # What only has another schedule, or asks the table, is left out; everything else differs.
    darts = next(method for method in METHODS if method.name == "darts")
    plain = config_of(darts, 8)
    assert [method.name for method in trained() if config_of(method, 8) == plain] == ["darts"]


def test_the_file_has_ratios_of_each_turn(tmp_path: Path) -> None:
    file = tmp_path / "steps.csv"
    seconds = {"darts": [2.0, 4.0], "gdas": [1.0, 1.0]}
    write_csv(file, {"time": seconds, "memory": {"darts": [10.0, 10.0], "gdas": [5.0, 20.0]}})
    assert file.read_text(encoding="utf-8").splitlines() == [
        "method,measure,turn,ratio",
        *("darts,time,1,1.0000", "darts,time,2,1.0000"),
        *("darts,memory,1,1.0000", "darts,memory,2,1.0000"),
        *("gdas,time,1,0.5000", "gdas,time,2,0.2500"),
        *("gdas,memory,1,0.5000", "gdas,memory,2,2.0000"),
    ]


def test_the_costs_that_are_shown_were_measured() -> None:
    ratios: dict[str, list[float]] = {}
    for record in read_records(RESULTS / "method-steps.csv"):
        if record["measure"] == "time":
            ratios.setdefault(record["method"], []).append(float(record["ratio"]))
    assert {method.name for method in trained()} == set(ratios)
    shown = {method.name: method.cost for method in METHODS if method.name in ratios}
    assert shown == {name: round(median(values), 2) for name, values in ratios.items()}
