"""Rows as a frame of pandas, which is no dependency: whoever has it gets frames."""

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

from prnas.io.errors import UserError


def frame_of(rows: Iterable[Mapping[str, Any]]) -> Any:
    """A `pandas.DataFrame` of these rows; a `UserError` if pandas is not installed."""
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        raise UserError(
            "frames need pandas, which is not installed: pip install pandas; the method `rows` "
            "gives the same as plain dictionaries"
        ) from None
    return pandas.DataFrame(list(rows))
