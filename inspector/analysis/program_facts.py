"""What a program's file says of its variables and of how its code reaches them, before it runs.

Takes the path of an ELF file; gives facts alone. What they mean for a method stands in diagnoses.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from pieglobalsfind.dwarf import variable_cache
from pieglobalsfind.dwarf.types import COMMON, Array, Qualified, TypeTable, Variable, Variables
from pieglobalsfind.elf.file import (
    PF_W,
    PT_GNU_RELRO,
    PT_LOAD,
    PT_TLS,
    SHF_EXECINSTR,
    ElfFile,
    ProgramHeader,
)
from pieglobalsfind.elf.symbol_table import read_symbols
from pieglobalsfind.errors import ObjectFileError
from pieglobalsfind.model import Absent

from ..program.program_file import ProgramFile
from ..program.writers import UNKNOWN_CODE, is_decoded
from ..values.runtime_variables import RuntimeVariables
from ..values.untyped_variables import undescribed

DF_STATIC_TLS = 16
GUARD = "_ZGV"  # of a static of an inline function (Itanium C++ ABI, 5.1.4)
LARGEST_FUNCTION = 1 << 24  # bytes
CONVERSE = "ConverseInit"  # Charm++'s own first function
AMPIS = {"AMPI_Main", "AMPI_Main_cpp", "ampiCurrentStackUsage", CONVERSE}
SIMGRID = "libsimgrid.so"  # how the name begins of a library that it needs
SYSTEM = re.compile(
    r"(?:ld-linux|lib(?:c|m|dl|rt|pthread|gcc_s|stdc\+\+|c\+\+|c\+\+abi|gfortran|quadmath|atomic|gomp|simgrid))\b"
)
# Functions of the C library that keep something between calls (POSIX.1-2017, 2.9.1, and glibc's manual: MT-Unsafe race)
HIDDEN_STATE = frozenset(
    (
        *("strtok", "getopt", "getopt_long", "getopt_long_only"),
        *("rand", "srand", "random", "srandom", "initstate", "setstate"),
        *("drand48", "lrand48", "mrand48", "srand48", "seed48", "lcong48"),
        *("localtime", "gmtime", "asctime", "ctime", "ttyname", "l64a", "ecvt", "fcvt"),
        *("hcreate", "hsearch", "hdestroy", "crypt", "setkey", "encrypt"),
        *(
            "getpwnam",
            "getpwuid",
            "getpwent",
            "getgrnam",
            "getgrgid",
            "getgrent",
            "gethostbyname",
            "gethostbyaddr",
            "inet_ntoa",
        ),
    )
)
FS_PREFIX = b"\x64"
FS_OPERAND = re.compile(r"fs:\[([^]]*)\]")  # as capstone writes it
SMALL = re.compile(r"0x[0-9a-f]{1,3}|[0-9]")


@dataclass(frozen=True)
class Facts:
    """Addresses are vaddrs of the file. `variables` are those that code may write, each place once."""

    path: str
    variables: Union[tuple[Variable, ...], Absent]
    types: TypeTable = field(default_factory=lambda: TypeTable(()))  # of `variables`
    apart: int = 0  # variables of the MPI runtime, which are not among them
    undescribed: tuple[str, ...] = ()  # variables that debug information lacks, though it has others
    unaligned: Optional[ProgramHeader] = None  # a writable PT_LOAD that begins at no multiple of 8
    exception_tables: int = 0  # bytes of .gcc_except_table
    unique: tuple[tuple[str, int], ...] = ()  # STB_GNU_UNIQUE variables that may be written: name and address
    # instructions that reach thread-local storage by %fs without reading the word at 0
    direct: Union[tuple[int, ...], Absent] = ()
    reads_word: bool = True  # the processor's code reads the word at the thread pointer
    slots: tuple[str, ...] = ()  # own variables that GLOB_DAT relocations name
    misaligned: tuple[int, ...] = ()  # places of pointer relocations at no multiple of 8
    tls_size: int = 0
    static_tls: bool = False
    hidden: tuple[str, ...] = ()  # functions of libc it calls that keep state of their own between calls
    runtime: str = ""  # the runtime that the file was built for, where the file tells
    holds_runtime: bool = False  # the runtime's own code is in the file
    libraries: tuple[str, ...] = ()  # that it needs, but for the runtime's and those of the system and its compilers

    def counts(self) -> dict[tuple[str, str], int]:
        """Mutable variables by storage and language, as Table II of the PIEglobals authors' paper of 2011 counts."""
        if isinstance(self.variables, Absent):
            return {}
        return dict(sorted(Counter((variable.storage, variable.language) for variable in self.variables).items()))


def read_facts(path: str, variables: Optional[Union[Variables, Absent]] = None) -> Facts:
    """Raises `ObjectFileError` if `path` is not an ELF file. `variables`: its debug information, if it was read."""
    with ElfFile(path) as elf, ProgramFile(path) as file:
        declared = variable_cache.declared_or_why(path, elf.build_id) if variables is None else variables
        own = RuntimeVariables("", () if isinstance(declared, Absent) else declared)
        writable = mutable(elf, declared)
        wanted = (
            writable
            if isinstance(writable, Absent)
            else tuple(variable for variable in writable if variable not in own)
        )
        lacking = () if isinstance(declared, Absent) else undescribed(path, declared).variables
        tls = next((header for header in elf.program_headers if header.type == PT_TLS), None)
        kinds = file.processor.relocations
        words = [
            relocation.offset
            for relocation in file.relocations()
            if relocation.type in (kinds.absolute, kinds.relative)
        ]
        return Facts(
            path=path,
            variables=wanted,
            types=TypeTable(()) if isinstance(declared, Absent) else declared.types,
            apart=0 if isinstance(writable, Absent) or isinstance(wanted, Absent) else len(writable) - len(wanted),
            undescribed=tuple(sorted(variable.name for variable in lacking)),
            unaligned=next((load for load in loads(elf, PF_W) if load.vaddr % 8), None),
            exception_tables=sum(
                section.size for section in elf.sections if section.name.startswith(".gcc_except_table")
            ),
            unique=tuple(sorted(set(unique_symbols(elf, file)))),
            direct=direct_accesses(elf) if tls is not None and tls.memory_size else (),
            reads_word=file.processor.self_at is not None,
            slots=tuple(own_slots(elf, file)),
            misaligned=tuple(offset for offset in words if offset % 8),
            tls_size=tls.memory_size if tls is not None else 0,
            static_tls=bool(file.flags & DF_STATIC_TLS),
            hidden=tuple(sorted(file.imported & HIDDEN_STATE)),
            runtime=built_for(file),
            holds_runtime=CONVERSE in file.exported,
            libraries=tuple(name for name in file.needed if not SYSTEM.match(name)),
        )


def loads(elf: ElfFile, flag: int) -> list[ProgramHeader]:
    """Return the PT_LOAD headers that have a flag."""
    return [header for header in elf.program_headers if header.type == PT_LOAD and header.flags & flag]


# ---- variables ----


def mutable(elf: ElfFile, declared: Union[Variables, Absent]) -> Union[tuple[Variable, ...], Absent]:
    """The variables that debug information describes and that may be written, without what is constant."""
    return declared if isinstance(declared, Absent) else tuple(unique_places(_written_to(elf, declared)))


def _written_to(elf: ElfFile, declared: Variables) -> Iterator[Variable]:
    relro = [header for header in elf.program_headers if header.type == PT_GNU_RELRO]
    for variable in declared.variables:
        if is_constant(declared.types, variable.type):
            continue
        if variable.tls_offset is not None:
            yield variable
        elif variable.address is not None:
            inside = any(part.vaddr <= variable.address < part.end for part in loads(elf, PF_W))
            if inside and not any(part.vaddr <= variable.address < part.end for part in relro):
                yield variable


def is_constant(types: TypeTable, index: int) -> bool:
    """Whether the variable itself is const (not what it points to)."""
    described = types[index]
    if isinstance(described, Array):
        return is_constant(types, described.element)
    return isinstance(described, Qualified) and (described.qualifier == "const" or is_constant(types, described.target))


def unique_places(variables: Iterator[Variable]) -> Iterator[Variable]:
    """Units may declare one place several times, and members of a common block under several names."""
    seen: set[tuple[Optional[int], Optional[int], str]] = set()
    for variable in variables:
        key = (variable.address, variable.tls_offset, "" if variable.storage == COMMON else variable.name)
        if key not in seen:
            seen.add(key)
            yield variable


# ---- symbols and relocations ----


def built_for(file: ProgramFile) -> str:
    """AMPI renames the program's main and exports pointers of its own; a program for SMPI needs SimGrid's library."""
    if file.exported & AMPIS:
        return "ampi"
    return "smpi" if any(name.startswith(SIMGRID) for name in file.needed) else ""


def unique_symbols(elf: ElfFile, file: ProgramFile) -> Iterator[tuple[str, int]]:
    """Names and addresses of those that code may write: one instance of what is constant does no harm.

    Guards are none of the program's.
    """
    relro = [header for header in elf.program_headers if header.type == PT_GNU_RELRO]
    for symbol in file.symbols:
        if symbol.binding != "STB_GNU_UNIQUE" or symbol.type != "STT_OBJECT" or not symbol.is_defined:
            continue
        if not symbol.size or symbol.name.startswith(GUARD):
            continue
        is_writable = any(part.vaddr <= symbol.value < part.end for part in loads(elf, PF_W))
        if is_writable and not any(part.vaddr <= symbol.value < part.end for part in relro):
            yield symbol.name, symbol.value


def own_slots(elf: ElfFile, file: ProgramFile) -> Iterator[str]:
    """The file's own variables that its global offset table names by symbol."""
    for relocation in file.relocations():
        symbol = file.symbol(relocation)
        if relocation.type != file.processor.relocations.glob_dat or symbol is None or not symbol.is_defined:
            continue
        is_writable = any(part.vaddr <= symbol.value < part.end for part in loads(elf, PF_W))
        if is_writable and symbol.type == "STT_OBJECT" and symbol.size:
            yield symbol.name


def direct_accesses(elf: ElfFile) -> Union[tuple[int, ...], Absent]:
    """Return the instructions that reach thread-local storage by %fs and a register or a negative distance.

    Those of the control block (the word at %fs:0, the guard at %fs:0x28) have a small positive one.
    """
    if not is_decoded(elf):
        return UNKNOWN_CODE
    try:
        import capstone  # late: no other part needs it, and it takes time to load
    except ImportError:
        return Absent("capstone is not installed, which decodes instructions", "pip install 'ranklens[audit]'")
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.skipdata = True
    return tuple(decode_direct_accesses(elf, decoder))


def decode_direct_accesses(elf: ElfFile, decoder: Any) -> Iterator[int]:
    """Decode every function that has a byte like an %fs prefix in it, by a decoder of capstone's."""
    for start, code in functions(elf):
        if FS_PREFIX in code:
            for address, _, _, operands in decoder.disasm_lite(code, start):
                match = FS_OPERAND.search(operands)
                if match and not SMALL.fullmatch(match.group(1)):
                    yield address


def functions(elf: ElfFile) -> Iterator[tuple[int, bytes]]:
    """The code of each function that the symbol table knows; of a stripped file each section that holds code."""
    code = [section for section in elf.sections if section.flags & SHF_EXECINSTR]
    named = [] if elf.section(".symtab") is None else list(read_symbols(elf).addresses)
    for symbol in named:
        if any(section.address <= symbol.start < section.address + section.size for section in code):
            with suppress(ObjectFileError):
                yield symbol.start, elf.at(symbol.start, min(symbol.size, LARGEST_FUNCTION))
    if not named:
        for section in code:
            yield section.address, elf.section_bytes(section)
