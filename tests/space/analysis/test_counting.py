from hypothesis import given
from hypothesis import strategies as st

from prnas.space.analysis.counting import by_distance, count_cells, count_convs, discoverable, links
from prnas.space.morphisms import MORPHISMS
from prnas.space.nasbench201.cells import OPERATIONS
from prnas.space.operations import Conv, Zero
from prnas.space.setting import PAPER_SETTINGS, SETTINGS, Limits, Setting
from tests.support.strategies import limits


def test_the_papers_counts() -> None:
    settings = {setting.name: setting for setting in PAPER_SETTINGS}
    counts = {name: count_convs(setting) for name, setting in settings.items()}
    assert counts == {"darts-like": 12, "depth-restricted": 32, "unrestricted": 73}
    with_dilated = {name: count_convs(one, dilated_1x1=True) for name, one in settings.items()}
    assert with_dilated == {"darts-like": 12, "depth-restricted": 36, "unrestricted": 80}
    sizes = {name: len(discoverable(setting)) for name, setting in settings.items()}
    assert sizes == {"darts-like": 15, "depth-restricted": 35, "unrestricted": 76}


def test_the_operations_of_nasbench201_are_there_or_grow() -> None:
    every = set(SETTINGS["nasbench201"].initial_pool)
    assert every == set(discoverable(SETTINGS["nasbench201"])) == set(OPERATIONS)
    assert set(discoverable(SETTINGS["nasbench201-growing"], 1)) == every - {Zero()}


def test_cells_of_a_space() -> None:
    assert count_cells(15) == 180 * 15**8
    assert f"{count_cells(15):.1e}" == "4.6e+11"
    assert f"{count_cells(8):.1e}" == "3.0e+09"
    assert count_cells(15) // count_cells(8) == 152  # the paper's "153 times", rounded up
    assert count_cells(3, num_nodes=1) == 9


@given(limits(), st.integers(0, 4))
def test_distances_are_shortest_paths(bounds: Limits, steps: int) -> None:
    setting = Setting("own", bounds, (Conv(bounds.kernel_min),))
    layers = by_distance(setting, steps)
    distance = {op: number for number, layer in enumerate(layers) for op in layer}
    assert sum(map(len, layers)) == len(distance)
    # Textbook relaxation of every edge: no morphism may shorten any distance.
    for parent, child, _ in links(setting, distance):
        assert distance[child] <= distance[parent] + 1
    for number, layer in enumerate(layers[1:], start=1):
        for op in layer:
            assert any(
                morphism.legal(parent, bounds) and morphism.apply(parent) == op
                for parent in layers[number - 1]
                for morphism in MORPHISMS.values()
            )
