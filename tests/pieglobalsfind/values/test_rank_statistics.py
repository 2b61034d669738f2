"""Statistics and sparklines of extreme numbers."""

from __future__ import annotations

import math

from pieglobalsfind.values.rank_statistics import sparkline, statistics_of


def test_extreme_numbers() -> None:
    found = statistics_of({0: "1.7e308", 1: "-1.7e308", 2: "inf", 3: "-nan(0x8000000000000)"})
    assert found is not None
    assert (found.mean, found.not_finite) == (0, (2, 3))
    assert math.isfinite(found.deviation)
    assert statistics_of({0: "1", 1: "<not allocated>"}) is None
    assert statistics_of({0: "inf"}) is None
    assert sparkline(["0", "7", "nan(0x1)", "3.5"]) == "▁█x▅"
    assert sparkline(["-1.7e308", "1.7e308"]) == "▁█"
    assert len(sparkline(map(str, range(1000)))) <= 60
