"""Jobs of the embedded runtime that stand still, with globals that tests know."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.running import ROOT, Job

SOURCES = ROOT / "tests" / "inspector" / "sources"


StartRanks = Callable[..., Job]
