"""What a benchmark hands back: named measurements, each with the target it is held to, if any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional


@dataclass(frozen=True)
class Measurement:
    """`limit` is the largest value that is still good, None if the value is only reported.

    A value of 0 or less is a difference of two that can't be told apart.
    """

    name: str
    value: float
    unit: str
    limit: Optional[float] = None

    @property
    def reached(self) -> bool:
        return self.limit is None or self.value <= self.limit

    def as_row(self) -> str:
        limit = "" if self.limit is None else f"at most {self.limit:g} {self.unit}"
        verdict = "" if self.limit is None else ("reached" if self.reached else "**missed**")
        measured = f"{self.value:.3g} {self.unit}" if self.value > 0 else "less than two runs differ"
        return f"| {self.name} | {measured} | {limit} | {verdict} |"


@dataclass(frozen=True)
class Picture:
    """`file` is its name beside the document, `content` SVG; `table` the same values in Markdown, if rows lack them."""

    title: str
    file: str
    content: str
    table: str = ""

    def as_markdown(self) -> str:
        shown = f"![{self.title}]({self.file})\n"
        return f"### {self.title}\n\n{self.table}\n{shown}" if self.table else shown


@dataclass(frozen=True)
class Result:
    title: str
    how: str
    measurements: tuple[Measurement, ...]
    pictures: tuple[Picture, ...] = ()

    @property
    def reached(self) -> bool:
        return all(measurement.reached for measurement in self.measurements)

    def as_markdown(self) -> str:
        rows = "".join(f"{measurement.as_row()}\n" for measurement in self.measurements)
        table = [f"| what | measured | target | |\n|---|---|---|---|\n{rows}"] if rows else []
        parts = [f"## {self.title}\n", f"{self.how}\n", *table, *map(Picture.as_markdown, self.pictures)]
        return "\n".join(parts)
