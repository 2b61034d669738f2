"""`rank print` in many ranks at once says what it says in each rank alone: there LLDB goes to the rank's frames."""

from __future__ import annotations

from pathlib import Path

from tests.support.gdb.places import compile_program
from tests.support.lldb.session import Session
from tests.support.rank_print import is_same
from tests.support.running import StartJob

RANKS = 9  # the last one runs
FEWER = ("0-2", "7-8")  # so few ranks are visited one by one
EXPRESSIONS = {
    "rank": True,
    "shadowed": True,  # a local in odd ranks
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
    "rank * 2 + 1": False,
    "no_such_name": False,
}


def test_as_in_each_rank_alone(session: Session, start_job: StartJob, rankrun: Path, tmp_path: Path) -> None:
    job = start_job(rankrun, "-n", RANKS, compile_program("rankcxx", tmp_path, "many.cpp"))
    job.wait_for("ready")
    script = f"""
from lldbext.selection.debugger import LldbDebugger
for expression in {tuple(EXPRESSIONS)!r}:
    form, _, rest = expression.rpartition(" ") if expression.startswith("/") else ("", "", expression)
    quick = sorted(LldbDebugger(debugger).values(range({RANKS}), rest, form))
    together = ask(f"rank print {{expression}} 0-{RANKS - 1}")
    tell(expression, [quick, together, "".join(ask(f"rank print {{expression}} {{ranks}}") for ranks in {FEWER})])
"""
    answers = session.attach(script, job.pid)
    wrong = []
    for expression, is_quick in EXPRESSIONS.items():
        quick, together, alone = answers[expression]
        if not is_same(together, alone) or bool(quick) != is_quick:
            wrong.append(f"{expression}, at once in {quick}:\n{together}instead of:\n{alone}")
    assert not wrong, "\n".join(wrong)
