"""From a request to a plan, on the embedded digits and with times that are said."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prnas.config.retrain import RetrainConfig
from prnas.config.search import SearchConfig
from prnas.data.dataset import DataSet, load
from prnas.fitting import configs, fit
from prnas.fitting.api import make_request
from prnas.fitting.configs import Contender
from prnas.fitting.folder import FitState
from prnas.fitting.measure import Meter
from prnas.fitting.plan import ladder
from prnas.io.errors import UserError
from prnas.models.inference import choose_device
from prnas.models.model import network_of, save_model
from prnas.space.latency import LatencyTable, key
from prnas.space.nasbench201.cells import genotype_of, index_of_string
from prnas.space.network_size import network_size
from prnas.space.resnet import resnet_size
from tests.support.made_fits import IMAGES, SaidMeter
from tests.support.settings import small_config, small_training, write_images
from tests.support.small_models import colour_card


def plan_of(minutes: float = 60.0, **options: object) -> FitState:
    return fit.plan_only(make_request("digits", minutes, **options), meter=SaidMeter())


def test_the_state_goes_to_a_file_and_back() -> None:
    state = plan_of()
    assert FitState.from_json(json.loads(json.dumps(state.to_json()))) == state
    assert state.task.train == 1438
    assert state.task.test_images == 359
    assert {"size", "network", "search", "trainings", "augment"} <= set(dict(state.plan.reasons))
    assert "359 held out" in state.look[0]


def test_configs_are_those_of_the_plan() -> None:
    state = plan_of()
    search = SearchConfig.from_data(state.search)
    assert search.data.name == "digits"
    assert (search.network.cells, search.network.channels) == state.plan.rung.search
    trained: list[RetrainConfig] = []
    for name in ("zoo", "plain"):
        one = Contender.from_json(state.contenders[name])
        trained.append(
            configs.training_config(one, 7, state.plan.rung.size, state.task, state.request)
        )
    zoo, plain = trained
    assert (zoo.training, zoo.data, zoo.batch) == (plain.training, plain.data, plain.batch)
    assert (zoo.network.kind, plain.network.kind) == ("cells", "resnet")
    assert zoo.training.keep == "best"
    assert zoo.training.epochs == 7
    assert not zoo.data.flip


def test_the_plain_network_is_as_large_as_the_search_may_find_and_no_larger() -> None:
    """So that both are trained for about as many epochs in the same time."""
    state = plan_of()
    sizes: dict[str, Any] = {"input_channels": 1, "image_size": 8}
    all_convolutions = "|{0}~0|+|{0}~0|{0}~1|+|{0}~0|{0}~1|{0}~2|".format("nor_conv_3x3")
    largest = genotype_of(index_of_string(all_convolutions))
    for rung in ladder(state.task):
        cells, channels = rung.found
        most = network_size(largest, channels, cells, 10, **sizes).macs
        network = configs.contenders(rung, state.task, state.request, None)["plain"].network
        chosen = network["cells"], network["channels"]
        for blocks, channels in configs.PLAIN_SIZES:
            fits = resnet_size(channels, blocks, 10, **sizes).macs <= most
            assert fits == ((blocks, channels) <= chosen), rung


def test_limits_are_kept_by_all() -> None:
    request = make_request("digits", 60, max_params="30k", max_macs="400k")
    state = fit.plan_only(request, meter=SaidMeter())
    search = SearchConfig.from_data(state.search)
    assert (search.final.max_params, search.final.max_macs) == (30_000, 400_000)
    final, size = state.plan.rung.final, state.plan.rung.size
    assert (search.final.cells, search.final.channels) == final
    assert configs.within(configs.zoo_size(final, size, state.task), request)
    assert not configs.within(
        configs.zoo_size(plan_of().plan.rung.final, size, state.task), request
    )


class Slow(SaidMeter):
    """Every operation of the network takes 10 microseconds; what is around them, none."""

    def latencies(self, config: SearchConfig, data: DataSet, threads: int | None) -> dict[str, Any]:
        channels, height, width = data.shape
        network = config.final_network(data.num_classes, (channels, height, width))
        places = {
            key(op, place.plan.channels, *place.reads(source, network.shape)): 10_000
            for op in config.space.initial_pool
            for place in network.around[1]
            for source in (0, 1)
        }
        return LatencyTable(network, 0, places).to_json()


def test_a_latency_that_nothing_can_keep_is_refused_before_the_search() -> None:
    request = make_request("digits", 60, max_latency="0.1ms")
    said = r"--max-latency: no network that this fit could find can have at most 0\.1 ms: "
    with pytest.raises(UserError, match=rf"{said}the smallest one has 0\.18 ms\. Raise"):
        fit.plan_only(request, meter=Slow())


@pytest.mark.parametrize(("limit", "cells"), [("0.36ms", 6), ("0.35ms", 3), ("0.18ms", 3)])
def test_networks_are_as_large_as_their_latency_may_be(limit: str, cells: int) -> None:
    """With 6 operations a cell: more time must not choose networks that are refused then."""
    request = make_request("digits", 1000, max_latency=limit)
    state = fit.plan_only(request, meter=Slow())
    assert state.plan.rung.found[0] == cells
    assert SearchConfig.from_data(state.search).final.cells == cells
    largest = "the largest here" if cells == 6 else "the largest that keeps the limits"
    assert largest in dict(state.plan.reasons)["network"]


def test_images_are_as_large_as_limits_allow(tmp_path: Path) -> None:
    images = str(write_images(tmp_path / "large.npz", 300, size=64))
    assert fit.plan_only(make_request(images, 600), meter=SaidMeter()).plan.rung.size == 64
    state = fit.plan_only(make_request(images, 600, max_macs="5M"), meter=SaidMeter())
    assert state.plan.rung.size == 32
    assert "for larger ones do not keep the limits" in dict(state.plan.reasons)["size"]
    for size in (32, 48):  # There is no size between them.
        keeps = configs.within(configs.zoo_size((3, 4), size, state.task), state.request)
        assert keeps == (size == 32)
    with pytest.raises(UserError, match="the smallest network of the published cell, which is tr"):
        fit.plan_only(make_request(images, 600, max_macs="100k"), meter=SaidMeter())


def test_limits_of_a_fit_without_the_published_cell_are_not_the_published_cells(
    tmp_path: Path,
) -> None:
    given = colour_card(input_shape=(3, 8, 8))
    save_model(tmp_path / "model", network_of(given), given)
    images = write_images(tmp_path / "x.npz", 40)
    limit = "7k"  # The smallest published network has 7,558 parameters.
    request = make_request(str(images), 60, start_from=str(tmp_path), max_params=limit)
    state = fit.plan_only(request, meter=SaidMeter())
    assert list(state.contenders) == ["found", "given", "plain"]
    with pytest.raises(UserError, match="smallest network of the published cell"):
        fit.plan_only(replace(request, start_from=None), meter=SaidMeter())


def test_a_model_to_start_from_stands_for_a_network_that_was_not_searched(tmp_path: Path) -> None:
    given = colour_card(input_shape=(3, 8, 8))
    save_model(tmp_path / "model", network_of(given), given)
    images = write_images(tmp_path / "x.npz", 40)
    request = make_request(str(images), 60, start_from=str(tmp_path))
    state = fit.plan_only(request, meter=SaidMeter())
    assert list(state.contenders) == ["found", "given", "plain"]
    assert state.contenders["given"]["network"]["start_from"] == str(tmp_path)
    assert state.plan.rung.size == 8
    with pytest.raises(UserError, match="itself does not keep the limits"):
        fit.plan_only(replace(request, max_params="1k"), meter=SaidMeter())
    with pytest.raises(UserError, match="images of 3 channels, digits has those of 1"):
        fit.plan_only(replace(request, data="digits"), meter=SaidMeter())


def test_too_few_pictures_are_refused_in_words_of_a_fit(tmp_path: Path) -> None:
    request = make_request(str(write_images(tmp_path / "few.npz", 15)), 60)
    said = "15 pictures to train with are too few for a search: there must be at least 16, beside"
    with pytest.raises(UserError, match=said):
        fit.plan_only(request, meter=SaidMeter())
    fit.plan_only(make_request(str(write_images(tmp_path / "x.npz", 16)), 60), meter=SaidMeter())


def test_images_that_are_no_squares_become_squares(tmp_path: Path) -> None:
    """So that what is planned for is what is computed."""
    rows = np.random.default_rng(0).integers(0, 255, (40, 8, 20, 3), np.uint8)
    np.savez(tmp_path / "wide.npz", x_train=rows, y_train=np.arange(40) % 2)
    state = fit.plan_only(make_request(str(tmp_path / "wide.npz"), 60), meter=SaidMeter())
    assert state.plan.rung.size == 8
    assert "their own size" not in dict(state.plan.reasons)["size"]
    assert SearchConfig.from_data(state.search).data.image_size == 8
    zoo = Contender.from_json(state.contenders["zoo"])
    assert configs.training_config(zoo, 3, 8, state.task, state.request).data.image_size == 8


def test_what_is_no_number_of_minutes_is_refused() -> None:
    with pytest.raises(UserError, match="minutes must be a number, got 'soon'"):
        make_request("digits", "soon")  # pyright: ignore[reportArgumentType]


def test_steps_of_real_runs_are_measured(tmp_path: Path) -> None:
    images = write_images(tmp_path / "few.npz", IMAGES)
    meter = Meter()
    config = small_training(images, data={"validation": 0.2}, training={"keep": "best"})
    data = load(config.data, choose_device("cpu"))
    training = meter.training(config, data)
    search = meter.search(small_config(images), data)
    for each in (training.step, training.start, search.step):
        assert each > 0
    assert len(search.growth) == 3
    assert search.growth[0] == 1.0
