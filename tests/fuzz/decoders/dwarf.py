"""Debug information, read by our own code and libdw: an answer that follows from sound sections alone is the true one.

An input asks one question of a small program, so that many are tried: variables, types, lines, frames or calls.
"""

from __future__ import annotations

import struct
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from pieglobalsfind.dwarf import variable_cache
from pieglobalsfind.dwarf.argument_locations import ArgumentReader
from pieglobalsfind.dwarf.cfi import CodeFile
from pieglobalsfind.dwarf.debug_info import DebugInfo
from pieglobalsfind.dwarf.expression import evaluate
from pieglobalsfind.dwarf.locals import LocalReader
from pieglobalsfind.dwarf.type_names import type_name
from pieglobalsfind.dwarf.types import Expression
from pieglobalsfind.errors import MemoryUnreadable, RanklensError
from pieglobalsfind.model import Absent
from tests.fuzz.patches import damaged, written
from tests.fuzz.scratch import IN_MEMORY

SOURCE = """
struct cell { double pressure; int kind : 5; unsigned char mark[3]; struct cell *next; };
static struct cell cells[4]; int my_rank = 3; __thread long counter; const char *name = "solver";
enum state { IDLE, BUSY = 7 } state; union { int i; float f; } both; int (*callback)(struct cell *, double);
__attribute__((noipa)) static int work(int depth) {
  static int calls; calls += depth; return calls + cells[depth & 3].kind; }
static int twice(int depth) { int both = 2 * depth; return work(both); }
int main(int argc, char **argv) { return twice(argc) + my_rank + (int)counter + (argv[0] == name) + both.i + state; }
"""
FOLDER = tempfile.TemporaryDirectory(dir=IN_MEMORY)
PROGRAM, PLACE = Path(FOLDER.name, "program"), Path(FOLDER.name, "damaged")
Path(FOLDER.name, "program.c").write_text(SOURCE)
subprocess.run(["gcc", "-g", "-O1", "-o", PROGRAM, PROGRAM.with_suffix(".c")], check=True, timeout=60)
BYTES = PROGRAM.read_bytes()
with PROGRAM.open("rb") as stream:
    elf = ELFFile(stream)
    SECTIONS = [
        (section.name, section["sh_offset"], section["sh_size"])
        for section in elf.iter_sections()
        if section.name.startswith(".debug_") or section.name == ".eh_frame"
    ]
    symbols = elf.get_section_by_name(".symtab")
    assert isinstance(symbols, SymbolTableSection)
    named = [symbol for symbol in symbols.iter_symbols() if symbol.name in ("work", "main")]
ADDRESSES = [one["st_value"] + at for one in named for at in range(one["st_size"])]
CODE = ADDRESSES[0]
SIZE = sum(size for _, _, size in SECTIONS)
ENTRIES = (".debug_info", ".debug_abbrev", ".debug_str", ".debug_addr", ".debug_str_offsets", ".debug_line_str")
# The sections from which an answer follows, by the input's first byte
NEEDED = {
    b"V": ENTRIES,
    b"L": (*ENTRIES, ".debug_line", ".debug_aranges", ".debug_rnglists"),
    b"F": (".eh_frame", ".debug_frame"),
    b"C": (*ENTRIES, ".eh_frame", ".debug_aranges", ".debug_line", ".debug_loclists", ".debug_rnglists"),
    b"T": (*ENTRIES, ".debug_line"),
}


def sections(content: bytes) -> bytes:
    return b"".join(content[start : start + size] for _, start, size in SECTIONS)


def whole(parts: bytes) -> bytes:
    """The program with other bytes in these sections."""
    content, at = bytearray(BYTES), 0
    for _, start, size in SECTIONS:
        content[start : start + size] = parts[at : at + size]
        at += size
    return bytes(content)


def variables(path: str, _: int) -> list[object]:
    """Every variable: where it is, and its type."""
    information = DebugInfo.open(path)
    try:
        return [
            (one.name, one.address, one.tls_offset, one.size, type_name(information.types, one.type, one.language))
            for one in information.variables()
        ]
    finally:
        information.close()


def lines(path: str, address: int) -> list[object]:
    """The line and the function of an address."""
    information = DebugInfo.open(path)
    try:
        return [information.line(address), information.function(address)]
    finally:
        information.close()


def frames(path: str, address: int) -> list[object]:
    """How the caller's registers are found at an address."""
    return [CodeFile(path).rules(address)]


def calls(path: str, address: int) -> list[object]:
    """The calls at an address, inlined ones too, what they were passed, and variables in scope."""
    code = CodeFile(path)
    arguments, local_reader = ArgumentReader(code), LocalReader(code)
    scope = local_reader.at(address)
    found = scope.variables if scope is not None else ()
    named = [(one.name, type_name(local_reader.types, one.type, one.language)) for one in found]
    return [code.calls(address), arguments.calls(address), arguments.passed(address), named]


def types(path: str, _: int) -> list[object]:
    """The variables with all types that they lead to, as the cache keeps them; structures by name."""
    information = DebugInfo.open(path)
    try:
        for variable in information.declared:
            information.types.strip(variable.type)
        roots = [information.root(name) for name in ("struct cell", "missing")]
        return [
            *([*root] if root is not None else None for root in roots),
            variable_cache.encode(information.declared, information.reader),
        ]
    finally:
        information.close()


QUESTIONS: dict[bytes, Callable[[str, int], list[object]]] = {
    b"V": variables,
    b"L": lines,
    b"F": frames,
    b"C": calls,
    b"T": types,
}
SOUND = sections(BYTES)
TRUTHS: dict[tuple[bytes, int], list[object]] = {}


def seeds() -> list[bytes]:
    """No damage; a byte here and there of each section, with each question; a location's expression."""
    places = range(0, SIZE, 61)
    expression = b"E" + bytes([0x03]) + struct.pack("<Q", CODE) + bytes([0x23, 8, 0x22, 0x96, 0x9F])
    kinds = [kind + bytes([place]) for kind in QUESTIONS for place in (0, 20)]
    return [*kinds, expression, *(kinds[at % 8] + written([(at, bytes([at & 0xFF]))]) for at in places)]


def check(data: bytes) -> None:
    """The first byte is the question, the second the place in the code that is asked about."""
    kind = data[:1]
    if kind not in QUESTIONS:
        check_expression(data[1:])
        return
    address = ADDRESSES[int.from_bytes(data[1:2], "little") % len(ADDRESSES)]
    if (kind, address) not in TRUTHS:
        TRUTHS[kind, address] = QUESTIONS[kind](str(PROGRAM), address)
    content, wrong = damaged(SOUND, data[2:])
    PLACE.write_bytes(whole(content))
    try:
        told = QUESTIONS[kind](str(PLACE), address)
    except RanklensError:
        return
    at, important = 0, False
    for name, _, size in SECTIONS:
        important = important or (name in NEEDED[kind] and any(at <= offset < at + size for offset in wrong))
        at += size
    assert important or told == TRUTHS[kind, address], (told, TRUTHS[kind, address])


def check_expression(code: bytes) -> None:
    """A DWARF expression: a number of 64 bits, or the reason why there is none."""

    def read(address: int, size: int) -> bytes:
        if address % 3 == 0 or not 0 <= address < 1 << 64 or size > 16:
            raise MemoryUnreadable(address, size)
        return bytes(address + at & 0xFF for at in range(size))

    told = evaluate(Expression(code), CODE, read, (MemoryUnreadable,), on_stack=bool(len(code) & 1))
    assert isinstance(told, Absent) or -(1 << 63) <= told < 1 << 63
