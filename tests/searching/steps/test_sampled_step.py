"""A step that trains sampled candidates only, from start to genotype."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from prnas.config import architecture as config
from prnas.nets.search_cell import ActiveCell
from prnas.runs.attempt import Outcome
from prnas.runs.run import Stopped
from prnas.searching import steps
from prnas.searching.api import resume, start
from prnas.searching.steps import FirstOrderStep, Part
from prnas.space.genotype import ROLES, Role
from tests.support.settings import small_config
from tests.support.watching import Watch, assert_same_run, folder_of, last_state


class SampledStep(FirstOrderStep):
    """One active candidate on every edge, drawn anew for each part of each step."""

    name = "sampled-both"

    def gradients(self, part: Part, *also: Part) -> Outcome:
        search, state = self.search, self.search.state
        images, labels = search.next_images(part)
        with state.timed(part), state.supernet.training_only(part):
            logits = state.supernet(images, state.generators["dropout"], self.sample())
            loss = F.cross_entropy(logits, labels)
            loss.backward()
            return Outcome.of(loss, logits, labels)

    def sample(self) -> dict[Role, ActiveCell]:
        state = self.search.state

        def draw(number: int) -> int:
            return int(torch.randint(number, (), generator=state.generators["dropout"]))

        pools = {role: state.supernet.pools.cell(role).edges for role in ROLES}
        return {role: tuple((draw(len(e.candidates)),) for e in pools[role]) for role in ROLES}


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    steps.register(SampledStep)
    yield
    config.STEPS.remove(SampledStep.name)
    del steps._CLASSES[SampledStep.name]


@pytest.mark.parametrize(
    ("at", "execution"),
    [  # before all weights have a momentum, and later
        pytest.param(2, "fused", marks=pytest.mark.slow),
        (2, "plain"),
        (9, "fused"),
        pytest.param(9, "plain", marks=pytest.mark.slow),
    ],
)
def test_a_stopped_search_goes_on_bit_for_bit(
    images: Path, tmp_path: Path, execution: str, at: int
) -> None:
    settings = small_config(
        images, architecture={"step": "sampled-both"}, compute={"supernet": execution}
    )
    whole = folder_of(start(settings, runs=tmp_path, name="whole"))
    stop = Watch(at, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(Stopped) as caught:
        start(settings, runs=tmp_path, name="cut", callbacks=[stop])
    folder = folder_of(caught.value)
    if at == 2:
        _, tensors = last_state(folder)
        weights = [name for name in tensors if name.startswith("supernet/cells")]
        weights = [name for name in weights if name.endswith(".weight")]
        momenta = [name for name in tensors if name.startswith("weights_optimizer/cells")]
        assert 0 < len(momenta) < len(weights)
    resume(folder)
    assert_same_run(folder, whole)
