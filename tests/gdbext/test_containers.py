"""`rank print` of C++ containers, whose printers need the object's own address, and the language afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.gdb.places import RANKS, compile_program
from tests.support.gdb.session import Session

START = """
gdb.execute("break clock_nanosleep")
gdb.execute("run")
tell("stopped", [value("$_rank"), gdb.newest_frame().name()])
"""


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program("rankcxx", tmp_path_factory.mktemp("lists"), "lists.cpp")


def test_a_list_ends_where_it_ends_in_the_program(session: Session, rankrun: Path, lists: Path) -> None:
    script = 'tell("shown", [ask("rank print " + text).splitlines() for text in ("numbers", "bits", "bits.high")])'
    answers = session.run(START + script, "--args", rankrun, "-n", RANKS, lists)
    numbers, bits, high = answers["shown"]
    for rank in range(RANKS):
        elements = ", ".join(f"[{i}] = {10 * rank + i}" for i in range(5))
        assert numbers[rank] == f"{rank}: std::__cxx11::list = {{{elements}}}"
        assert bits[rank] == f"{rank}: {{low = 5, high = {rank}}}"
        assert high[rank] == f"{rank}: {rank}"


@pytest.mark.parametrize("command", ["rank print names", "rank apply all print names"])
def test_the_language_is_as_before(session: Session, rankrun: Path, lists: Path, command: str) -> None:
    """The rank that runs is in libc, whose language is C, and the selected frame has no language of its own."""
    script = f"""
other = next(rank for rank in range({RANKS}) if rank != value("$_rank"))
gdb.execute(f"rank {{other}}")
before = ask("show language"), ask("print names").partition("=")[2], ask("frame")
gdb.execute("{command}")
after = ask("show language"), ask("print names").partition("=")[2], ask("frame")
tell("seen", [other, before, after])
"""
    answers = session.run(START + script, "--args", rankrun, "-n", RANKS, lists)
    other, before, after = answers["seen"]
    assert "c++" in before[0]
    assert before[1] == f' std::map with 1 element = {{[{other}] = "name"}}\n'
    assert after == before
