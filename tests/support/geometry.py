"""Where the items of a picture are, and whether they touch."""

from prnas.drawing.picture import Box, Point, Rectangle, Text

ASCENT, DESCENT = 0.77, 0.22  # of letters, brackets and digits, in em


def extent(item: Box | Text) -> Rectangle:
    if isinstance(item, Box):
        return Rectangle(item.x, item.y, item.width, item.height)
    top = item.baseline - ASCENT * item.size
    return Rectangle(item.x, top, item.width, (ASCENT + DESCENT) * item.size)


def overlap(first: Rectangle, second: Rectangle, slack: float = 0.0) -> bool:
    return (
        first.x + slack < second.x + second.width
        and second.x + slack < first.x + first.width
        and first.y + slack < second.y + second.height
        and second.y + slack < first.y + first.height
    )


def inside(point: Point, area: Rectangle, slack: float = 0.01) -> bool:
    return (
        area.x + slack < point.x < area.x + area.width - slack
        and area.y + slack < point.y < area.y + area.height - slack
    )


def sampled(points: tuple[Point, ...], steps: int) -> list[Point]:
    """Points of a curve, `steps` and one of each of its Bezier segments."""
    samples: list[Point] = []
    for i in range(0, len(points) - 1, 3):
        corners = points[i : i + 4]
        for t in (k / steps for k in range(steps + 1)):
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            x = sum(w * p.x for w, p in zip(weights, corners, strict=True))
            y = sum(w * p.y for w, p in zip(weights, corners, strict=True))
            samples.append(Point(x, y))
    return samples
