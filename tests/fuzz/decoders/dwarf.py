"""Debug information, read by our own code and libdw: variables stay true if only lines and frames are damaged."""

from __future__ import annotations

import struct
import subprocess
import tempfile
from pathlib import Path

from elftools.elf.elffile import ELFFile

from pieglobalsfind.dwarf.debug_info import DebugInfo
from pieglobalsfind.dwarf.expression import evaluate
from pieglobalsfind.dwarf.types import Expression
from pieglobalsfind.errors import MemoryUnreadable, RanklensError
from pieglobalsfind.model import Absent
from tests.fuzz.patches import damaged, written
from tests.fuzz.scratch import IN_MEMORY
from tests.pieglobalsfind.dwarf.questions import ask

SOURCE = """
struct cell { double pressure; int kind : 5; unsigned char mark[3]; struct cell *next; };
static struct cell cells[4]; int my_rank = 3; __thread long counter; const char *name = "solver";
enum state { IDLE, BUSY = 7 } state; union { int i; float f; } both; int (*callback)(struct cell *, double);
static int work(int depth) { static int calls; calls += depth; return calls + cells[depth & 3].kind; }
int main(int argc, char **argv) { return work(argc) + my_rank + (int)counter + (argv[0] == name) + both.i + state; }
"""
FOLDER = tempfile.TemporaryDirectory(dir=IN_MEMORY)
PROGRAM, PLACE = Path(FOLDER.name, "program"), Path(FOLDER.name, "damaged")
Path(FOLDER.name, "program.c").write_text(SOURCE)
subprocess.run(["gcc", "-g", "-O1", "-o", PROGRAM, PROGRAM.with_suffix(".c")], check=True, timeout=60)
BYTES = PROGRAM.read_bytes()
with PROGRAM.open("rb") as stream:
    SECTIONS = [
        (section.name, section["sh_offset"], section["sh_size"])
        for section in ELFFile(stream).iter_sections()
        if section.name.startswith(".debug_") or section.name == ".eh_frame"
    ]
CODE = 0x1130
SIZE = sum(size for _, _, size in SECTIONS)
WITH_VARIABLES = (".debug_info", ".debug_abbrev", ".debug_str", ".debug_addr", ".debug_str_offsets", ".debug_line_str")


def sections(content: bytes) -> bytes:
    return b"".join(content[start : start + size] for _, start, size in SECTIONS)


def whole(parts: bytes) -> bytes:
    """The program with other bytes in these sections."""
    content, at = bytearray(BYTES), 0
    for _, start, size in SECTIONS:
        content[start : start + size] = parts[at : at + size]
        at += size
    return bytes(content)


def answers(path: Path) -> list[object]:
    """Every variable, where it is; everything else is asked, too."""
    ask(str(path))
    information = DebugInfo.open(str(path))
    found = [
        (variable.name, variable.address, variable.tls_offset, variable.size) for variable in information.variables()
    ]
    information.close()
    return list(found)


TRUTH = answers(PROGRAM)
SOUND = sections(BYTES)


def seeds() -> list[bytes]:
    """No damage; a byte here and there of each section; a location's expression."""
    places = range(0, SIZE, 61)
    expression = b"E" + bytes([0x03]) + struct.pack("<Q", CODE) + bytes([0x23, 8, 0x22, 0x96, 0x9F])
    return [b"", expression, *(b"S" + written([(place, bytes([place & 0xFF]))]) for place in places)]


def check(data: bytes) -> None:
    if data[:1] == b"E":
        check_expression(data[1:])
        return
    content, wrong = damaged(SOUND, data[1:])
    PLACE.write_bytes(whole(content))
    try:
        told = answers(PLACE)
    except RanklensError:
        return
    at, important = 0, False
    for name, _, size in SECTIONS:
        important = important or (name in WITH_VARIABLES and any(at <= offset < at + size for offset in wrong))
        at += size
    assert important or told == TRUTH


def check_expression(code: bytes) -> None:
    """A DWARF expression: a number of 64 bits, or the reason why there is none."""

    def read(address: int, size: int) -> bytes:
        if address % 3 == 0 or not 0 <= address < 1 << 64 or size > 16:
            raise MemoryUnreadable(address, size)
        return bytes(address + at & 0xFF for at in range(size))

    told = evaluate(Expression(code), CODE, read, (MemoryUnreadable,), on_stack=bool(len(code) & 1))
    assert isinstance(told, Absent) or -(1 << 63) <= told < 1 << 63
