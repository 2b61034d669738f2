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
    """`file` is its name beside the document, `content` SVG."""

    file: str
    content: str


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
        rows = "\n".join(measurement.as_row() for measurement in self.measurements)
        shown = "".join(f"\n![{self.title}]({picture.file})\n" for picture in self.pictures)
        return f"## {self.title}\n\n{self.how}\n\n| what | measured | target | |\n|---|---|---|---|\n{rows}\n{shown}"
