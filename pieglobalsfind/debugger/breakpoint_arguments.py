"""What users ask for with `rank break`: `LOCATION [SET] [if COND]`, the same in every debugger.

Takes text; gives its parts. What a location and a condition are is the debugger's business.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pieglobalsfind.errors import UsageError
from pieglobalsfind.ranks import rankset

_IF = r"(?:^|\s+)if\s+"


@dataclass(frozen=True)
class StopRequest:
    """`chosen` is a set of ranks as it was written ("": all), `condition` is "" without one."""

    location: str
    chosen: str
    condition: str


def parse(text: str) -> StopRequest:
    """The parts of a request; raises `UsageError` if there is no location."""
    place, *conditions = re.split(_IF, text.strip(), maxsplit=1)
    location, _, last = place.strip().rpartition(" ")
    if not location or rankset.recognize(last) is None:
        location, last = place.strip(), ""
    if not location:
        raise UsageError("no location to break at is given", "for instance: rank break solver.c:81 0-3 if n > 10")
    return StopRequest(location.strip(), last, "".join(conditions).strip())


def is_in(rank: int, text: str) -> bool:
    """Whether a set that is written in numbers has the rank; raises `UsageError` if it is none such."""
    chosen = rankset.parse(text)
    spans = [item for item in chosen if isinstance(item, rankset.Span)]
    if len(spans) < len(chosen):
        raise UsageError(f"{text!r} has ranks that are not numbers", "write 3 or 0-3,7")
    return any(span.first <= rank <= span.last for span in spans)
