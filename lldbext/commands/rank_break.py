"""`rank break LOCATION [SET] [if COND]`: a breakpoint that stops certain ranks only.

Takes LLDB's own breakpoints; a callback says whether a rank that hits one stops. The condition is evaluated with the
variables of the rank that hits it, those of other source files too, which LLDB's own conditions get wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Optional

import lldb

from lldbext.breakpoints import lifecycle
from lldbext.lldb_api.run_commands import execute, warnings
from lldbext.selection.debugger import LldbDebugger, evaluated
from lldbext.selection.session import SESSIONS, Session
from pieglobalsfind.debugger import breakpoint_arguments
from pieglobalsfind.debugger.declare import Block, Command, Debugger, TextBlock
from pieglobalsfind.errors import NotVirtualizedError, TargetError, UsageError
from pieglobalsfind.model import Absent
from pieglobalsfind.ranks import rankset
from pieglobalsfind.session.process_view import ProcessView


def run(debugger: Debugger, text: str) -> Iterator[Block]:
    """Set a breakpoint for the ranks of a set."""
    assert isinstance(debugger, LldbDebugger)
    asked = breakpoint_arguments.parse(text)
    target = debugger.sb_debugger.GetSelectedTarget()
    if not target.IsValid():
        raise TargetError("there is no program", "name it first: target create PROGRAM")
    numbers = numbers_of(debugger, asked.chosen)
    with suppress(NotVirtualizedError, TargetError):  # there are no copies yet
        lifecycle.place_all(debugger.session())
    before = target.GetNumBreakpoints()
    output = execute(debugger.sb_debugger, f"_regexp-break {asked.location}")
    if target.GetNumBreakpoints() == before:
        raise UsageError(f"LLDB set no breakpoint at {asked.location}", "for instance: rank break solver.c:81 0-3")
    made = target.GetBreakpointAtIndex(before)
    if numbers or asked.condition:
        extra = lldb.SBStructuredData()
        extra.SetFromJSON(_as_stream({"ranks": numbers, "condition": asked.condition}))
        made.SetScriptCallbackFunction(f"{__name__}.on_hit", extra)
    yield TextBlock(output.strip())
    with suppress(NotVirtualizedError, TargetError):
        for line in lifecycle.spare_tasks(debugger.session(), debugger.moment()):
            yield TextBlock(line)


def _as_stream(facts: dict[str, str]) -> Any:
    stream = lldb.SBStream()
    stream.Print(json.dumps(facts))
    return stream


def numbers_of(debugger: LldbDebugger, chosen: str) -> str:
    """The set in numbers, as it is now; "" for all ranks."""
    if chosen in ("", "all"):
        return ""
    parsed = rankset.parse(chosen)
    if all(isinstance(item, rankset.Span) for item in parsed):
        with suppress(NotVirtualizedError, TargetError):  # there are no ranks yet
            rankset.check_may_exist(parsed, debugger.moment().table)
        return chosen
    numbers = rankset.compact(rankset.select(parsed, debugger.moment().table, debugger.location))
    if not numbers:
        raise UsageError(f"no rank is in {chosen}", rankset.HINT)
    return numbers


def on_hit(frame: Any, location: Any, extra: Any, internal_dict: Any) -> bool:
    """LLDB calls this at a hit; False: the process goes on."""
    with warnings("the breakpoint stops, whatever its ranks and its condition are"):
        session = SESSIONS.of(frame.GetThread().GetProcess())
        rank = rank_of(session.moment(), frame)
        numbers, condition = _word_of(extra, "ranks"), _word_of(extra, "condition")
        if rank is None or (numbers and not breakpoint_arguments.is_in(rank, numbers)):
            return False
        return not condition or is_true(session, rank, frame, condition)
    return True


def rank_of(moment: ProcessView, frame: Any) -> Optional[int]:
    """The rank whose frame it is: by its code, and in code of all ranks by its stack."""
    owner = moment.translator.owner(frame.GetPC())
    return owner.rank if owner.rank is not None else moment.translator.owner(frame.GetSP()).rank


def _word_of(extra: Any, name: str) -> str:
    return str(extra.GetValueForKey(name).GetStringValue(4096))


def is_true(session: Session, rank: int, frame: Any, condition: str) -> bool:
    """With the variables of the rank; a condition that can't be evaluated stops, as LLDB's own do."""
    session.modules.focus(session.moment(), rank)
    value = evaluated(frame, condition)
    if isinstance(value, Absent):
        print(f"error in the condition {condition!r}: {value.reason}")
        return True
    return bool(value.GetValueAsUnsigned())


COMMAND = Command(
    name="rank break",
    arguments="LOCATION [SET] [if COND]",
    summary="Set a breakpoint that stops certain ranks only.",
    description="Without SET it stops every rank. COND means what it means in the rank that stops.\n"
    f"For SET {rankset.HINT}.",
    run=run,
)
