"""The numbers that config keys may have."""

from typing import Annotated

from pydantic import Field

Rate = Annotated[float, Field(gt=0, le=1_000, allow_inf_nan=False)]
Decay = Annotated[float, Field(ge=0, le=1_000, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, lt=1)]
Portion = Annotated[float, Field(ge=0, lt=1)]
Size = Annotated[int, Field(ge=1, le=1_000_000)]
