"""What every method of prnas must do, whatever it is: a new one joins by being in `METHODS`."""

import json
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from prnas.config import recipes
from prnas.config.methods import METHODS, Method, method
from prnas.config.search import SearchConfig
from prnas.runs.batch_size import BatchSize
from prnas.runs.run import Run, Stopped
from prnas.searching.api import resume, start
from prnas.searching.steps import step_costs
from tests.support.in_process import Cli
from tests.support.settings import small_config
from tests.support.two_ranks import searched_by_two
from tests.support.watching import Watch, assert_same_run, folder_of, last_state

TOP = Path(__file__).parents[2]
# A method that is a schedule, and nothing else, is DARTS in these searches.
DIFFERENT = [one for one in METHODS if one.settings or one.name == "darts"]
every_method = pytest.mark.parametrize("one", DIFFERENT, ids=lambda one: one.name)
CYCLES = [
    {"epochs": 3, "grace_epochs": 1, "morphisms": 1, "candidates": 3},
    {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1},
]


def tiny(images: Path, one: Method, /, **changes: Any) -> SearchConfig:
    """A search of very few steps that is switched to a method."""
    config = small_config(
        images,
        schedule={"cycles": CYCLES},
        data={"images": 64},
        architecture={"lr": 0.05},
        evidence={"measure": "none"},
        **changes,
    )
    return config.override(one.overrides())


@every_method
def test_a_stopped_search_goes_on_bit_for_bit(images: Path, tmp_path: Path, one: Method) -> None:
    """Stopped in the middle of an epoch after the grace epochs, where there is most to remember."""
    batch = {"min": 8, "multiple": 4, "max": 8}
    config = tiny(images, one, batch=batch)
    start(config, runs=tmp_path, name="whole")
    stop = Watch(10, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Stopped) as caught:
        start(config, runs=tmp_path, name="cut", callbacks=[stop])
    position = last_state(folder_of(caught.value))[0]["position"]
    assert (position["cycle"], position["epoch"], position["step"]) == (0, 2, 2)
    resume(tmp_path / "cut")
    assert_same_run(tmp_path / "cut", tmp_path / "whole")


@every_method
def test_memory_that_runs_out_at_the_end_of_an_attempt_leaves_no_trace(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one: Method
) -> None:
    """As if it had run out at once: both ways the same images and random numbers come again.

    Running statistics do not go back.
    """
    config = tiny(
        images,
        one,
        batch={"min": 8, "multiple": 4, "max": 16, "every": 1},
        schedule={"cycles": [{**CYCLES[0], "epochs": 2, "morphisms": 0, "candidates": 1}]},
    )
    real = Run.reading
    failed: dict[str, list[tuple[str, ...]]] = {"before": [], "after": []}

    @contextmanager
    def reading(self: Run[Any, Any, Any], parts: Any) -> Iterator[None]:
        first = self.state.position.step == 0 and self.state.position.epoch == 1
        fails = first and tuple(parts) not in failed[when]
        if fails:
            failed[when].append(tuple(parts))
        if fails and when == "before":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        with real(self, parts):
            yield
        if fails:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr(Run, "reading", reading)
    monkeypatch.setattr(BatchSize, "check", grown)
    states: list[tuple[dict[str, Any], dict[str, torch.Tensor]]] = []
    for when in ("before", "after"):
        states.append(last_state(folder_of(start(config, runs=tmp_path, name=when))))
    assert failed["before"] == failed["after"] != []
    (state, tensors), (other_state, other_tensors) = states
    assert state == other_state
    compared = [name for name in tensors if not re.search("running_|num_batches", name)]
    assert any("architecture" in name for name in compared)
    for name in compared:
        assert torch.equal(tensors[name], other_tensors[name]), name


def grown(self: BatchSize, index: str) -> bool:
    """The batch is as large as it may be, whatever the memory of this machine."""
    before, self.batch = self.batch, self.ceiling
    return before != self.batch


@every_method
def test_two_processes_agree(images: Path, one: Method) -> None:
    batch = {"min": 4, "multiple": 1, "max": 4}
    searches = searched_by_two(tiny(images, one, batch=batch), images)
    first, second = (search.state.tensors() for search in searches)
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name
    assert searches[0].state.genotype == searches[1].state.genotype is not None
    assert searches[0].step.state() == searches[1].step.state()


@pytest.mark.parametrize("one", METHODS, ids=lambda one: one.name)
def test_it_is_described_as_it_is(one: Method) -> None:
    config = SearchConfig().override(one.overrides())
    architecture, weights = step_costs(config.architecture)
    assert one.cost == pytest.approx((architecture + weights) / 1.5, abs=0.01)
    assert len(one.line) <= 66
    assert re.search(r"\b20[0-9]{2}\b", one.source)
    text = (TOP / "docs" / "methods.md").read_text(encoding="utf-8")
    assert f"\n## {one.name}\n" in text
    if one.recipe is None:
        return
    published = recipes.any_recipe(one.recipe).to_data()
    for section, keys in one.settings.items():
        for key, value in keys.items():
            found: Any = published
            for name in (*section.split("."), key):
                found = found[int(name) if name.isdecimal() else name]
            assert found == value or {**found, **value} == found, f"{section}.{key}"


def test_names_are_told_apart() -> None:
    assert len({one.name for one in METHODS}) == len(METHODS)
    assert method("snas") in METHODS


def test_the_command_lists_them(here: Cli) -> None:
    text = here.good("methods")
    assert all(one.name in text and one.line in text and one.authors in text for one in METHODS)
    listed = json.loads(here.good("methods", "--json"))
    assert [one["name"] for one in listed] == [one.name for one in METHODS]
    shown = here.good("methods", "snas")
    assert "prnas search snas" in shown
    assert "--set 'architecture.temperature={start: 1.0, end: 0.03}'" in shown
    assert "Did you mean 'snas'" in here.bad("methods", "snass")


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (["relaxation=multinomial"], "gradients would spoil"),
        (["step=multinomial"], "only relaxation 'multinomial' has"),
        (["relaxation=max-w", "step=sampled", "scoring=paths"], "nothing to mix"),
        (["relaxation=proximal", "step=none", "scoring=removal"], "choose by chance"),
        (["temperature={start: 1, end: 0.5}"], "no effect with relaxation 'softmax'"),
        (["relaxation=concrete", "temperature={start: 1, end: 0}"], "a temperature is above 0"),
        (["threshold=0.1"], "belongs to relaxation threshold"),
        (["transfer=0.1"], "belongs to step multinomial"),
        (["step=none", "scoring=removal", "resource_penalty=1"], "no effect with step 'none'"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(
    here: Cli, overrides: list[str], reason: str
) -> None:
    sets = [part for one in overrides for part in ("--set", f"architecture.{one}")]
    assert reason in here.bad("search", "quick", *sets)
    assert not Path("runs").exists()


def test_combinations_of_several_sections_are_refused_with_the_reason(here: Cli) -> None:
    second, half = "architecture.step=second-order", "compute.precision=16-mixed"
    assert "differences of gradients" in here.bad("search", "quick", "--set", second, "--set", half)
    warm = here.bad("search", "darts", "--set", "weights.warmup_epochs=50")
    assert "fewer than the epochs of every cycle (50)" in warm
