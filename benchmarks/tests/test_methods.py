"""The benchmark of methods knows each of them."""

from benchmarks.methods import config_of, trained
from prnas.config.methods import METHODS


def test_every_method_that_trains_a_supernet_takes_part_with_its_own_settings() -> None:
    names = [one.name for one in trained()]
    assert {"darts", "darts-2nd", "gdas", "pc-darts", "random-shared"} <= set(names)
    assert not {"evolution", "local-search"} & set(names)
    # What only has another schedule, or asks the table, is left out; everything else differs.
    darts = next(one for one in METHODS if one.name == "darts")
    plain = config_of(darts, 8)
    assert [one.name for one in trained() if config_of(one, 8) == plain] == ["darts"]
