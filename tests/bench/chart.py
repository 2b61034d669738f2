"""A chart with logarithmic axes as SVG: lines through points, and nothing that needs a library or a script.

Takes names and numbers; gives text that browsers show as a picture.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 80, 45, 40, 60  # margins
COLOURS = ("#0b6e99", "#c2410c", "#4d7c0f")


@dataclass(frozen=True)
class Line:
    """Points (x, y) in ascending order, all above 0; `dashed` lines are for comparison and have no marks."""

    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`, both powers of ten, in pixels from `start` to `end`."""

    name: str
    low: int
    high: int
    start: float
    end: float

    @classmethod
    def around(cls, name: str, values: Sequence[float], start: float, end: float) -> Axis:
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        return cls(name, low, max(high, low + 1), start, end)

    def at(self, value: float) -> float:
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def decades(self) -> Iterator[tuple[float, str]]:
        """Place and text of each power of ten."""
        for power in range(self.low, self.high + 1):
            yield self.at(10.0**power), f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"


def chart(title: str, x_name: str, y_name: str, lines: Sequence[Line]) -> str:
    """The whole picture."""
    points = [point for line in lines for point in line.points]
    x = Axis.around(x_name, [one for one, _ in points], LEFT, WIDTH - RIGHT)
    y = Axis.around(y_name, [one for _, one in points], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        text(WIDTH / 2, 24, title, "middle", size=16),
        *axes(x, y),
        *(part for number, line in enumerate(lines) for part in drawn(line, number, x, y)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def axes(x: Axis, y: Axis) -> Iterator[str]:
    for place, label in x.decades():
        yield f'<path d="M{place:.1f} {y.start} V{y.end}" stroke="#ddd"/>'
        yield text(place, y.start + 18, label, "middle")
    for place, label in y.decades():
        yield f'<path d="M{x.start} {place:.1f} H{x.end}" stroke="#ddd"/>'
        yield text(x.start - 8, place + 4, label, "end")
    yield f'<path d="M{x.start} {y.end} V{y.start} H{x.end}" stroke="black" fill="none"/>'
    yield text((x.start + x.end) / 2, HEIGHT - 16, x.name, "middle")
    yield f'<g transform="translate(20 {(y.start + y.end) / 2:.1f}) rotate(-90)">{text(0, 0, y.name, "middle")}</g>'


def drawn(line: Line, number: int, x: Axis, y: Axis) -> Iterator[str]:
    places = [(x.at(one), y.at(other)) for one, other in line.points]
    colour = COLOURS[number % len(COLOURS)]
    dashes = ' stroke-dasharray="6 5"' if line.dashed else ""
    path = " L".join(f"{one:.1f} {other:.1f}" for one, other in places)
    yield f'<path d="M{path}" stroke="{colour}" stroke-width="2" fill="none"{dashes}/>'
    if not line.dashed:
        for (left, top), (value, other) in zip(places, line.points):
            told = f"<title>{value:,.0f}: {other:.3g}</title>"
            yield f'<circle cx="{left:.1f}" cy="{top:.1f}" r="4" fill="{colour}">{told}</circle>'
    row = TOP + 18 + 20 * number
    yield f'<path d="M{LEFT + 12} {row - 4} h28" stroke="{colour}" stroke-width="2"{dashes}/>'
    yield text(LEFT + 48, row, line.name, "start")


def text(left: float, top: float, words: str, anchor: str, size: int = 13) -> str:
    return f'<text x="{left:.1f}" y="{top:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(words)}</text>'
