"""What one ELF file says about unwinding and inlined calls at an address: call frame rules, and the calls at one pc.

Takes a path; reads by elfutils' libdw. Every answer is about a p_vaddr of the file, so it serves all copies of it. It
knows the rules that compilers write (DWARF 5, 6.4): offsets from the CFA; an expression is left to debuggers.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from ctypes import POINTER, byref, c_size_t, c_void_p
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Optional

from pieglobalsfind.cache.call_frame_cache import CallAt as CallAt
from pieglobalsfind.cache.call_frame_cache import CallCache
from pieglobalsfind.cache.call_frame_cache import Rules as Rules
from pieglobalsfind.cache.elf_file_cache import state_of
from pieglobalsfind.dwarf import constants as dw
from pieglobalsfind.dwarf.libdw.bindings import Die, Operation
from pieglobalsfind.dwarf.libdw.die_reader import Reader
from pieglobalsfind.dwarf.libdw.module import Module
from pieglobalsfind.dwarf.lines import LineReader
from pieglobalsfind.elf.demangle import demangle, without_result
from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.machine.processor import Processor

MOST_RANGES = 1000  # of one block or inlined call
DEEPEST = 200  # blocks and inlined calls within one another
# The operations of the linker's expression after two registers and 15, but for the literal that is its fifth.
LINKAGE_TABLE = [
    dw.DW_OP_and,
    dw.DW_OP_ge,
    dw.DW_OP_lit0 + 3,
    dw.DW_OP_shl,
    dw.DW_OP_plus,
]
QUALIFIERS = re.compile(r"(?: const| volatile| &&?| \[clone [^\]]*\])+$")


class CodeFile:
    """Rules and calls of one file; each is read once per address, and kept (`keep`) for later processes.

    Raises `ObjectFileError` if the file is not an ELF file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        with ElfFile(path) as elf:
            build_id = elf.build_id
            self.processor = elf.header.processor
        self._state = state_of(path, build_id) if build_id else None  # from before it is read
        self._kept = CallCache(self._state)
        self.reader = Reader()
        self._rules: dict[int, Optional[Rules]] = dict(self._kept.rules)
        self._calls: dict[int, tuple[CallAt, ...]] = dict(self._kept.calls)
        self._free = ctypes.CDLL(None).free
        self._free.argtypes, self._free.restype = (c_void_p,), None

    @cached_property
    def module(self) -> Module:
        """The open file, which stays open with this; opened when something is asked that is not kept."""
        return Module(self._path)

    @cached_property
    def _tables(self) -> tuple[int, ...]:
        return self.module.call_frame_tables()

    @cached_property
    def _lines(self) -> Optional[LineReader]:
        if not self.module.has_debug_information:
            return None
        is_same = self._state is not None and self.module.build_id == self._state.build_id
        return LineReader(self.module, demangle, self._state if is_same else None)

    def rules(self, vaddr: int) -> Optional[Rules]:
        """The rules at an address, None if there are none that this module knows."""
        if vaddr not in self._rules:
            rules = self._rules[vaddr] = self._read_rules(vaddr)
            if rules is not None:
                self._kept.rules[vaddr] = rules
        return self._rules[vaddr]

    def calls(self, vaddr: int) -> tuple[CallAt, ...]:
        """The calls at an address by debug information, innermost first; () without any."""
        if vaddr not in self._calls:
            calls = self._calls[vaddr] = tuple(self._read_calls(vaddr))
            unit = self._lines.unit(vaddr) if calls and self._lines is not None else None
            if unit is not None and not unit.is_skeleton:  # split units are in files that may change by themselves
                self._kept.calls[vaddr] = calls
        return self._calls[vaddr]

    def keep(self) -> None:
        """Keep what was read of addresses for the next process that opens the file."""
        self._kept.keep()

    def active(self, vaddr: int) -> tuple[Die, ...]:
        """The DIEs of the calls at an address, innermost first: inlined ones, then the function; () if unknown."""
        function = self._lines.function_at(vaddr) if self._lines is not None else None
        if function is None:
            return ()
        return (*reversed(list(self._inlined(function.die, vaddr))), function.die)

    # ---- unwinding ----

    def _read_rules(self, vaddr: int) -> Optional[Rules]:
        lib: Any = self.module.lib
        for table in self._tables:
            frame = c_void_p()
            if lib.dwarf_cfi_addrframe(table, vaddr, byref(frame)) == 0:
                try:
                    return self._of_frame(lib, frame, vaddr)
                finally:
                    self._free(frame)
        return None

    def _of_frame(self, lib: Any, frame: c_void_p, vaddr: int) -> Optional[Rules]:
        operations, count = POINTER(Operation)(), c_size_t()
        if lib.dwarf_frame_cfa(frame, byref(operations), byref(count)) != 0:
            return None
        steps = [operations[number] for number in range(count.value)]
        cfa = _register_and_offset(steps[0]) if len(steps) == 1 else _in_linkage_table(steps, vaddr, self.processor)
        saved, is_last = {}, False
        room = (Operation * 3)()
        for register in (*self.processor.call_preserved, self.processor.return_address):
            if lib.dwarf_frame_register(frame, register, room, byref(operations), byref(count)) != 0:
                return None
            if count.value:
                offset = _from_cfa([operations[number] for number in range(count.value)])
                if offset is None:
                    return None
                saved[register] = offset
            elif register == self.processor.return_address:
                is_last = self.processor.pushes_return_address or bool(operations)  # "undefined"; null: "same value"
        return Rules(*cfa, tuple(saved.items()), is_last) if cfa is not None else None

    # ---- inlined calls ----

    def _read_calls(self, vaddr: int) -> Iterator[CallAt]:
        if self._lines is None:
            return
        unit, line, function = self._lines.unit(vaddr), self._lines.line(vaddr), self._lines.function_at(vaddr)
        if unit is None or line is None or function is None:
            return
        file, number = line.file, line.line
        for die in reversed(list(self._inlined(function.die, vaddr))):
            yield CallAt(self._name(die, ""), file, number)
            file = self.reader.file_name(unit, self.reader.number(die, dw.DW_AT_call_file) or 0) or file
            number = self.reader.number(die, dw.DW_AT_call_line) or 0
        yield CallAt(self._name(function.die, function.scope), file, number)

    def _inlined(self, die: Die, vaddr: int, depth: int = 0) -> Iterator[Die]:
        """The inlined calls below a DIE that are active at an address, outermost first."""
        for child in self.reader.children(die):
            tag = self.reader.tag(child)
            if tag not in (dw.DW_TAG_inlined_subroutine, dw.DW_TAG_lexical_block) or depth > DEEPEST:
                continue
            if any(low <= vaddr < high for low, high in self.reader.ranges(child, MOST_RANGES)):
                if tag == dw.DW_TAG_inlined_subroutine:
                    yield child
                yield from self._inlined(child, vaddr, depth + 1)
                return

    def _name(self, die: Die, scope: str) -> str:
        """As GDB names functions: with namespaces and modules, without parameters."""
        linkage = self.reader.string(die, dw.DW_AT_linkage_name)
        if linkage.startswith("_Z"):
            readable = demangle(linkage)
            if readable != linkage:
                return without_parameters(readable)
        name = self.reader.string(die, dw.DW_AT_name) or "??"
        return f"{scope}::{name}" if scope else name


def code_file(path: str) -> CodeFile:
    """The tables of a file, read once as long as it is the same; raises `ObjectFileError`.

    They are at hand for callers that look at a process again and again.
    """
    try:
        about = Path(path).stat()
    except (OSError, ValueError):
        return CodeFile(path)  # which says what is wrong with it
    return _code_file(path, (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns))


@lru_cache(maxsize=64)
def _code_file(path: str, identity: tuple[int, ...]) -> CodeFile:
    return CodeFile(path)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _register_and_offset(operation: Operation) -> Optional[tuple[int, int]]:
    if dw.DW_OP_breg0 <= operation.atom < dw.DW_OP_breg0 + 32:
        return operation.atom - dw.DW_OP_breg0, _signed(operation.number)
    return (operation.number, _signed(operation.number2)) if operation.atom == dw.DW_OP_bregx else None


def _in_linkage_table(operations: list[Operation], vaddr: int, processor: Processor) -> Optional[tuple[int, int]]:
    """The CFA at an entry of a procedure linkage table (.plt), by the expression that GNU ld writes for all of them.

    CFA = sp + 8 + ((pc & 15) >= N) * 8: from its Nth byte on, an entry has pushed a word. None for anything else.
    """
    first = [dw.DW_OP_breg0 + processor.stack_pointer, dw.DW_OP_breg0 + processor.pc, dw.DW_OP_lit0 + 15]
    if [operation.atom for operation in operations[:4] + operations[5:]] != [*first, *LINKAGE_TABLE]:
        return None
    has_pushed = (vaddr & 15) >= operations[4].atom - dw.DW_OP_lit0
    return operations[0].atom - dw.DW_OP_breg0, _signed(operations[0].number) + (8 if has_pushed else 0)


def _from_cfa(operations: list[Operation]) -> Optional[int]:
    """The offset in `CFA` or `CFA + offset`, None for anything else."""
    atoms = [operation.atom for operation in operations]
    if atoms == [dw.DW_OP_call_frame_cfa]:
        return 0
    return _signed(operations[1].number) if atoms == [dw.DW_OP_call_frame_cfa, dw.DW_OP_plus_uconst] else None


def without_parameters(name: str) -> str:
    """A demangled function's name without what follows it: `a::f(int) const` is `a::f`, `A::operator()` itself."""
    bare = QUALIFIERS.sub("", name)
    if not bare.endswith(")"):
        return name
    depth = 0
    for at in range(len(bare) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(bare[at], 0)
        if depth == 0:
            return name if bare.endswith("operator", 0, at) else without_result(bare[:at])
    return name
