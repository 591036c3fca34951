"""Streams: one endless order, however it is cut."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from prnas.data.storage import InMemory
from prnas.data.streams import Stream
from prnas.io.errors import UserError
from tests.support.made_data import images

SET = images(23)
sizes = st.lists(st.integers(1, 40), min_size=1, max_size=6)


class Watched(InMemory):
    """Remembers which indices were asked for."""

    def __init__(self) -> None:
        super().__init__(SET.pixels, SET.labels)
        self.fetched: list[int] = []
        self.hinted: list[int] = []

    def fetch(self, indices: Tensor) -> Tensor:
        self.fetched += indices.tolist()
        return super().fetch(indices)

    def ahead(self, indices: Tensor) -> None:
        self.hinted = indices.tolist()


def taken(cuts: Sequence[int], indices: Tensor, seed: int = 1) -> list[int]:
    watched = Watched()
    stream = Stream(watched, indices, seed)
    for number in cuts:
        stream.next(number)
    return watched.fetched


@given(sizes, st.integers(1, 23), st.integers(0, 2**40))
def test_the_order_does_not_depend_on_the_batches(cuts: list[int], number: int, seed: int) -> None:
    indices = torch.arange(23)[:number]
    order = taken(cuts, indices, seed)
    assert order == taken([sum(cuts)], indices, seed) == taken([1] * sum(cuts), indices, seed)
    for start in range(0, len(order) - number + 1, number):
        assert sorted(order[start : start + number]) == indices.tolist()  # each pass, each once


@given(sizes, sizes)
def test_a_saved_position_goes_on_exactly_and_rewinds(before: list[int], after: list[int]) -> None:
    indices = torch.arange(3, 20)
    stream = Stream(SET, indices, 5)
    for number in before:
        stream.next(number)
    state = stream.state()
    assert 0 <= state["position"] < len(indices)
    assert state["passes"] * len(indices) + state["position"] == sum(before)
    first = [stream.next(number) for number in after]
    stream.load_state(state)
    again = [stream.next(number) for number in after]
    other = Stream(SET, indices, 5)
    other.load_state(state)
    fresh = [other.next(number) for number in after]
    for one, two, three in zip(first, again, fresh, strict=True):
        for a, b, c in zip(one, two, three, strict=True):
            assert torch.equal(a, b)
            assert torch.equal(a, c)


@given(st.integers(1, 20), st.integers(1, 4), st.integers(1, 5))
def test_the_processes_slices_are_one_process_batch(number: int, world: int, steps: int) -> None:
    indices = torch.arange(17)
    alone = Stream(SET, indices, 9)
    ranks = [Stream(SET, indices, 9, rank, world) for rank in range(world)]
    for _ in range(steps):
        whole = alone.next(number * world)
        parts = [stream.next(number) for stream in ranks]
        assert torch.equal(whole[0], torch.cat([part[0] for part in parts]))
        assert torch.equal(whole[1], torch.cat([part[1] for part in parts]))
        assert {tuple(stream.state().values()) for stream in ranks} == {
            tuple(alone.state().values())
        }


def test_labels_belong_to_the_images_and_passes_differ() -> None:
    watched = Watched()
    stream = Stream(watched, torch.arange(23), 0)
    pixels, labels = stream.next(23)
    assert torch.equal(SET.pixels[watched.fetched], pixels)
    assert torch.equal(SET.labels[watched.fetched], labels)
    assert watched.fetched != taken([23], torch.arange(23), seed=1)
    first, watched.fetched = watched.fetched, []
    assert stream.state() == {"passes": 1, "position": 0}
    stream.next(23)
    assert first != watched.fetched


def test_hints_tell_what_comes_next() -> None:
    watched = Watched()
    stream = Stream(watched, torch.arange(23), 0, rank=1, world_size=2)
    for _ in range(8):
        stream.next(3)
        hinted, watched.fetched = watched.hinted, []
        stream.next(3)
        assert hinted[:3] == watched.fetched


def test_mistakes() -> None:
    with pytest.raises(UserError, match="at least one image"):
        Stream(SET, torch.arange(0), 0)
    stream = Stream(SET, torch.arange(5), 0)
    for state in ({"passes": 0, "position": 5}, {"passes": -1, "position": 0}):
        with pytest.raises(UserError, match="same data"):
            stream.load_state(state)
    assert stream.state() == {"passes": 0, "position": 0}
    with pytest.raises(ValueError, match="at least one"):
        stream.next(0)
