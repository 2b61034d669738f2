"""`rank threads`: which ranks that wait are in LLDB's thread list.

Takes a number or a set of ranks; LLDB has no such list to be chosen from, so only it has this command.
"""

from __future__ import annotations

from collections.abc import Iterator

from lldbext.selection.debugger import LldbDebugger
from lldbext.selection.session import SESSIONS
from pieglobalsfind.debugger.declare import Block, Command, Debugger, TextBlock
from pieglobalsfind.errors import UsageError
from pieglobalsfind.ranks import rankset

MOST = "--most"


def run(debugger: Debugger, text: str) -> Iterator[Block]:
    """Choose how many ranks LLDB shows as threads."""
    assert isinstance(debugger, LldbDebugger)
    session = debugger.session()
    words = text.split()
    moment = session.moment()
    if words[:1] == [MOST]:
        SESSIONS.most_threads = number(words[1:])
        session.list_threads()
    elif words:
        chosen = rankset.select(rankset.parse(" ".join(words)), moment.table, debugger.location)
        session.asked = dict.fromkeys(chosen)
        session.list_threads()
    yield TextBlock(session.threads_text(moment))


def number(words: list[str]) -> int:
    """Return the number after --most; raises `UsageError`."""
    if len(words) != 1 or not words[0].isdecimal() or len(words[0]) > 6:
        raise UsageError(f"{MOST} takes one number", "as in: rank threads --most 1000")
    return int(words[0])


COMMAND = Command(
    name="rank threads",
    arguments="[SET | --most N]",
    summary="Show or choose which waiting ranks are in the thread list.",
    description="All are as long as the process has no more than N ranks (64 unless set); of more ranks only those\n"
    f"that are asked for, here or by any other command. For SET {rankset.HINT}.",
    run=run,
    completes="ranks",
)
