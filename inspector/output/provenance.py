"""Print how and when the figures that follow were taken."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ..job.job import Subject


def print_how(subject: Subject, console: Console) -> None:
    """How and when the figures that follow were taken."""
    console.print(Text(f"{subject.how} ({subject.taken})", style="dim"))
