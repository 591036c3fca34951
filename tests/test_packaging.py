"""What a package index, a citation and an installation read agrees with the sources."""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import prnas
from prnas.io.yaml_files import parse_yaml

TOP = Path(prnas.__file__).parents[2]
# The target of a link or a picture, in Markdown or HTML.
TARGET = re.compile(r'(?:\]\(|(?:src|href)=")([^)"\s]+)')


def text(name: str) -> str:
    return (TOP / name).read_text(encoding="utf-8")


@cache
def pyproject() -> dict[str, Any]:
    return tomllib.loads(text("pyproject.toml"))


def readme_of_the_package() -> str:
    """The README as a package index gets it, by the rules of pyproject.toml."""
    shown = text("README.md")
    for rule in pyproject()["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"][
        "substitutions"
    ]:
        shown = re.sub(rule["pattern"], rule["replacement"], shown)
    return shown


def test_links_of_the_readme_exist() -> None:
    targets = [target for target in TARGET.findall(text("README.md")) if "://" not in target]
    assert targets
    missing = [target for target in targets if not (TOP / target.partition("#")[0]).exists()]
    assert missing == []


def test_pictures_and_links_are_absolute_on_a_package_index() -> None:
    repository = pyproject()["project"]["urls"]["Repository"]
    before, after = TARGET.findall(text("README.md")), TARGET.findall(readme_of_the_package())
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        if "://" in old or old.startswith("#"):
            assert new == old
        else:
            picture = Path(old).suffix in (".svg", ".png")
            kind = "raw" if picture else "blob"
            assert new == f"{repository}/{kind}/v$HFPR_VERSION/{old}"


def test_all_addresses_are_those_of_one_repository() -> None:
    repository = pyproject()["project"]["urls"]["Repository"]
    files = ["pyproject.toml", "README.md", "CITATION.cff", "SECURITY.md"]
    addresses = {
        address
        for file in files
        for address in re.findall(r"https://github\.com/[\w.-]+/prnas\b", text(file))
    }
    assert addresses == {repository}


def test_the_version_to_cite_is_this_one() -> None:
    citation = parse_yaml(text("CITATION.cff"))
    assert citation["version"] == prnas.__version__
    assert f"version = {{{prnas.__version__}}}" in text("README.md")
    assert citation["title"] in text("README.md")


def test_authors_are_those_of_the_licence() -> None:
    (author,) = [one["name"] for one in pyproject()["project"]["authors"]]
    assert re.search(rf"^Copyright \(c\) \d+ {re.escape(author)}$", text("LICENSE"), re.MULTILINE)
    assert parse_yaml(text("CITATION.cff"))["authors"] == [{"name": author}]
    assert f"{{{{{author}}}}}" in text("README.md")


def test_everything_that_is_declared_is_pinned() -> None:
    project = pyproject()["project"]
    declared = [*project["dependencies"], *pyproject()["build-system"]["requires"]]
    declared += [line for lines in project["optional-dependencies"].values() for line in lines]
    pins = [
        Requirement(line)
        for line in text("constraints.txt").splitlines()
        if not line.startswith("#")
    ]
    versions = {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in pins}
    for requirement in map(Requirement, declared):
        if requirement.name != "prnas":
            version = versions[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version), requirement


@pytest.mark.parametrize("file", [".github/workflows/tests.yml", "Containerfile"])
def test_no_released_python_is_left_behind(file: str) -> None:
    """The workflow tests, and the container uses, Pythons that the package is for."""
    least = pyproject()["project"]["requires-python"].removeprefix(">=")
    named = re.findall(r"3\.\d+", text(file))
    assert least in named
    assert min(int(version.removeprefix("3.")) for version in named) == int(least[2:])


def test_classifiers_name_pythons_that_the_workflow_tests() -> None:
    classifiers = pyproject()["project"]["classifiers"]
    pythons = re.findall(r"Python :: (3\.\d+)", "\n".join(classifiers))
    (matrix,) = re.findall(r"python: \[(.*)\]", text(".github/workflows/tests.yml"))
    assert pythons
    assert set(pythons) <= set(re.findall(r"3\.\d+", matrix))
