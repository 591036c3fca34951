"""Numbers as people read them."""

import math

UNKNOWN = "?"
UNITS = (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60), ("m", 60, "s", 1))


def duration(seconds: float | None) -> str:
    """'4.2 s', '3 m 20 s', '2 h 5 m', '3 d 4 h': two units at most."""
    if seconds is None or not math.isfinite(seconds):
        return UNKNOWN
    seconds = max(0.0, seconds)
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    rounded = round(seconds)
    for unit, size, smaller_unit, smaller_size in UNITS:
        if rounded >= size:
            return f"{rounded // size} {unit} {rounded % size // smaller_size} {smaller_unit}"
    return f"{rounded} s"


def memory(size: float) -> str:
    """Bytes: '812 MB', '1.2 GB'."""
    if not math.isfinite(size):
        return UNKNOWN
    return f"{size / 1e9:.1f} GB" if size >= 0.9995e9 else f"{size / 1e6:.0f} MB"


def percent(share: float | None) -> str:
    """A share of 1, in six characters: '45.6 %', '100 %'."""
    if share is None:
        return "-"
    return "100 %" if share >= 0.9995 else f"{100 * share:.1f} %"


def exact_percent(share: float) -> str:
    """A share of 1 with two decimals, as test errors are reported: '2.51 %'."""
    return f"{100 * share:.2f} %"


def rate(value: float) -> str:
    """A learning rate, in six characters."""
    return f"{value:.4f}" if value == 0 or value >= 0.001 else f"{value:.0e}"


def speed(per_second: float) -> str:
    if not math.isfinite(per_second):
        return UNKNOWN
    return f"{per_second:,.0f}" if per_second >= 10 else f"{per_second:.1f}"


def counted(number: int, noun: str) -> str:
    """'1 epoch', '2,000 epochs'."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
