"""Names in a model card have no power over what is around them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.fitting.model_card import safe


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("cat", "cat"),
        ("12.5 % (of 3)", "12\\.5 % (of 3)"),
        ("a|b", "a\\|b"),
        ("<img src=x>", "\\<img src=x\\>"),
        ("[x](http://y)", "\\[x\\](http://y)"),
        ("# head", "\\# head"),
        ("- item", "\\- item"),
        ("two\nlines", "two\\\\nlines"),
        ("`code`", "\\`code\\`"),
    ],
)
def test_markup_is_shown_not_obeyed(name: str, shown: str) -> None:
    assert safe(name) == shown


@given(st.text())
def test_it_stays_on_its_line_and_in_its_cell(name: str) -> None:
    text = safe(name)
    assert len(text.splitlines()) <= 1
    plain = text.replace("\\\\", "").replace("\\|", "").replace("\\<", "").replace("\\`", "")
    assert not set("|<`") & set(plain)
