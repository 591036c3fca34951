"""Fixtures for tests of every folder; the conftest.py at the top takes them from here."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from prnas.nets.inheritance import INHERITANCE
from prnas.nets.operations import FASTER
from prnas.nets.plain import MODULES
from prnas.searching.api import start
from prnas.space.morphisms import MORPHISMS, Morphism, morphs
from prnas.space.operations import CATEGORIES, OPERATIONS, Pool
from tests.support.in_process import Cli
from tests.support.settings import small_config, write_images
from tests.support.watching import folder_of


@pytest.fixture
def here(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Cli:
    """The command line in an empty folder, which is also where data sets would be."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRNAS_DATA", str(tmp_path / "kept"))
    return Cli(capsys)


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("data") / "images.npz")


@pytest.fixture(scope="session")
def reference(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never stopped."""
    return folder_of(start(small_config(images), runs=tmp_path_factory.mktemp("reference")))


@pytest.fixture
def pooling_grows(monkeypatch: pytest.MonkeyPatch) -> Iterator[Morphism[Pool]]:
    """A morphism of another class than convolutions, as one's own may be."""
    made = Morphism(
        "grow pool",
        Pool,
        lambda pool, _: pool.kernel < 7,
        lambda pool: replace(pool, kernel=pool.kernel + 2),
    )
    monkeypatch.setitem(MORPHISMS, made.name, made)
    morphs.cache_clear()
    yield made
    morphs.cache_clear()


@pytest.fixture
def own_operations() -> Iterator[None]:
    """What a test registers is forgotten after it."""
    categories = list(CATEGORIES)
    with (
        patch.dict(OPERATIONS),
        patch.dict(MODULES),
        patch.dict(FASTER),
        patch.dict(MORPHISMS),
        patch.dict(INHERITANCE),
    ):
        yield
    CATEGORIES[:] = categories
    morphs.cache_clear()
