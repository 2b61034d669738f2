"""The extension with nothing but what the oldest supported GDB offers to Python.

GDB 12 can't be had everywhere: what later versions have added is taken from the GDB that runs the test.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.gdb.places import RANKS
from tests.support.gdb.session import EXTENSION, Session

# What the release notes of GDB 13 to 18 call new, and the extension could want.
HIDE_WHAT_IS_NEW = """
import ctypes, gc

NEW = {
    gdb: ("current_language", "format_address", "print_options", "execute_mi", "interrupt", "notify_mi",
          "BP_CATCHPOINT", "BreakpointLocation", "warning", "missing_debug"),
    gdb.Objfile: ("is_file",),
    gdb.Breakpoint: ("locations", "inferior"),
    gdb.Frame: ("language",),
    gdb.Value: ("assign", "bytes"),
    gdb.Progspace: ("objfile_for_address", "executable_filename", "symbol_file"),
    gdb.InferiorThread: ("ptid_string",),
}

def hide(kind, names):
    own = kind.__dict__ if kind is gdb else gc.get_referents(kind.__dict__)[0]
    for name in names:
        own.pop(name, None)
    if kind is not gdb:
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))

for kind, names in NEW.items():
    hide(kind, names)
tell("hidden", not any(hasattr(kind, name) for kind, names in NEW.items() for name in names))
"""


def test_every_rank_is_hit_and_looked_into(session: Session, rankrun: Path, program: Path) -> None:
    script = f"""{HIDE_WHAT_IS_NEW}
gdb.execute("source {EXTENSION}")
gdb.execute("break work")
gdb.execute("break move_on if number == 1")
gdb.execute("run")
stops = []
while gdb.selected_inferior().pid:
    rank = value("$_rank")
    stops.append([gdb.newest_frame().name(), rank, value("$_rank_of($pc)")])
    if len(stops) == 3:
        tell("printed", ask("rank print $_rank").splitlines())
        tell("bt", ask("rank apply all bt"))
    gdb.execute("continue")
tell("stops", stops)
"""
    answers = session.run(script, "--args", rankrun, "-n", RANKS, program, "end", source=False)
    assert answers["hidden"]
    stops = answers["stops"]
    for function in ("work", "move_on"):
        assert sorted(rank for name, rank, _ in stops if name == function) == list(range(RANKS)), answers.output
    assert all(rank == owner for _, rank, owner in stops)
    assert answers["printed"] == [f"{rank}: {rank}" for rank in range(RANKS)]
    assert answers["bt"].count(" main (") == RANKS
    assert "SIGTRAP" not in answers.output and "ranklens failed" not in answers.output
    assert "exited normally" in answers.output
