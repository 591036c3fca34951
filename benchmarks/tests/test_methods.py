"""The benchmark of methods knows each of them."""

from benchmarks.methods import config_of, trained
from prnas.config.methods import METHODS


def test_every_method_that_trains_a_supernet_takes_part_with_its_own_settings() -> None:
    names = [method.name for method in trained()]
    assert {"darts", "darts-2nd", "gdas", "pc-darts", "random-shared"} <= set(names)
    assert not {"evolution", "local-search"} & set(names)
    # What only has another schedule, or asks the table, is left out; everything else differs.
    darts = next(method for method in METHODS if method.name == "darts")
    plain = config_of(darts, 8)
    assert [method.name for method in trained() if config_of(method, 8) == plain] == ["darts"]
