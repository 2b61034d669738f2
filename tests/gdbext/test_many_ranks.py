"""`rank print` in many ranks at once says what it says in each rank alone, and what GDB's `output` says there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.gdb.places import compile_program
from tests.support.gdb.session import Session
from tests.support.host.script import Told
from tests.support.rank_print import by_rank, is_same
from tests.support.running import StartJob

RANKS = 9  # the last one runs
PARTS = 2
WAITING = range(RANKS - 1)
FEWER = ("0-1", "7-8")  # so few ranks are visited one by one
SELECTED = (2, 5)  # where GDB's own command is asked
COMPARE = f"""
from gdbext.extension import _extension
def plainly(form, expression):
    lines = []
    for rank in {tuple(SELECTED)}:
        ask(f"rank {{rank}}")
        while gdb.selected_frame().find_sal().symtab is None:
            gdb.execute("up", to_string=True)
        lines.append(f"{{rank}}: " + ask(f"output{{form}} {{expression}}"))
    return chr(10).join(lines)
debugger = _extension.debugger
ask("set $chosen = 40")
for expression in EXPRESSIONS:
    form, _, rest = expression.rpartition(" ") if expression.startswith("/") else ("", "", expression)
    quick = sorted(debugger.values(range({RANKS}), rest, form))
    together = ask(f"rank print {{expression}} 0-{RANKS - 1}")
    alone = "".join(ask(f"rank print {{expression}} {{ranks}}") for ranks in {FEWER})
    tell(expression, [quick, together, alone, plainly(form, rest)])
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
    "(Color) (rank % 2)": WAITING,  # reads like a call
    "(Color) rank": WAITING,
    "(double) rank / 3": WAITING,
    "node": WAITING,
    "node.next->number": WAITING,
    "node.function": WAITING,
    "node.text": WAITING,
    "start": WAITING,
    "start->number": WAITING,  # a null pointer in some: GDB says why
    "*node.next": WAITING,
    "call": WAITING,
    "&call": WAITING,
    "node.function == call": WAITING,
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
    "$_rank": WAITING,
    "rank + $_rank - rank": WAITING,
    "rank + call(1)": WAITING,
    "several.size()": WAITING,  # a method in Python
    "rank % 2 && call(1)": WAITING,
    "rank % 4 ? call : node.function": WAITING,
    "start && call(1)": (0, 3, 6),
    "no_such_name(rank)": WAITING,
    "$rsp - $rsp + rank": WAITING,
    "$pc": WAITING,
    "$sp": WAITING,
    "$rbx": WAITING,
    "$rip - (long) call": WAITING,
    "$eax": (),
    "$ebx + 1": (),
    "$_rank_of(&rank)": WAITING,
    "$_strlen(letters)": WAITING,
    '$_rank_in("0-2")': (),
    "$no_such + 1": (),
    "$chosen + rank": WAITING,
    "word": WAITING,
    "kept": (0, 2, 4, 6),
    "*to + share": (0, 2, 4, 6),
    "local": (0, 2, 4, 6),
}
OPTIMIZED = (
    "rank",
    "shadowed",
    "hidden",
    "word",
    "kept",
    "share",
    "*to",
    "held",
    "this",
    "from",
    "local",
    "node",
    "size",
)


@pytest.mark.parametrize("part", range(PARTS))
def test_as_in_each_rank_alone(session: Session, start_job: StartJob, rankrun: Path, tmp_path: Path, part: int) -> None:
    expressions = tuple(EXPRESSIONS)[part::PARTS]
    answers = asked(session, start_job, rankrun, compile_program("rankcxx", tmp_path, "many.cpp"), expressions)
    wrong = []
    for expression in expressions:
        expected = EXPRESSIONS[expression]
        quick, together, alone, plain = answers[expression]
        is_quick = set(expected) <= set(quick) <= set(WAITING) and (expected or not quick)
        if not is_same(together, alone) or not is_quick or not is_as_gdb(together, plain):
            wrong.append(f"{expression}, at once in {quick}:\n{together}instead of:\n{alone}{plain}")
    assert not wrong, "\n".join(wrong)


def test_of_an_optimized_program(session: Session, start_job: StartJob, rankrun: Path, tmp_path: Path) -> None:
    """Where variables are in registers, or nowhere."""
    answers = asked(session, start_job, rankrun, compile_program("rankcxx", tmp_path, "many.cpp", "-O2"), OPTIMIZED)
    wrong = [one for one in OPTIMIZED if not is_same(*answers[one][1:3])]
    assert not wrong, "\n".join(f"{one}:\n{answers[one][1]}instead of:\n{answers[one][2]}" for one in wrong)
    assert any(answers[one][0] for one in OPTIMIZED), answers


def is_as_gdb(together: str, plain: str) -> bool:
    """Whether the ranks' values are those that GDB prints; it says otherwise why a value can't be had."""
    ours = by_rank(together)
    return all(
        ours[rank].startswith(" <") if text.startswith(" error: ") else ours[rank] == text
        for rank, text in by_rank(plain).items()
    )


def asked(session: Session, start_job: StartJob, rankrun: Path, program: Path, expressions: tuple[str, ...]) -> Told:
    job = start_job(rankrun, "-n", RANKS, program)
    job.wait_for("ready")
    return session.attach(f"EXPRESSIONS = {expressions!r}\n{COMPARE}", job.pid)


def test_an_argument_is_what_its_rank_has_passed(session: Session, rankrun: Path, tmp_path: Path) -> None:
    """Fortran passes addresses: of one variable of a module in even ranks, of another one in odd ranks."""
    program = compile_program("rankfort", tmp_path, "dummies.f90")
    script = """
    ask("break stop_here")
    ask("run")
    tell("passed", ask("rank print passed 0-7"))
    """
    answers = session.run(script, "--args", rankrun, "-n", RANKS, program)
    expected = [f"{rank}: {(200 if rank % 2 else 100) + rank}" for rank in WAITING]
    assert answers["passed"].splitlines() == expected, answers.output
