"""`rank print` in many ranks at once says what it says in each rank alone, and what LLDB's `expression` says there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.gdb.places import compile_program
from tests.support.lldb.session import Session
from tests.support.rank_print import by_rank, is_same
from tests.support.running import StartJob

RANKS = 9  # the last one runs
FEWER = ("0-2", "7-8")  # so few ranks are visited one by one
SELECTED = (2, 5)  # where LLDB itself is asked
EXPRESSIONS = {
    "rank": True,
    "shadowed": True,  # in even ranks a member of the object that the function is called for, in odd ones a local
    "hidden": True,
    "word": True,
    "ratio": True,
    "numbers": True,
    "numbers[2]": True,
    "node.number": True,
    "counted.own": True,
    "shape.size": True,
    "space::seen": True,
    "space::color": True,
    "letters": True,
    "several": True,
    "listed": True,
    "/x rank": True,
    "node": True,
    "node.next": True,
    "node.function": True,
    "start": True,
    "elsewhere": True,  # in rank 0 alone: other ranks have no name for what rank 0 has there
    "node.next->number": False,
    "alias": False,
    "held": False,
    "this->shadowed": False,
    "shadowed + held": False,
    "rank * 2 + 1": False,
    "no_such_name": False,
}


REFERENCE = re.compile(r"^ \(int &\) @0x[0-9a-f]+: ")
# LLDB's compiler finds `node` several times, in different copies, and no member of a namespace; and of a std::list it
# copies the head alone. `frame variable` has them.
COMPARE = f"""
from lldbext.lldb_api import value_text
from lldbext.selection.debugger import LldbDebugger

def own_frame(rank):
    ask(f"rank {{rank}}")
    while not (frame := target.GetProcess().GetSelectedThread().GetSelectedFrame()).GetLineEntry().IsValid():
        ask("up")
    return frame

def plainly(rank, form, expression):
    frame, options = own_frame(rank), lldb.SBExpressionOptions()
    options.SetAllowJIT(False)
    result = frame.EvaluateExpression(expression, options)
    if result.GetError().Fail() or "::list<" in result.GetTypeName():
        result = frame.GetValueForVariablePath(expression)
    return value_text.text(result, form) if result.IsValid() and result.GetError().Success() else "error: none"

for expression in EXPRESSIONS:
    form, _, rest = expression.rpartition(" ") if expression.startswith("/") else ("", "", expression)
    quick = sorted(LldbDebugger(debugger).values(range({RANKS}), rest, form))
    together = ask(f"rank print {{expression}} 0-{RANKS - 1}")
    alone = "".join(ask(f"rank print {{expression}} {{ranks}}") for ranks in {FEWER})
    plain = "".join(f"{{rank}}: {{plainly(rank, form, rest)}}\\n" for rank in {SELECTED})
    tell(expression, [quick, together, alone, plain])
"""


def test_as_in_each_rank_alone(session: Session, start_job: StartJob, rankrun: Path, tmp_path: Path) -> None:
    job = start_job(rankrun, "-n", RANKS, compile_program("rankcxx", tmp_path, "many.cpp"))
    job.wait_for("ready")
    answers = session.attach(f"EXPRESSIONS = {tuple(EXPRESSIONS)!r}\n{COMPARE}", job.pid)
    wrong = []
    for expression, is_quick in EXPRESSIONS.items():
        quick, together, alone, plain = answers[expression]
        if not is_same(together, alone) or bool(quick) != is_quick or not is_as_lldb(together, plain):
            wrong.append(f"{expression}, at once in {quick}:\n{together}instead of:\n{alone}{plain}")
    assert not wrong, "\n".join(wrong)


def is_as_lldb(together: str, plain: str) -> bool:
    """Whether the ranks' values are those of LLDB, whose expressions lead through references; or neither has one."""
    ours = {rank: REFERENCE.sub(" ", text) for rank, text in by_rank(together).items()}
    return all(
        ours[rank].startswith(" <") if text == " error: none" else ours[rank] == text
        for rank, text in by_rank(plain).items()
    )
