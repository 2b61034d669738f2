"""The bytes of an argument as GDB prints them in a backtrace, without having the rank's symbols moved to GDB.

Takes GDB's own types and an argument's bytes; has GDB print each distinct value once, as a value of its type. An
address in the rank's own copy is printed with the name that the same place has in the copy of which GDB has the
symbols. What may look otherwise than in a backtrace is `UnsupportedError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gdb

from gdbext.gdb_api.run_gdb import execute, gdb_errors
from pieglobalsfind.debugger.address_names import Addresses
from pieglobalsfind.dwarf.expression import UnsupportedError
from pieglobalsfind.stacks.stack_memory import Memory

NUMBERS = (
    gdb.TYPE_CODE_INT,
    gdb.TYPE_CODE_CHAR,
    gdb.TYPE_CODE_BOOL,
    gdb.TYPE_CODE_ENUM,
    gdb.TYPE_CODE_FLT,
    gdb.TYPE_CODE_FLAGS,
    gdb.TYPE_CODE_COMPLEX,
)
AGGREGATES = (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION, gdb.TYPE_CODE_ARRAY, gdb.TYPE_CODE_STRING)
CHARACTERS = (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_CHAR)
WIDE_CHARACTERS = ("wchar_t", "char16_t", "char32_t", "char8_t")  # GDB tells them by their names
LANGUAGES = ("c", "c++", "fortran")
REFERENCES = (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF)
AS_IN_BACKTRACES: Any = {"summary": True}  # from GDB 13
SHORT = "..."  # what GDB shows of aggregates in backtraces


class Language:
    """GDB's language while values are printed: that of the frame, which need not be the selected one's."""

    def __init__(self) -> None:
        self._set = ""

    def use(self, name: str) -> None:
        """Make GDB's language `name`, unless it is that already."""
        if self._set != name:
            execute(f"set language {name}")
            self._set = name

    @contextmanager
    def restored(self) -> Iterator[None]:
        """GDB chooses again by itself afterwards."""
        try:
            yield
        finally:
            if self._set:
                self._set = ""
                execute("set language auto")


class SymbolNames:
    """` <symbol+4>` after addresses, as GDB has it."""

    def __init__(self) -> None:
        self._pointer = gdb.lookup_type("void").pointer()
        self._known: dict[int, str] = {}

    def behind(self, address: int) -> str:
        """Return what GDB prints after a pointer's number: ` <symbol+4>`, or ""."""
        if address not in self._known:
            text = gdb.Value(address).cast(self._pointer).format_string()
            self._known[address] = text.removeprefix(f"{address:#x}")
        return self._known[address]


@dataclass(frozen=True)
class FrameMemory:
    """What printing one rank's arguments may look at."""

    addresses: Addresses
    memory: Memory


Text = Callable[[bytes, FrameMemory], str]


class Printer:
    """How the arguments of one type look; each distinct number is printed once."""

    def __init__(self, type_: gdb.Type, language: str, languages: Language, names: SymbolNames) -> None:
        self._type = type_
        self._language, self._languages = language, languages
        self._names = names
        self._known: dict[bytes, str] = {}
        bare = bare_type(type_)
        self.size = int(type_.sizeof)
        self._by_python = has_printer(type_, self.size)
        is_reference = bare.code in REFERENCES
        self.needs_address = self._by_python and not is_reference
        named = bare_type(bare.target()) if is_reference else bare
        self.is_short = named.code in AGGREGATES and not self._by_python
        self.text: Text = self._chosen(bare)

    def _chosen(self, bare: gdb.Type) -> Text:
        if self._by_python and bare.code in REFERENCES:
            return lambda data, frame_memory: self._by_printer(gdb.Value(data, self._type))
        if self._by_python or self._language not in LANGUAGES:
            return self._unsupported
        if bare.code == gdb.TYPE_CODE_INT and self.size in (2, 4, 8) and not _is_wide_character(self._type):
            return self._signed if bare.is_signed else self._unsigned
        if bare.code in NUMBERS:
            return self._number
        if bare.code == gdb.TYPE_CODE_PTR and points_to_plain(bare):
            if self._language == "fortran":
                return self._unsupported if is_small_integer(bare.target()) else self._pointer
            return self._string if _points_to_text(bare) else self._pointer
        if self._language == "c++" and bare.code in REFERENCES:
            return self._referenced(Printer(bare.target(), self._language, self._languages, self._names))
        return self._unsupported

    def at(self, address: int) -> str:
        """A value that Python prints, from the target's memory."""
        return self._by_printer(gdb.Value(address).cast(self._type.pointer()).dereference())

    def _by_printer(self, shown: gdb.Value) -> str:
        with gdb_errors():
            self._languages.use(self._language)
            found = shown.format_string(**AS_IN_BACKTRACES)
        if "0x" in found:
            raise UnsupportedError("an address in what Python prints")
        return str(found)

    def _unsupported(self, data: bytes, frame_memory: FrameMemory) -> str:
        raise UnsupportedError(f"arguments of type {self._type}")

    def _signed(self, data: bytes, frame_memory: FrameMemory) -> str:
        return str(int.from_bytes(data, "little", signed=True))

    def _unsigned(self, data: bytes, frame_memory: FrameMemory) -> str:
        return str(int.from_bytes(data, "little"))

    def _number(self, data: bytes, frame_memory: FrameMemory) -> str:
        found = self._known.get(data)
        if found is None:
            found = self._known[data] = self._printed(data)
        return found

    def _printed(self, data: bytes) -> str:
        with gdb_errors():
            self._languages.use(self._language)
            return str(gdb.Value(data, self._type).format_string())

    def _behind(self, address: int, frame_memory: FrameMemory) -> str:
        named = frame_memory.addresses.in_focus(address) if address else None
        return self._names.behind(named) if named is not None else ""

    def _pointer(self, data: bytes, frame_memory: FrameMemory) -> str:
        address = int.from_bytes(data, "little")
        return f"{address:#x}" + self._behind(address, frame_memory)

    def _string(self, data: bytes, frame_memory: FrameMemory) -> str:
        """GDB reads the string where it is, and may not know the name of that place."""
        address = int.from_bytes(data, "little")
        text, behind = self._printed(data), self._behind(address, frame_memory)
        start = f"{address:#x}"
        if not address or text.startswith(start + behind + " ") or text == start + behind:
            return text
        if not text.startswith(start) or text.startswith(start + " <"):
            raise UnsupportedError("a string at an address with another name")
        return start + behind + text[len(start) :]

    def _referenced(self, target: Printer) -> Text:
        def text(data: bytes, frame_memory: FrameMemory) -> str:
            address = int.from_bytes(data, "little")
            return f"@{address:#x}: {target.there(address, frame_memory)}"

        return text

    def there(self, address: int, frame_memory: FrameMemory) -> str:
        """The value at an address."""
        if self.is_short:
            return SHORT
        if self.needs_address:
            return self.at(address)
        return self.text(frame_memory.memory.read(address, self.size), frame_memory)


def bare_type(type_: gdb.Type) -> gdb.Type:
    """Return a type without typedefs, const and volatile."""
    return type_.strip_typedefs().unqualified()


def has_printer(type_: gdb.Type, size: int) -> bool:
    """Whether values of a type are printed by Python."""
    if size == 0 or type_.dynamic:
        return False
    return gdb.default_visualizer(gdb.Value(bytes(size), type_)) is not None


def _is_wide_character(type_: gdb.Type) -> bool:
    while type_.unqualified().name not in WIDE_CHARACTERS:
        if type_.code != gdb.TYPE_CODE_TYPEDEF:
            return False
        type_ = type_.target()
    return True


def _points_to_text(pointer: gdb.Type) -> bool:
    target = pointer.target()
    bare = bare_type(target)
    return _is_wide_character(target) or (bare.code in CHARACTERS and bare.sizeof == 1)


def is_small_integer(type_: gdb.Type) -> bool:
    """What GDB takes for text in Fortran."""
    bare = bare_type(type_)
    return bare.code == gdb.TYPE_CODE_INT and bare.sizeof == 1


def points_to_plain(pointer: gdb.Type) -> bool:
    """Not to a table of virtual functions: GDB prints more of those."""
    return "__vtbl_ptr_type" not in str(pointer)
