"""Values as code: the code's value is the value, and it is laid out as formatters do."""

import ast
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from prnas.exporting.python_literals import Call, Value, Word, assigned, filled, quoted

texts = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\"'\\\n\r{}$#\u202e"))
values = st.recursive(
    texts | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.integers(), inner) | st.tuples(inner, inner),
    max_leaves=30,
)


@given(texts)
def test_no_text_leaves_its_quotes(text: str) -> None:
    assert ast.literal_eval(quoted(text)) == text
    assert quoted(text).isprintable()


@given(values)
def test_the_code_has_the_value(value: Value) -> None:
    tree = ast.parse(assigned("x", value, "what it is")).body[0]
    assert isinstance(tree, ast.Assign)
    assert ast.literal_eval(tree.value) == value


@given(st.lists(texts, min_size=1))
def test_long_lists_are_filled(listed: list[str]) -> None:
    code = filled("x", listed)
    tree = ast.parse(code).body[0]
    assert isinstance(tree, ast.Assign)
    assert ast.literal_eval(tree.value) == listed


def test_formatters_have_nothing_to_add(tmp_path: Path) -> None:
    word, quotes = "ab" * 15, ["it's", 'a "b"', "'\"", "\n\t", "日本語" * 9, "\x00\xa0\u202e"]
    lines = [
        assigned("a", [word, word]),
        assigned("b", [word, word, word]),
        assigned("c", quotes),
        assigned("d", {2: [(word, 0), (word, 1)], 3: [(3 * word, 0), ("x", 1)]}, "a comment"),
        assigned("e", {"f": Call("partial", Word("g"), {"n": 1})}),
        assigned("h", {word: Call("partial", Word("g"), {"n": [1, 2, 3], "m": word[:20]})}),
        assigned("i", {word: Call("partial", Word("g"), {"n": list(range(40))})}),
        assigned("j", [0.1, 1e-09, 1e20], "short"),
        assigned("k", [0.123456789] * 6, "too long beside them, and so it goes above"),
    ]
    file = tmp_path / "values.py"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff", "format", "--isolated", "--diff", str(file)]
    done = subprocess.run(ruff, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
