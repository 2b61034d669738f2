"""Which functions of a program store to which of its variables, as far as the code itself tells.

Takes an ELF file with a symbol table, for x86-64: no other processor's code is decoded. Each function is decoded once,
from its first instruction to its last. A store counts if the instruction itself names the address, or if a register
holds the variable's address there on every way. What is written through any other pointer is not seen; functions that
pass, return or store a variable's address are therefore listed, too. Thread-local variables have places in one block
here, wherever threads have theirs: code names them by their distance from the thread pointer, or by words that the
loader fills (tls_words.py).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from pieglobalsfind.elf.demangle import demangle
from pieglobalsfind.elf.file import SHT_SYMTAB, ElfFile
from pieglobalsfind.elf.symbol_table import FileSymbol, read_symbols
from pieglobalsfind.errors import ObjectFileError
from pieglobalsfind.machine.lookup import PROCESSORS
from pieglobalsfind.model import Absent

from .program_file import ProgramFile
from .tls_words import ANY_BLOCK, TlsWords, tls_words

LARGEST_FUNCTION = 1 << 24  # bytes
MASK = (1 << 64) - 1
MOVED = 1 << 64  # of an address that arithmetic has changed: only its variable is known, not where in it
MOST_PASSES = 20  # over one function
# x86-64 psABI, figure 3.4
KEPT_BY_CALLS = ("rbx", "rbp", "r12", "r13", "r14", "r15")
ARGUMENTS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
ARITHMETIC = ("add", "sub", "inc", "dec")
# Instructions that write to a first operand in memory, where capstone 5 calls some of them readers: moves of vectors
# and of their parts, x87's stores, rotations, compare and exchange
STORES = (
    *("mov", "vmov", "pextr", "vpextr", "extract", "vextract", "vmaskmov", "vpmaskmov", "vpmov", "vscatter"),
    *("vpscatter", "vcompress", "vpcompress", "vcvtps2ph", "fst", "fnst", "fist", "fbstp", "stmxcsr", "vstmxcsr"),
    *("rol", "ror", "rcl", "rcr", "cmpxchg"),
)
DECODED = " and ".join(processor.name for processor in PROCESSORS.values() if processor.is_decoded)
UNKNOWN_CODE = Absent("its processor's machine code is not decoded", f"only that of {DECODED} is")
NO_SYMBOLS = Absent("the file has no symbol table", "link without -s")


@dataclass
class Uses:
    """By a variable's address: the functions that store to it, and those that take it, sorted by name."""

    writers: dict[int, set[str]] = field(default_factory=dict)
    takers: dict[int, set[str]] = field(default_factory=dict)

    def written_by(self, address: int) -> tuple[str, ...]:
        """Return the functions that store to an address."""
        return tuple(sorted(self.writers.get(address, ())))

    def taken_by(self, address: int) -> tuple[str, ...]:
        """Return the functions that take an address."""
        return tuple(sorted(self.takers.get(address, ())))


def read_uses(elf: ElfFile, extents: Iterable[tuple[int, int]], with_elements: frozenset[int]) -> Union[Uses, Absent]:
    """What the code does with the variables at `extents`, (vaddr, size) each; Absent where that is unknown.

    `with_elements`: the addresses of those that an index may lead into.
    """
    if not is_decoded(elf):
        return UNKNOWN_CODE
    if not any(section.type == SHT_SYMTAB for section in elf.sections):
        return NO_SYMBOLS
    reader = CodeReader(elf, sorted(set(extents)), with_elements)
    for address in read_symbols(elf).addresses:
        if address.size and is_code(elf, address):
            reader.read(address)
    return reader.uses


def is_decoded(elf: ElfFile) -> bool:
    """Return whether the file's machine code is."""
    processor = PROCESSORS.get(elf.header.machine)
    return processor is not None and processor.is_decoded


def is_code(elf: ElfFile, symbol: FileSymbol) -> bool:
    """Return whether a symbol lies in executable memory."""
    return any(
        part.vaddr <= symbol.start < part.end and part.flags & 1 for part in elf.program_headers if part.type == 1
    )


def own_slots(path: str) -> Iterator[tuple[int, int]]:
    """(vaddr of a word of the global offset table, vaddr of the file's own variable that it names)."""
    with ProgramFile(path) as file:
        for relocation in file.relocations():
            symbol = file.symbol(relocation)
            if relocation.type == file.processor.relocations.glob_dat and symbol is not None and symbol.is_defined:
                yield relocation.offset, symbol.value


class CodeReader:
    """Functions of one file, one after the other; `uses` collects what they do."""

    def __init__(self, elf: ElfFile, extents: list[tuple[int, int]], with_elements: frozenset[int]) -> None:
        import capstone  # late: few commands need it, and it takes time to load

        self.uses = Uses()
        self._elf = elf
        self._extents = extents
        self._starts = [start for start, _ in extents]
        self._with_elements = with_elements
        self._tls: TlsWords = tls_words(elf)
        self._slots = {**dict(own_slots(elf.path)), **self._tls.offsets}
        self._x86 = capstone.x86
        self._capstone = capstone
        self._decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        self._decoder.detail = True
        self._decoder.skipdata = False
        self._function = ""
        self._notes = False
        self._accessed: set[str] = set()  # registers that hold an address by which memory was read or written
        self._held: dict[str, int] = {}  # by register: the address of a variable's byte that it holds
        self._after: dict[str, int] = {}  # the same where an instruction jumps to
        self._arriving: dict[int, dict[str, int]] = {}  # what all jumps to a label have in common
        self._goes_on = True  # from the instruction before
        self._has_table = False  # of jumps: they may lead to any label

    def read(self, symbol: FileSymbol) -> None:
        """Note what one function stores to, and whose address it takes."""
        try:
            code = self._elf.at(symbol.start, min(symbol.size, LARGEST_FUNCTION))
        except ObjectFileError:
            return
        instructions = list(self._decoder.disasm(code, symbol.start))
        self._function = demangle(symbol.name).partition("(")[0]
        labels = {target for instruction in instructions for target in self._targets(instruction)}
        self._has_table = any(
            instruction.mnemonic == "jmp" and not list(self._targets(instruction)) for instruction in instructions
        )
        for _ in range(MOST_PASSES):  # what jumps bring along is less in each
            before = dict(self._arriving)
            self._pass(instructions, labels)
            if self._arriving == before:
                break
        else:
            self._arriving = {label: {} for label in labels}
        self._notes = True
        self._pass(instructions, labels)
        self._notes, self._arriving = False, {}

    def _pass(self, instructions: list[Any], labels: set[int]) -> None:
        self._held, self._accessed, self._goes_on = {}, set(), True
        for instruction in instructions:
            if instruction.address in labels:
                arriving = self._arriving.get(instruction.address, self._held)
                is_reached = self._goes_on or self._has_table
                self._held = common(self._held, arriving) if is_reached else dict(arriving)
            self._step(instruction)
            for target in self._targets(instruction):
                self._arriving[target] = common(self._after, self._arriving.get(target, self._after))

    def _targets(self, instruction: Any) -> Iterator[int]:
        if instruction.group(self._capstone.CS_GRP_JUMP):
            yield from (operand.imm for operand in instruction.operands if operand.type == self._x86.X86_OP_IMM)

    def _step(self, instruction: Any) -> None:
        operands = instruction.operands
        for number, operand in enumerate(operands):
            is_written = operand.access & self._capstone.CS_AC_WRITE or is_store(instruction.mnemonic, number)
            if operand.type == self._x86.X86_OP_MEM and is_written:
                self._note(self.uses.writers, self._address(instruction, operand))
        self._note_escapes(instruction, operands)
        held = self._result(instruction, operands)
        if instruction.group(self._capstone.CS_GRP_CALL):
            block = self._tls.modules.get(self._held.get("rdi", 0))  # the argument of __tls_get_addr
            held = None if block is None else ("rax", block)
            self._held = {name: place for name, place in self._held.items() if name in KEPT_BY_CALLS}
        is_arithmetic = instruction.mnemonic in ARITHMETIC and not self._moves_thread_pointer(instruction, operands)
        for register in instruction.regs_access()[1]:
            name = wide(instruction.reg_name(register))
            if is_arithmetic and name in self._held:
                self._held[name] |= MOVED
            else:
                self._held.pop(name, None)
        if held is not None:
            self._held[held[0]] = held[1]
            self._accessed.discard(held[0])
        self._after = self._held
        if instruction.mnemonic != "nop":  # between functions' parts nothing leads to it
            self._goes_on = instruction.mnemonic != "jmp" and not instruction.group(self._capstone.CS_GRP_RET)
        if not self._goes_on:
            self._held = {}  # what follows is reached from elsewhere

    def _note_escapes(self, instruction: Any, operands: Any) -> None:
        """A variable's address that is passed to a function, returned, or stored: others may write through it."""
        names = []
        if instruction.group(self._capstone.CS_GRP_CALL) or instruction.mnemonic == "jmp":
            names = list(ARGUMENTS)
        elif instruction.group(self._capstone.CS_GRP_RET):
            names = ["rax"]
        elif len(operands) == 2 and operands[0].type == self._x86.X86_OP_MEM and operands[1].size == 8:
            names = [
                wide(instruction.reg_name(operand.reg))
                for operand in operands[1:]
                if operand.type == self._x86.X86_OP_REG
            ]
        for name in names:
            if name not in self._accessed:  # what is left over of an access is not passed on
                self._note(self.uses.takers, self._held.get(name))

    def _result(self, instruction: Any, operands: Any) -> Optional[tuple[str, int]]:
        """The register that an instruction makes hold a variable's address, and that address."""
        if len(operands) != 2 or operands[0].type != self._x86.X86_OP_REG:
            return None
        target, source = wide(instruction.reg_name(operands[0].reg)), operands[1]
        if instruction.mnemonic in ("mov", "add") and self._is_thread_pointer(source):
            place = self._held.get(target) if instruction.mnemonic == "add" else self._tls.pointer
            return None if place is None else (target, place)
        if (
            instruction.mnemonic == "add"
        ):  # a distance from the thread pointer is added to that, perhaps to an index, too
            named = self._value(instruction, source)
            if source.type == self._x86.X86_OP_IMM and self._held.get(target) == self._tls.pointer:
                named = (self._tls.pointer + source.imm) & MASK
            return None if named is None or not self._tls.has(named) else (target, named)
        if instruction.mnemonic == "lea":
            place = self._address(instruction, source)
            return None if place is None else (target, place)
        if instruction.mnemonic != "mov" or operands[0].size != 8:
            return None
        named = self._value(instruction, source)
        return None if named is None else (target, named)

    def _value(self, instruction: Any, source: Any) -> Optional[int]:
        """The variable's address that a register holds, or that a word of the global offset table names."""
        if source.type == self._x86.X86_OP_REG:
            return self._held.get(wide(instruction.reg_name(source.reg)))
        if source.type == self._x86.X86_OP_MEM and source.mem.base == self._x86.X86_REG_RIP:
            return self._slots.get((instruction.address + instruction.size + source.mem.disp) & MASK)
        return None

    def _is_thread_pointer(self, operand: Any) -> bool:
        """Whether an operand is the word at %fs:0, which holds its own address."""
        if operand.type != self._x86.X86_OP_MEM or operand.mem.segment != self._x86.X86_REG_FS:
            return False
        return not (operand.mem.base or operand.mem.index or operand.mem.disp)

    def _moves_thread_pointer(self, instruction: Any, operands: Any) -> bool:
        """Whether arithmetic changes a register that holds the thread pointer, so that it leads elsewhere."""
        is_register = len(operands) > 0 and operands[0].type == self._x86.X86_OP_REG
        return is_register and self._held.get(wide(instruction.reg_name(operands[0].reg))) == self._tls.pointer

    def _address(self, instruction: Any, operand: Any) -> Optional[int]:
        """Where a memory operand lies, as far as it is known: an index leaves it in the same variable."""
        memory = operand.mem
        if operand.type != self._x86.X86_OP_MEM or memory.segment not in (0, self._x86.X86_REG_FS):
            return None
        if memory.segment and not memory.base:
            place = (self._tls.pointer + memory.disp) & MASK
            return self._element(place) if memory.index else place
        if memory.base == self._x86.X86_REG_RIP:
            return int(instruction.address + instruction.size + memory.disp) & MASK
        parts = (wide(instruction.reg_name(register)) for register in (memory.base, memory.index) if register)
        held = [name for name in parts if name in self._held]
        self._accessed.update(held)
        named = [name for name in held if len(held) == 1 or self._held[name] != self._tls.pointer]
        if len(named) != 1:
            return None
        if self._held[named[0]] & MOVED:  # perhaps past the variable's end, and this place before the end
            return self._tls.in_block(self._held[named[0]] & MASK)
        place = self._tls.in_block((self._held[named[0]] + memory.disp) & MASK)
        if not (memory.base and memory.index) or len(held) == 2:
            return place
        return self._element(place if self._held[named[0]] == ANY_BLOCK else self._held[named[0]])

    def _element(self, base: int) -> Optional[int]:
        """The start of an indexed array; the code may name a place before it, in another variable's last bytes."""
        at = bisect_right(self._starts, base) - 1
        start, size = self._extents[at] if at >= 0 else (0, 0)
        return start if start in self._with_elements and start <= base < start + size // 2 else None

    def _note(self, uses: dict[int, set[str]], place: Optional[int]) -> None:
        """Enter the function for the variable that has the byte at `place`, if one has."""
        if place is None or not self._notes:
            return
        place &= MASK
        at = bisect_right(self._starts, place) - 1
        if at >= 0 and self._extents[at][0] <= place < sum(self._extents[at]):
            uses.setdefault(self._extents[at][0], set()).add(self._function)


def is_store(mnemonic: str, number: int) -> bool:
    """Return whether an instruction writes to its operand of that number, if it is in memory."""
    return number == 0 and mnemonic.rpartition(" ")[2].startswith(STORES)


def common(first: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    """What two ways to one place have in common."""
    return {name: place for name, place in first.items() if other.get(name) == place}


def wide(register: Optional[str]) -> str:
    """The 64-bit register that a register is a part of: `rax` of `eax`, `ax`, `al`; `r8` of `r8d`."""
    name = register or ""
    if name[:1] == "r" and name[1:2].isdigit():
        return name.rstrip("dwb")
    if name[:1] in ("e", "r") and len(name) == 3:
        return f"r{name[1:]}"
    if len(name) == 2 and name[1] in "xhl" and name[0] in "abcd":
        return f"r{name[0]}x"
    if name in ("si", "di", "bp", "sp"):
        return f"r{name}"
    return f"r{name[:2]}" if name in ("sil", "dil", "bpl", "spl") else name
