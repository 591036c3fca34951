"""What every method of prnas must do, whatever it is: a new one joins by being in `METHODS`."""

import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from prnas.config import recipes
from prnas.config.architecture import SAMPLING
from prnas.config.methods import METHODS, Method, method
from prnas.config.search import SearchConfig
from prnas.data.dataset import load
from prnas.runs.attempt import Outcome, attempt
from prnas.runs.batch_size import CpuProbe
from prnas.runs.context import RunContext
from prnas.runs.events import Callback, StepEvent
from prnas.runs.processes import Processes
from prnas.searching.api import resume, start
from prnas.searching.search import Search
from prnas.searching.steps import step_costs
from tests.support.in_process import Cli
from tests.support.settings import small_config
from tests.support.two_ranks import searched_by_two
from tests.support.watching import assert_same_run, last_state

TOP = Path(__file__).parents[2]
# A method that is a schedule, and nothing else, is DARTS in these searches; a searcher, and nothing
# else, trains as that does, and test_supernet_scorer.py has it.
DIFFERENT = [
    one
    for one in METHODS
    if (one.settings and one.settings.keys() != {"searcher"}) or one.name == "darts"
]
every_method = pytest.mark.parametrize("one", DIFFERENT, ids=lambda one: one.name)
# What only takes longer: of seven samples, each is computed as of two.
FEWER = {"rome": ["architecture.samples=2"]}
# Steps that read a batch of each half; the others read one half alone.
TWO_BATCHES = [
    one
    for one in DIFFERENT
    if one.settings.get("architecture", {}).get("step", "first-order")
    in ("first-order", "second-order", "oles", "multinomial")
]
CYCLES = [
    {"epochs": 2, "grace_epochs": 1, "morphisms": 1, "candidates": 3},
    {"epochs": 1, "grace_epochs": 0, "morphisms": 0, "candidates": 1},
]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Giving memory back takes longer than these searches do."""
    monkeypatch.setattr("prnas.runs.batch_size.give_back_memory", lambda: None)
    monkeypatch.setattr("prnas.runs.attempt.recover_memory", lambda: None)


def tiny(images: Path, one: Method, /, **changes: Any) -> SearchConfig:
    """A search of very few steps that is switched to a method."""
    usual: dict[str, Any] = {
        "schedule": {"cycles": CYCLES},
        "data": {"images": 32},
        "architecture": {"lr": 0.05},
        "evidence": {"measure": "none"},
        "searcher": {
            "budget": {"evaluations": 4},
            "controller": {"updates": 2, "batch": 2, "hidden": 4},
            "supernet": {"batches": 1, "finalists": 2},
        },
        "batch": {"min": 8, "multiple": 4, "max": 8},
    }
    overrides = [*one.overrides(), *FEWER.get(one.name, ())]
    return small_config(images, **{**usual, **changes}).override(overrides)


@every_method
def test_a_search_goes_on_from_the_midst_of_an_epoch_bit_for_bit(
    images: Path, tmp_path: Path, one: Method
) -> None:
    """After the grace epochs, where there is most to remember."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"

    class SaveAndCopy(Callback):
        steps = 0

        def on_step(self, step: StepEvent) -> None:
            self.steps += 1
            if self.steps == 3:
                os.kill(os.getpid(), signal.SIGUSR1)  # writes a checkpoint after the step
            elif self.steps == 4:
                shutil.copytree(whole, cut)

    start(tiny(images, one), runs=tmp_path, name="whole", callbacks=[SaveAndCopy()])
    position = last_state(cut)[0]["position"]
    assert (position["cycle"], position["epoch"], position["step"]) == (0, 1, 1)
    resume(cut)
    assert_same_run(cut, whole)


@every_method
def test_memory_that_runs_out_at_the_end_of_an_attempt_leaves_no_trace(
    images: Path, monkeypatch: pytest.MonkeyPatch, one: Method
) -> None:
    """As if it had run out at once: both ways the same images and random numbers come again.

    Each attempt of the second step fails once. Running statistics do not go back.
    """
    schedule = {"cycles": [{**CYCLES[0], "grace_epochs": 0}, CYCLES[1]]}
    batch = {"min": 2, "multiple": 2, "max": 8}
    config = tiny(images, one, batch=batch, schedule=schedule)
    searches: dict[str, Search] = {}
    failed: dict[str, list[tuple[str, ...]]] = {}

    def failing(when: str) -> Callable[..., Outcome]:
        failed[when] = []

        def attempted(run: Search, parts: Sequence[str], gradients: Callable[[], Outcome]) -> Any:
            def compute() -> Outcome:
                if run.state.position.step != 1 or tuple(parts) in failed[when]:
                    return gradients()
                failed[when].append(tuple(parts))
                if when == "at the end":
                    gradients()
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

            return attempt(run, parts, compute)

        return attempted

    for when in ("at once", "at the end"):
        for name, module in list(sys.modules.items()):
            if name.startswith("prnas.searching.") and hasattr(module, "attempt"):
                monkeypatch.setattr(module, "attempt", failing(when))
        searches[when] = three_steps(config)
    assert failed["at once"] == failed["at the end"] != []
    assert_same_search(searches["at once"], searches["at the end"])


@pytest.mark.parametrize("one", TWO_BATCHES, ids=lambda one: one.name)
def test_memory_that_runs_out_in_either_part_is_as_if_the_batch_had_been_smaller_from_there(
    images: Path, monkeypatch: pytest.MonkeyPatch, one: Method
) -> None:
    """In each part of the second step, and in each of its passes: nothing is left half applied.

    Compared with a search that never fails, and whose batch is halved right before that part. What
    came before in the same step is neither lost nor done twice. Running statistics do not go back.
    """
    schedule = {"cycles": [{**CYCLES[0], "grace_epochs": 0}, CYCLES[1]]}
    batch = {"min": 2, "multiple": 2, "max": 8}
    config = tiny(images, one, batch=batch, schedule=schedule)

    def searched(part: int, fails_in: int | None) -> tuple[Search, list[tuple[str, ...]], int]:
        """A search, the images that the parts of its second step read, and a part's passes."""
        read: list[tuple[str, ...]] = []
        passes = 0

        def attempted(run: Search, parts: Sequence[str], gradients: Callable[[], Outcome]) -> Any:
            if run.state.position.step != 1:
                return attempt(run, parts, gradients)
            read.append(tuple(parts))
            if len(read) - 1 != part:
                return attempt(run, parts, gradients)
            if fails_in is None:
                run.batch.batch = 4

            def count(*_: object) -> None:
                nonlocal passes
                passes += 1
                if passes - 1 == fails_in:
                    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

            # The last module of a pass: by then the images are read and the random numbers drawn.
            hook = run.state.supernet.classifier.register_forward_hook(count)
            try:
                return attempt(run, parts, gradients)
            finally:
                hook.remove()

        for name, module in list(sys.modules.items()):
            if name.startswith("prnas.searching.") and hasattr(module, "attempt"):
                monkeypatch.setattr(module, "attempt", attempted)
        return three_steps(config), read, passes

    for part in range(2):
        expected, read, passes = searched(part, None)
        assert len(read) == 2
        assert {"architecture", "weights"} == {name for parts in read for name in parts}
        assert passes
        for fails_in in range(passes):
            found, read_then, passes_then = searched(part, fails_in)
            assert read_then == read
            assert passes_then == fails_in + 1 + passes
            assert found.batch.batch == 4
            assert_same_search(found, expected)


def assert_same_search(ours: Search, theirs: Search) -> None:
    """All but running statistics: these have seen the images of a failed pass too."""
    assert ours.state.position == theirs.state.position
    tensors, other_tensors = ours.state.tensors(), theirs.state.tensors()
    assert tensors.keys() == other_tensors.keys()
    compared = [name for name in tensors if not re.search("running_|num_batches", name)]
    assert any("architecture" in name for name in compared)
    for name in compared:
        assert torch.equal(tensors[name], other_tensors[name]), name
    for name, generator in ours.state.generators.items():
        other = theirs.state.generators[name]
        assert torch.equal(generator.get_state(), other.get_state()), name
    for name, stream in ours.streams.items():
        assert stream.state() == theirs.streams[name].state(), name
    assert ours.step.state() == theirs.step.state()


def three_steps(config: SearchConfig) -> Search:
    """A search after its first steps, and after what the end of an epoch does."""
    processes = Processes(config.compute)
    data = load(config.images, processes.device, lambda _: None, 1e9)
    indices = Search.prepare(config, data, 1)
    search = Search(RunContext(config, data, indices, processes, CpuProbe(None), None))
    search.batch.batch = config.batch.max
    search.state.supernet.train()
    for _ in range(3):
        search.take_step()
        search.state.position.step += 1
        search.state.position.cycle_step += 1
    search.conclude_epoch()
    return search


@every_method
def test_two_processes_agree(images: Path, one: Method) -> None:
    batch = {"min": 4, "multiple": 1, "max": 4}
    searches = searched_by_two(tiny(images, one, batch=batch))
    first, second = (search.state.tensors() for search in searches)
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name
    assert searches[0].state.genotype == searches[1].state.genotype is not None
    assert searches[0].step.state() == searches[1].step.state()


# The costs by counted passes, which the time that is left is estimated by; all others have 1.
BY_PASSES = {"darts-2nd": 2.67, "snas": 0.67, "nasp": 0.5, "mdenas": 0.23, "gdas": 0.25}
BY_PASSES |= {"rome": 1.05, "pc-darts": 0.25, "oles": 1.33, "darts-pt": 0.67}
BY_PASSES |= {"random-shared": 0.17, "enas": 0.23}


@pytest.mark.parametrize("one", METHODS, ids=lambda one: one.name)
def test_it_is_described_as_it_is(one: Method) -> None:
    config = SearchConfig().override(one.overrides())
    architecture, weights = step_costs(config.architecture)
    parts = config.network.partial_channels
    by_passes = BY_PASSES.get(one.name, 1.0)
    assert (architecture + weights) / 1.5 / parts == pytest.approx(by_passes, abs=0.01)
    # What was measured is near it: steps of small operations cost more than they should.
    if parts == 1 and one.name != "enas":
        assert one.cost == pytest.approx(by_passes, rel=0.25)
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


PARTS = ["Idea", "Formula", "Settings", "Published", "Ours", "Differences"]


@pytest.mark.parametrize("one", METHODS, ids=lambda one: one.name)
def test_its_section_has_all_parts(one: Method) -> None:
    text = (TOP / "docs" / "methods.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {one.name}\n")[1].split("\n## ")[0]
    assert re.findall(r"^\*\*(\w+)\.\*\*", section, re.M) == PARTS
    idea = section.split("**Idea.**")[1].split("\n\n")[0]
    assert len(re.findall(r"\.(?=\s|$)", idea)) == 3  # sentences


RECIPES = ("quick", "darts-like", "cifar10-small", "nasbench201-small")


@every_method
def test_its_settings_switch_other_searches_to_it(one: Method) -> None:
    """Also those whose own step samples candidates, and which judge by paths."""
    for name in RECIPES:
        recipe = recipes.any_recipe(name)
        assert isinstance(recipe, SearchConfig)
        architecture = recipe.override(one.overrides()).architecture
        if one.name in ("p-darts", "random-shared", "enas"):
            continue
        assert architecture.step not in SAMPLING, name
        assert architecture.scoring == ("removal" if one.name == "darts-pt" else "weights"), name


def test_names_are_told_apart() -> None:
    assert len({one.name for one in METHODS}) == len(METHODS)
    assert method("snas") in METHODS


def test_the_command_lists_them(here: Cli) -> None:
    text = here.good("methods")
    assert all(one.name in text and one.line in text and one.authors in text for one in METHODS)
    assert "evidence.curvature" in text
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
        (["relaxation=max-w", "step=sampled-cells", "scoring=paths"], "such as first-order"),
        (["edge_weights=true", "step=sampled", "scoring=paths"], "such as first-order"),
        (["cost={of: macs, reference: 1M}", "step=none", "scoring=removal"], "such as first-order"),
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
