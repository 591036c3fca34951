"""DejaVu Sans: how wide text is, and where it is cut."""

# Advance widths of DejaVu Sans in 1/2048 em, from the space to the tilde.
_ASCII_WIDTHS = (
    *(651, 821, 942, 1716, 1303, 1946, 1597, 563, 799, 799, 1024, 1716, 651, 739, 651, 690),
    *(1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 690, 690, 1716, 1716, 1716),
    *(1087, 2048, 1401, 1405, 1430, 1577, 1294, 1178, 1587, 1540, 604, 604, 1343, 1141, 1767),
    *(1532, 1612, 1235, 1612, 1423, 1300, 1251, 1499, 1401, 2025, 1403, 1251, 1403, 799, 690),
    *(799, 1716, 1024, 1024, 1255, 1300, 1126, 1300, 1260, 721, 1300, 1298, 569, 569, 1186),
    *(569, 1995, 1298, 1253, 1300, 1300, 842, 1067, 803, 1298, 1212, 1675, 1212, 1212, 1075),
    *(1303, 690, 1303, 1716),
)
_OTHER_WIDTHS = {"×": 1716, "−": 1716, "–": 1024, "—": 2048, "·": 651, "→": 1716, "…": 2048}
_UNKNOWN_WIDTH = 2048  # rather too wide than over the edge of its box
_UNITS_PER_EM = 2048


def text_width(text: str, size: float) -> float:
    """The width of `text` in DejaVu Sans of `size` points."""
    units = sum(
        _ASCII_WIDTHS[ord(char) - ord(" ")]
        if " " <= char <= "~"
        else _OTHER_WIDTHS.get(char, _UNKNOWN_WIDTH)
        for char in text
    )
    return units * size / _UNITS_PER_EM


def shortened(text: str, size: float, width: float) -> str:
    """`text` on one line, cut with an ellipsis where it would be wider than `width`."""
    line = " ".join(text.split())
    if text_width(line, size) <= width:
        return line
    while line and text_width(line + "…", size) > width:
        line = line[:-1]
    return line + "…"
