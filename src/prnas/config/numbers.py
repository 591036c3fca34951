"""The numbers that config keys may have."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

Rate = Annotated[float, Field(gt=0, le=1_000, allow_inf_nan=False)]
Decay = Annotated[float, Field(ge=0, le=1_000, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, lt=1)]
Portion = Annotated[float, Field(ge=0, lt=1)]


def _number_or_auto(value: object) -> object:
    is_rate = type(value) in (int, float) and 0 < value <= 1_000  # pyright: ignore
    if value != "auto" and not is_rate:
        raise ValueError(f"must be above 0 and at most 1000, or 'auto', got {value!r:.60}")
    return value


# One message for both ways to be wrong.
RateOrAuto = Annotated[float | Literal["auto"], BeforeValidator(_number_or_auto)]
Size = Annotated[int, Field(ge=1, le=1_000_000)]
