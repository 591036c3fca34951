"""What a model card tells; names in it have no power over what is around them."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prnas.fitting.model_card import model_card, safe
from tests.support.made_fits import made_results, made_state
from tests.support.small_models import card, colour_card


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


def test_it_says_every_step_from_a_file_to_pixels_and_how_classes_were_weighed() -> None:
    state = made_state(Path("x.npz"))
    reasons = (("size", "8 x 8 pixels"), ("classes", "weighed by how few images they have"))
    state = replace(state, plan=replace(state.plan, reasons=reasons))
    for its in (colour_card(), card()):
        text = model_card(state, made_results(), its, ["net.onnx"])
        assert its.reading is not None
        for how in its.reading.values():
            assert f": {how}\n" in text
        assert f"- Mean: {list(its.mean)}; std: {list(its.std)}\n" in text
        assert "- Training, classes: weighed by how few images they have\n" in text
        assert "Training, size" not in text
    two = card(input_shape=(2, 5, 5), mean=(0.1, 0.2), std=(1.0, 2.0))
    assert "arrays of 2 channels" in model_card(state, made_results(), two, [])
