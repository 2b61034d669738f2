"""Takes out of an answer what must differ between a process and a virtual rank, and nothing else.

- Addresses: hexadecimal numbers of nine digits and more.  Both programs are position-independent, so all their
  addresses lie above 4 GiB, and none of their data is a hexadecimal number of that size.
- A frame's pc as GDB prints it before ` in FUNCTION`; it is left out at the very start of a line, where the running
  rank may happen to be.
- Frames inside the innermost and outside the outermost function of the program's own sources: what MPI and the
  start-up code do is the runtime's business.  The numbers of the remaining frames depend on them.
- The line that says how many frames of the runtime are folded.
- The numbers of breakpoints and watchpoints, which the extension's own ones share.
- The number of a value in GDB's history: in a job of virtual ranks all ranks' values share one history.
- The object file's name in `info symbol`: the one is an executable, the other a shared object.
- What follows from that difference in the link: distances between code and data (`0x..(%rip)`, `Base address 0x..` of
  location lists, `DW_OP_addr 0x..`), and the stubs through which a shared object reaches its own functions
  (`f@plt`), which `info line f` lists as further places of that name.
- What lies beyond a process's `main`, which GDB hides: the caller in `info frame`, and what it gave (`argc@entry`);
  of the `main` that gfortran makes all arguments, which GDB knows from that caller alone.
- Arguments of the Fortran program that GDB 15 and newer read from memory that holds nothing, of a process, too: where a
  call passes on what its caller was given, they look for `main`'s variable in the frame inside `main`'s. There
  `ranks` is not 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

ADDRESS = re.compile(r"\b0x[0-9a-f]{9,16}\b")
PC_OF_FRAME = re.compile(r"\bADDRESS in (?=\S+ ?\()")
HISTORY = re.compile(r"^(Value returned is )?\$\d+ = ", re.MULTILINE)
NUMBERED = re.compile(r"\b([Bb]reakpoint|[Ww]atchpoint) \d+")
OBJECT_FILE = re.compile(r"( in section \S+)(?: of \S+)$", re.MULTILINE)
STACK_LEVEL = re.compile(r"^Stack level \d+, ", re.MULTILINE)
DISTANCE = re.compile(r"0x[0-9a-f]+(?=\(%rip\))|(?<=Base address )0x[0-9a-f]+|(?<=DW_OP_addr )0x[0-9a-f]+")
STUB = re.compile(r"^No line number information available for address ADDRESS <\w+@(?:plt|got\.plt)>\n?", re.MULTILINE)
CALLER = re.compile(r"called by frame at ADDRESS(?:, |$)", re.MULTILINE)
GIVEN = re.compile(r", arg[cv]@entry=[^,)\n]*")
FORTRAN_MAIN = re.compile(r"\bmain \(argc=[^,)]*, argv=[^,)]*\)(?= at \S+\.f90)")
DEAD = re.compile(r"\bme( ?= ?)-?\d+(, |\n)ranks\1(?!4\b)-?\d+")
FOLDED = re.compile(r"^\(\d+ frames? of the runtime folded\)\n", re.MULTILINE)
FRAME = re.compile(r"^#\d+\s+", re.MULTILINE)


def normalize(text: str, sources: Iterable[str]) -> str:
    """An answer without what the module's first lines name; `sources` are the file names of the user's program."""
    text = ADDRESS.sub("ADDRESS", text)
    text = PC_OF_FRAME.sub("", text)
    text = HISTORY.sub(r"\1$ = ", text)
    text = NUMBERED.sub(r"\1", text)
    text = OBJECT_FILE.sub(r"\1", text)
    text = DISTANCE.sub("DISTANCE", text)
    text = DEAD.sub(r"me\1DEAD\2ranks\1DEAD", text)
    text = FOLDED.sub("", STUB.sub("", text))
    text = FORTRAN_MAIN.sub("main ()", GIVEN.sub("", CALLER.sub("", text)))
    text = STACK_LEVEL.sub("Stack level, ", text)
    return _user_frames(text, tuple(sources)).rstrip()


def _user_frames(text: str, sources: tuple[str, ...]) -> str:
    starts = [match.start() for match in FRAME.finditer(text)]
    if not starts:
        return text
    pieces = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)])]
    own = re.compile(r" at \S*\b(?:" + "|".join(map(re.escape, sources)) + r"):\d+$")
    user = [number for number, piece in enumerate(pieces) if own.search(piece.splitlines()[0])]
    if user:
        pieces = pieces[user[0] : user[-1] + 1]
    return text[: starts[0]] + "".join(FRAME.sub("#", piece) for piece in pieces)
