"""The file that says how to cite prnas stays true."""

from pathlib import Path
from typing import Any

import yaml

import prnas

TOP = Path(__file__).parents[1]


def cited() -> dict[str, Any]:
    return yaml.safe_load((TOP / "CITATION.cff").read_text(encoding="utf-8"))


def test_it_has_what_the_format_needs_and_this_version() -> None:
    data = cited()
    assert data["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= data.keys()
    assert data["version"] == prnas.__version__
    assert data["license"] == "MIT"


def test_readme_and_the_file_cite_the_same_paper() -> None:
    (paper,) = cited()["references"]
    text = (TOP / "README.md").read_text(encoding="utf-8")
    (identifier,) = paper["identifiers"]
    number = identifier["value"].removeprefix("arXiv:")
    assert f"https://arxiv.org/abs/{number}" in text
    bibtex = text.partition("```bibtex")[2].partition("```")[0]
    assert number in bibtex
    assert f"year = {{{paper['year']}}}" in bibtex
    names = [f"{author['family-names']}, {author['given-names']}" for author in paper["authors"]]
    assert " and ".join(names) in bibtex
