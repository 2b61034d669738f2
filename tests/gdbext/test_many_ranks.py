"""`rank print` in many ranks at once says what it says in each rank alone: there GDB goes to the rank and evaluates."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.gdb.places import compile_program
from tests.support.gdb.session import Session
from tests.support.running import StartJob

RANKS = 9  # the last one runs
WAITING = range(RANKS - 1)
COMPARE = """
from gdbext.extension import _extension
face = _extension.face
for expression in EXPRESSIONS:
    form, _, rest = expression.rpartition(" ") if expression.startswith("/") else ("", "", expression)
    quick = sorted(face.values(range(RANKS), rest, form))
    together = ask(f"rank print {expression} 0-{RANKS - 1}")
    alone = "".join(ask(f"rank print {expression} {rank}") for rank in range(RANKS))
    tell(expression, [quick, together, alone])
"""
# In even ranks a member of the object that the function is called for hides the global; in odd ones a local does.
EXPRESSIONS = {
    "rank": WAITING,
    "rank * 2 + 1": WAITING,
    "shadowed": WAITING,
    "hidden": WAITING,
    "ratio": WAITING,
    "numbers": WAITING,
    "numbers[1] - rank": WAITING,
    "numbers[rank % 4]": WAITING,
    "&numbers[3]": WAITING,
    "space::seen": WAITING,
    "space::color == BLUE": WAITING,
    "(Color) (rank % 2)": (),  # reads like a call
    "(Color) rank": WAITING,
    "(double) rank / 3": WAITING,
    "node": WAITING,
    "node.next->number": WAITING,
    "node.function": WAITING,
    "node.text": WAITING,
    "start": WAITING,
    "start->number": (1, 2, 4, 5, 7),  # a null pointer elsewhere: GDB says why
    "*node.next": WAITING,
    "call": (),
    "counted": (),
    "counted.total": (),
    "counted.own": WAITING,
    "Counted::total": WAITING,
    "shape": WAITING,
    "base": WAITING,
    "several": WAITING,
    "pointers": WAITING,
    "named": WAITING,
    "listed": WAITING,
    "text": WAITING,
    "letters": WAITING,
    "alias": (),
    "elsewhere": (0,),  # the name of what rank 0 has there is no other rank's
    "*elsewhere": WAITING,
    "sizeof(several)": WAITING,
    "/x rank": WAITING,
    "/x node": WAITING,
    "/d start": WAITING,
    "held": (0, 2, 4, 6),
    "this->held + rank": (0, 2, 4, 6),
    "no_such_name": WAITING,
    "$_rank": (),
    "rank + call(1)": (),
}


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_together_as_alone(session: Session, start_job: StartJob, rankrun: Path, tmp_path: Path, level: str) -> None:
    program = compile_program("rankcxx", tmp_path, "many.cpp", level)
    job = start_job(rankrun, "-n", RANKS, program)
    job.wait_for("ready")
    told = session.attach(f"EXPRESSIONS, RANKS = {list(EXPRESSIONS)!r}, {RANKS}\n{COMPARE}", job.pid)
    wrong = []
    for expression, expected in EXPRESSIONS.items():
        quick, together, alone = told[expression]
        is_same = sorted(by_rank(together)) == sorted(by_rank(alone))
        is_quick = set(expected) <= set(quick) <= set(WAITING) and (expected or not quick)
        if not is_same or (level == "-O0" and not is_quick):
            wrong.append(f"{expression}, at once in {quick}:\n{together}instead of:\n{alone}")
    assert not wrong, "\n".join(wrong)


def by_rank(text: str) -> list[str]:
    """What can't be had is printed once for all ranks."""
    return [
        f"{rank}:{value}"
        for line in text.splitlines()
        for ranks, value in [line.split(":", 1)]
        for rank in numbers(ranks)
    ]


def numbers(ranks: str) -> list[int]:
    return [
        number
        for part in ranks.split(",")
        for first, _, last in [part.partition("-")]
        for number in range(int(first), int(last or first) + 1)
    ]
