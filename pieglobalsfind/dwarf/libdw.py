"""elfutils' libdw through ctypes: its structures and prototypes, and DIEs read attribute by attribute.

Takes the path of an ELF file; finds separate debug files, split units and compressed sections as libdwfl does. It knows
what an attribute's form means and nothing of types or variables; it never trusts a sibling that points backwards.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from ctypes import (
    POINTER,
    byref,
    c_bool,
    c_char_p,
    c_int,
    c_long,
    c_size_t,
    c_ssize_t,
    c_uint,
    c_uint8,
    c_uint64,
    c_void_p,
)
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Optional

from pieglobalsfind.dwarf import constants as dw
from pieglobalsfind.dwarf import private_copy
from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.errors import ObjectFileError

LIBRARY = "libdw.so.1"
LONGEST_BLOCK = 4096  # bytes of a DWARF expression; real ones have a few dozen
LONGEST_STRING = 16384  # bytes of a name; mangled C++ names of some thousand do occur
# how values of attributes are written (DWARF 5, 7.5.6)
SIGNED_FORMS = (dw.DW_FORM_sdata, dw.DW_FORM_implicit_const)
BLOCK_FORMS = (dw.DW_FORM_block2, dw.DW_FORM_block4, dw.DW_FORM_block, dw.DW_FORM_block1, dw.DW_FORM_exprloc)
REFERENCE_FORMS = (
    dw.DW_FORM_ref_addr,
    dw.DW_FORM_ref1,
    dw.DW_FORM_ref2,
    dw.DW_FORM_ref4,
    dw.DW_FORM_ref8,
    dw.DW_FORM_ref_udata,
    dw.DW_FORM_ref_sup4,
    dw.DW_FORM_ref_sig8,
    dw.DW_FORM_ref_sup8,
    dw.DW_FORM_GNU_ref_alt,
)
# operations whose operand is an index, and what they mean once that is looked up
INDEXED = {
    dw.DW_OP_addrx: dw.DW_OP_addr,
    dw.DW_OP_GNU_addr_index: dw.DW_OP_addr,
    dw.DW_OP_constx: dw.DW_OP_const8u,
    dw.DW_OP_GNU_const_index: dw.DW_OP_const8u,
}


class Die(ctypes.Structure):
    """Dwarf_Die of libdw.h. `addr` is where the entry lies in our memory: unique, hence its identity."""

    _fields_ = [("addr", c_void_p), ("cu", c_void_p), ("abbrev", c_void_p), ("padding", c_long)]
    addr: Optional[int]
    cu: Optional[int]


class Attribute(ctypes.Structure):
    """Dwarf_Attribute of libdw.h."""

    _fields_ = [("code", c_uint), ("form", c_uint), ("valp", c_void_p), ("cu", c_void_p)]
    form: int
    cu: Optional[int]


class Block(ctypes.Structure):
    """Dwarf_Block of libdw.h."""

    _fields_ = [("length", c_uint64), ("data", c_void_p)]
    length: int
    data: Optional[int]


class Operation(ctypes.Structure):
    """Dwarf_Op of libdw.h."""

    _fields_ = [("atom", c_uint8), ("number", c_uint64), ("number2", c_uint64), ("offset", c_uint64)]
    atom: int
    number: int


class ElfData(ctypes.Structure):
    """Elf_Data of libelf.h."""

    _fields_ = [
        ("buffer", c_void_p),
        ("kind", c_int),
        ("version", c_uint),
        ("size", c_size_t),
        ("offset", ctypes.c_int64),
        ("align", c_size_t),
    ]
    buffer: Optional[int]
    size: int


class Callbacks(ctypes.Structure):
    """Dwfl_Callbacks of libdwfl.h."""

    _fields_ = [
        ("find_elf", c_void_p),
        ("find_debuginfo", c_void_p),
        ("section_address", c_void_p),
        ("debuginfo_path", c_void_p),
    ]


# Dwfl_Callbacks.find_debuginfo: module, user's data, its name, base, its file, debug link, checksum, the name found
FindDebuginfo = ctypes.CFUNCTYPE(
    c_int, c_void_p, c_void_p, c_char_p, c_uint64, c_char_p, c_char_p, ctypes.c_uint32, c_void_p
)

_DIE = POINTER(Die)
_ATTRIBUTE = POINTER(Attribute)
_UINT64 = POINTER(c_uint64)

# name: result, arguments
_PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "dwfl_begin": (c_void_p, (POINTER(Callbacks),)),
    "dwfl_end": (None, (c_void_p,)),
    "dwfl_errno": (c_int, ()),
    "dwfl_errmsg": (c_char_p, (c_int,)),
    "dwfl_report_offline": (c_void_p, (c_void_p, c_char_p, c_char_p, c_int)),
    "dwfl_report_end": (c_int, (c_void_p, c_void_p, c_void_p)),
    "dwfl_standard_find_debuginfo": (
        c_int,
        (c_void_p, c_void_p, c_char_p, c_uint64, c_char_p, c_char_p, ctypes.c_uint32, c_void_p),
    ),
    "dwfl_module_build_id": (c_int, (c_void_p, POINTER(c_void_p), _UINT64)),
    "dwfl_module_getdwarf": (c_void_p, (c_void_p, _UINT64)),
    "dwfl_module_info": (
        c_char_p,
        (c_void_p, c_void_p, _UINT64, _UINT64, _UINT64, _UINT64, POINTER(c_char_p), POINTER(c_char_p)),
    ),
    "dwfl_module_eh_cfi": (c_void_p, (c_void_p, _UINT64)),
    "dwfl_module_dwarf_cfi": (c_void_p, (c_void_p, _UINT64)),
    "dwarf_cfi_addrframe": (c_int, (c_void_p, c_uint64, POINTER(c_void_p))),
    "dwarf_frame_info": (c_int, (c_void_p, _UINT64, _UINT64, POINTER(c_bool))),
    "dwarf_frame_cfa": (c_int, (c_void_p, POINTER(POINTER(Operation)), POINTER(c_size_t))),
    "dwarf_frame_register": (
        c_int,
        (c_void_p, c_int, POINTER(Operation), POINTER(POINTER(Operation)), POINTER(c_size_t)),
    ),
    "dwarf_get_units": (
        c_int,
        (c_void_p, c_void_p, POINTER(c_void_p), POINTER(ctypes.c_uint16), POINTER(c_uint8), _DIE, _DIE),
    ),
    "dwarf_cu_getdwarf": (c_void_p, (c_void_p,)),
    "dwarf_getelf": (c_void_p, (c_void_p,)),
    "elf_nextscn": (c_void_p, (c_void_p, c_void_p)),
    "elf_getdata": (POINTER(ElfData), (c_void_p, c_void_p)),
    "dwarf_dieoffset": (c_uint64, (_DIE,)),
    "dwarf_offdie": (c_void_p, (c_void_p, c_uint64, _DIE)),
    "dwarf_tag": (c_int, (_DIE,)),
    "dwarf_child": (c_int, (_DIE, _DIE)),
    "dwarf_siblingof": (c_int, (_DIE, _DIE)),
    "dwarf_srclang": (c_int, (_DIE,)),
    "dwarf_attr": (c_void_p, (_DIE, c_uint, _ATTRIBUTE)),
    "dwarf_attr_integrate": (c_void_p, (_DIE, c_uint, _ATTRIBUTE)),
    "dwarf_formstring": (c_void_p, (_ATTRIBUTE,)),
    "dwarf_formudata": (c_int, (_ATTRIBUTE, _UINT64)),
    "dwarf_formsdata": (c_int, (_ATTRIBUTE, POINTER(ctypes.c_int64))),
    "dwarf_formaddr": (c_int, (_ATTRIBUTE, _UINT64)),
    "dwarf_formflag": (c_int, (_ATTRIBUTE, POINTER(c_bool))),
    "dwarf_formblock": (c_int, (_ATTRIBUTE, POINTER(Block))),
    "dwarf_formref_die": (c_void_p, (_ATTRIBUTE, _DIE)),
    "dwarf_getlocation": (c_int, (_ATTRIBUTE, POINTER(POINTER(Operation)), POINTER(c_size_t))),
    "dwarf_getlocation_addr": (
        c_int,
        (_ATTRIBUTE, c_uint64, POINTER(POINTER(Operation)), POINTER(c_size_t), c_size_t),
    ),
    "dwarf_getlocation_attr": (c_int, (_ATTRIBUTE, POINTER(Operation), _ATTRIBUTE)),
    "dwarf_getsrcfiles": (c_int, (_DIE, POINTER(c_void_p), POINTER(c_size_t))),
    "dwarf_filesrc": (c_void_p, (c_void_p, c_size_t, c_void_p, c_void_p)),
    "dwarf_ranges": (c_ssize_t, (_DIE, c_ssize_t, _UINT64, _UINT64, _UINT64)),
    "dwarf_getsrclines": (c_int, (_DIE, POINTER(c_void_p), POINTER(c_size_t))),
    "dwarf_onesrcline": (c_void_p, (c_void_p, c_size_t)),
    "dwarf_lineaddr": (c_int, (c_void_p, _UINT64)),
    "dwarf_linebeginstatement": (c_int, (c_void_p, POINTER(c_bool))),
    "dwarf_lineendsequence": (c_int, (c_void_p, POINTER(c_bool))),
    "dwarf_linesrc": (c_void_p, (c_void_p, c_void_p, c_void_p)),
    "dwarf_lineno": (c_int, (c_void_p, POINTER(c_int))),
}


@lru_cache(maxsize=1)
def library() -> Any:
    """The loaded libdw with prototypes set; raises `ObjectFileError` when this machine has none."""
    try:
        loaded = ctypes.CDLL(LIBRARY)
        for name, (result, arguments) in _PROTOTYPES.items():
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        hint = "install elfutils' libdw (Debian: apt-get install libdw1)"
        raise ObjectFileError(f"debug information can't be read without {LIBRARY} ({error})", hint) from error
    return loaded


def _find_debug_file(
    module: int, data: int, name: bytes, base: int, file: Optional[bytes], link: Optional[bytes], *words: Any
) -> int:
    """A copy of the file's separate debug file, or of the supplementary one that `link` names then; -1 without one."""
    path = os.fsdecode(name)
    if link and link == private_copy.refers_to(path)[0]:
        return private_copy.opened_supplementary(path)
    descriptor = private_copy.opened_debug_file(path, build_id_of(module))
    if descriptor >= 0 or not os.environ.get("DEBUGINFOD_URLS"):
        return descriptor
    # no one writes into what a server sent: it replaces another file, or is removed
    return int(library().dwfl_standard_find_debuginfo(module, data, name, base, file, link, *words))


find_debug_file = FindDebuginfo(_find_debug_file)  # libdwfl calls it as long as modules are open


def text(address: Optional[int]) -> str:
    """The NUL-terminated string at an address that libdw returned, cut at `LONGEST_STRING` bytes."""
    if not address:
        return ""
    found = ctypes.string_at(address)
    return found[:LONGEST_STRING].decode("utf-8", "replace")


def inline_text(address: int, end: int) -> str:
    """The same of a string that lies in a section which ends there; "" if the string does not end in it."""
    found, terminator, _ = ctypes.string_at(address, min(end - address, LONGEST_STRING + 1)).partition(b"\0")
    is_whole = bool(terminator) or len(found) > LONGEST_STRING
    return found[:LONGEST_STRING].decode("utf-8", "replace") if is_whole else ""


def section_places(dwarf: Optional[int]) -> list[tuple[int, int]]:
    """Where libdw has the sections of a Dwarf: (address, bytes)."""
    places, lib, section = [], library(), None
    elf = lib.dwarf_getelf(dwarf)
    while section := lib.elf_nextscn(elf, section):
        data = lib.elf_getdata(section, None)
        if data and data.contents.buffer and data.contents.size:
            places.append((data.contents.buffer, data.contents.size))
    return places


@dataclass(frozen=True)
class Unit:
    """A unit's DIE; for a split unit `die` is the full one of the .dwo file, and `skeleton` the object file's."""

    die: Die
    skeleton: Die
    holds_type: bool = False
    is_skeleton: bool = False


class Reader:
    """Reads DIEs of one opened file: every method is one question about one DIE."""

    def __init__(self) -> None:
        self.lib = library()
        self._attribute = Attribute()
        # millions of calls: what they need is looked up once (a structure passes for a pointer to it)
        self._tag, self._following = self.lib.dwarf_tag, self.lib.dwarf_siblingof
        self._own, self._inherited = self.lib.dwarf_attr, self.lib.dwarf_attr_integrate
        self._section = (0, 0)  # where the one is that had the last inline string

    def tag(self, die: Die) -> int:
        """Return a DIE's tag."""
        return int(self._tag(die))

    def offset(self, die: Die) -> int:
        """Where the DIE is in its section, in bytes."""
        return int(self.lib.dwarf_dieoffset(die))

    def die_at(self, unit: Die, offset: int) -> Optional[Die]:
        """The DIE at an offset in the section of a unit; None if there can't be one."""
        die = Die()
        return die if self.lib.dwarf_offdie(self.lib.dwarf_cu_getdwarf(unit.cu), offset, die) else None

    def children(self, die: Die) -> Iterator[Die]:
        """The DIE's children in order. Stops where a damaged file would lead backwards."""
        following, child = self._following, Die()
        if self.lib.dwarf_child(die, child) != 0:
            return
        address = child.addr or 0
        while True:
            yield child
            sibling = Die()
            if following(child, sibling) != 0:
                return
            child, before = sibling, address
            address = sibling.addr or 0
            if address <= before:
                return

    def has(self, die: Die, code: int) -> bool:
        """Return whether a DIE itself has an attribute."""
        return bool(self._own(die, code, self._attribute))

    def _find(self, die: Die, code: int, inherited: bool = False) -> Optional[Attribute]:
        find = self._inherited if inherited else self._own
        return self._attribute if find(die, code, self._attribute) else None

    def string(self, die: Die, code: int) -> str:
        """A string attribute, of the DIE or of what it specifies or was made from; "" without one."""
        attribute = self._find(die, code, inherited=True)
        return self._text(attribute) if attribute is not None else ""

    def own_string(self, die: Die, code: int) -> str:
        """Return a DIE's own string attribute, or ""."""
        attribute = self._find(die, code)
        return self._text(attribute) if attribute is not None else ""

    def _text(self, attribute: Attribute) -> str:
        """libdw has seen to the end of strings in string sections, not of those in a DIE."""
        address = self.lib.dwarf_formstring(byref(attribute))
        if attribute.form != dw.DW_FORM_string or not address:
            return text(address)
        if not self._section[0] <= address < self._section[1]:
            places = section_places(self.lib.dwarf_cu_getdwarf(attribute.cu))
            around = (place for place in places if place[0] <= address < sum(place))
            start, size = next(around, (address, 0))
            self._section = start, start + size
        return inline_text(address, self._section[1])

    def flag(self, die: Die, code: int) -> bool:
        """Return whether a DIE, or what it refers to, has a flag set."""
        attribute = self._find(die, code, inherited=True)
        value = c_bool()
        return attribute is not None and self.lib.dwarf_formflag(byref(attribute), byref(value)) == 0 and value.value

    def number(self, die: Die, code: int) -> Optional[int]:
        """A constant attribute; negative where its form says so (DWARF 5, 7.5.5). None without one."""
        attribute = self._find(die, code)
        if attribute is None or attribute.form in BLOCK_FORMS or attribute.form in REFERENCE_FORMS:
            return None
        if attribute.form in SIGNED_FORMS:
            signed = ctypes.c_int64()
            return signed.value if self.lib.dwarf_formsdata(byref(attribute), byref(signed)) == 0 else None
        value = c_uint64()
        return value.value if self.lib.dwarf_formudata(byref(attribute), byref(value)) == 0 else None

    def block(self, die: Die, code: int) -> Optional[bytes]:
        """A block or expression attribute as bytes, or None (also when it is absurdly long)."""
        attribute = self._find(die, code)
        block = Block()
        if (
            attribute is None
            or attribute.form not in BLOCK_FORMS
            or self.lib.dwarf_formblock(byref(attribute), byref(block))
        ):
            return None
        return ctypes.string_at(block.data, block.length) if block.data and block.length <= LONGEST_BLOCK else None

    def reference(self, die: Die, code: int, inherited: bool = False) -> Optional[Die]:
        """The DIE that a reference attribute names (any unit, type units and supplementary files included)."""
        attribute = self._find(die, code, inherited)
        named = Die()
        if attribute is None or not self.lib.dwarf_formref_die(byref(attribute), byref(named)):
            return None
        return named

    def location(self, die: Die) -> tuple[tuple[int, int], ...]:
        """DW_AT_location as (operation, operand); indexed addresses and constants (split units) resolved."""
        attribute = self._find(die, dw.DW_AT_location)
        if attribute is None:
            return ()
        operations, count = POINTER(Operation)(), c_size_t()
        if self.lib.dwarf_getlocation(byref(attribute), byref(operations), byref(count)) != 0 or count.value > 16:
            return ()
        return tuple(self.operand(attribute, operations[index]) for index in range(count.value))

    def operand(self, location: Attribute, operation: Operation) -> tuple[int, int]:
        """An operation with its first operand; an index into a table becomes what stands there."""
        if operation.atom not in INDEXED:
            return operation.atom, operation.number
        attribute, value = Attribute(), c_uint64()
        if self.lib.dwarf_getlocation_attr(byref(location), byref(operation), byref(attribute)) != 0:
            return 0, 0
        meant = INDEXED[operation.atom]
        read = self.lib.dwarf_formaddr if meant == dw.DW_OP_addr else self.lib.dwarf_formudata
        return (meant, value.value) if read(byref(attribute), byref(value)) == 0 else (0, 0)

    def declared_at(self, die: Die, units: dict[Optional[int], Unit]) -> tuple[str, int]:
        """DW_AT_decl_file as the line table names it, and DW_AT_decl_line; "" and 0 when unknown.

        Not by dwarf_decl_file(): it aborts the process when a unit's line table is missing (elfutils 0.188).
        """
        file, line = self._number_inherited(die, dw.DW_AT_decl_file), self._number_inherited(die, dw.DW_AT_decl_line)
        unit = units.get(file[1])
        return (self.file_name(unit, file[0]) if unit is not None else ""), line[0]

    def _number_inherited(self, die: Die, code: int) -> tuple[int, Optional[int]]:
        """An unsigned attribute and the unit (Dwarf_CU) in which it stands."""
        attribute, value = self._find(die, code, inherited=True), c_uint64()
        if attribute is None or self.lib.dwarf_formudata(byref(attribute), byref(value)) != 0:
            return 0, None
        return value.value, attribute.cu

    def file_name(self, unit: Unit, number: int) -> str:
        """A file of the unit's line table by its number, "" if there is none."""
        for die in (unit.die, unit.skeleton):
            files, count = c_void_p(), c_size_t()
            if die.addr and self.lib.dwarf_getsrcfiles(byref(die), byref(files), byref(count)) == 0:
                return text(self.lib.dwarf_filesrc(files, number, None, None)) if number < count.value else ""
        return ""

    def ranges(self, die: Die, limit: int = 100_000) -> Iterator[tuple[int, int]]:
        """The [low, high) address ranges of a unit or function."""
        base, low, high, offset = c_uint64(), c_uint64(), c_uint64(), 0
        for _ in range(limit):
            offset = self.lib.dwarf_ranges(byref(die), offset, byref(base), byref(low), byref(high))
            if offset <= 0:
                return
            yield low.value, high.value

    def language(self, unit: Die) -> int:
        """Return a unit's DW_LANG code."""
        return int(self.lib.dwarf_srclang(byref(unit)))


class Module:
    """An ELF file opened for its debug information, with its separate debug file if it has one.

    Raises `ObjectFileError`, also where the file has another build-id than the wanted one.
    """

    def __init__(self, path: str, build_id: bytes = b"") -> None:
        self._session = None
        self._path = path
        self._units: Optional[tuple[Unit, ...]] = None
        self.lib = library()
        self._callbacks = Callbacks(
            find_elf=ctypes.cast(self.lib.dwfl_build_id_find_elf, c_void_p).value,
            find_debuginfo=ctypes.cast(find_debug_file, c_void_p).value,
            section_address=ctypes.cast(self.lib.dwfl_offline_section_address, c_void_p).value,
        )
        descriptor = private_copy.opened(path)
        self._session = self.lib.dwfl_begin(byref(self._callbacks))
        module = None
        if self._session:
            name = os.fsencode(path)  # the module's: callbacks get it whatever they look for
            module = self.lib.dwfl_report_offline(self._session, name, name, descriptor)
        if not module:
            os.close(descriptor)
            message = text_of_error(self.lib)
            self.close()
            raise ObjectFileError(f"{path} can't be opened as an ELF file ({message})")
        self.lib.dwfl_report_end(self._session, None, None)
        self._module = module
        if build_id and (build_id_of(module) or read_build_id(path)) != build_id:
            self.close()
            hint = "put back the file that was running, or look at a new run"
            raise ObjectFileError(f"{path} is not the file with build-id {build_id.hex()} any more", hint)
        bias = c_uint64()
        self._dwarf = self.lib.dwfl_module_getdwarf(module, byref(bias))
        start, end = c_uint64(), c_uint64()
        self.lib.dwfl_module_info(module, None, byref(start), byref(end), None, None, None, None)
        self.low, self.high = start.value - bias.value, end.value - bias.value

    @property
    def has_debug_information(self) -> bool:
        """Return whether the module has DWARF."""
        return bool(self._dwarf)

    @property
    def build_id(self) -> bytes:
        """b"" without one."""
        return build_id_of(self._module)

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the files which this one names for its units, and which lack them."""
        bare = (unit.skeleton for unit in self.units() if unit.is_skeleton and unit.die is unit.skeleton)
        return tuple(self._own_string(die, dw.DW_AT_dwo_name, dw.DW_AT_GNU_dwo_name)[1] for die in bare)

    def call_frame_tables(self) -> tuple[int, ...]:
        """Dwarf_CFI handles of .eh_frame and .debug_frame, those that there are; they live as long as the module."""
        bias = c_uint64()
        found = (
            self.lib.dwfl_module_eh_cfi(self._module, byref(bias)),
            self.lib.dwfl_module_dwarf_cfi(self._module, byref(bias)),
        )
        return tuple(one for one in found if one)

    def units(self) -> tuple[Unit, ...]:
        """Every unit, in the order of the file; what is split from it is looked for once."""
        if self._units is None:
            self._units = tuple(self._read_units())
        return self._units

    def _read_units(self) -> Iterator[Unit]:
        unit, following = c_void_p(), c_void_p()
        version, kind = ctypes.c_uint16(), c_uint8()
        while self._dwarf:
            die, more = Die(), (byref(following), byref(version), byref(kind))
            if self.lib.dwarf_get_units(self._dwarf, unit, *more, byref(die), None) != 0:
                return
            is_skeleton = kind.value == dw.DW_UT_skeleton
            split = self._split(unit, die) if is_skeleton else None
            unit.value = following.value
            yield Unit(split or die, die, kind.value == dw.DW_UT_type, is_skeleton)

    def _split(self, before: c_void_p, skeleton: Die) -> Optional[Die]:
        """The full unit of a skeleton, that of the unit after `before`; None if its file is not there.

        libdw opens that file by the name in the skeleton, and takes it in no other way: for the time of that
        call the name is that of our copy.
        """
        place, name = self._own_string(skeleton, dw.DW_AT_dwo_name, dw.DW_AT_GNU_dwo_name)
        _, folder = self._own_string(skeleton, dw.DW_AT_comp_dir)
        descriptor = private_copy.opened_split(self._path, folder, name) if name else -1
        if descriptor < 0:
            return None
        split, copy = Die(), b"/dev/fd/%d\0" % descriptor
        try:
            if not any(start <= place <= place + len(copy) <= start + size for start, size in self.section_places):
                return None
            said = ctypes.string_at(place, len(copy))
            ctypes.memmove(place, copy, len(copy))  # libdwfl maps files to be written to, for itself alone
            try:
                self.lib.dwarf_get_units(self._dwarf, before, byref(c_void_p()), None, None, None, byref(split))
            finally:
                ctypes.memmove(place, said, len(said))
        finally:
            os.close(descriptor)
        return split if split.addr else None

    def _own_string(self, die: Die, *codes: int) -> tuple[int, str]:
        """The first of these attributes that the DIE has: where its text lies in our memory, and the text."""
        attribute = Attribute()
        for code in codes:
            if self.lib.dwarf_attr(die, code, attribute):
                address = self.lib.dwarf_formstring(attribute)
                return address or 0, text(address)
        return 0, ""

    @cached_property
    def section_places(self) -> list[tuple[int, int]]:
        """(start, size) in our memory of the sections in which the file's own DIEs lie."""
        return section_places(self._dwarf)

    def __del__(self) -> None:
        if getattr(self, "_session", None):
            self.close()

    def close(self) -> None:
        """Release everything; DIEs of this module must not be used any more."""
        if self._session:
            self.lib.dwfl_end(self._session)
        self._session = self._dwarf = self._module = None
        self._units = ()
        self.section_places = []


def build_id_of(module: int) -> bytes:
    """The build-id of a Dwfl_Module, b"" without one."""
    place, vaddr = c_void_p(), c_uint64()
    size = library().dwfl_module_build_id(module, byref(place), byref(vaddr))
    return ctypes.string_at(place.value, size) if size > 0 and place.value else b""


def read_build_id(path: str) -> bytes:
    """As our own reader finds it: libdw takes a build-id whose length is not a multiple of 4 bytes for none."""
    try:
        with ElfFile(path) as file:
            return file.build_id
    except ObjectFileError:
        return b""


def text_of_error(lib: Any) -> str:
    """libdwfl's message for what went wrong last."""
    message: Optional[bytes] = lib.dwfl_errmsg(-1)
    return message.decode("utf-8", "replace") if message else "unknown error"
