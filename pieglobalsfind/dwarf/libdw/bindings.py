"""elfutils' libdw through ctypes: the library, its structures and prototypes, and strings that it returned."""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
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
from functools import lru_cache
from typing import Any, Optional

from pieglobalsfind.errors import ObjectFileError

LIBRARY = "libdw.so.1"
LONGEST_STRING = 16384  # bytes of a name; mangled C++ names of some thousand do occur


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


def text(address: Optional[int]) -> str:
    """The NUL-terminated string at an address that libdw returned, cut at `LONGEST_STRING` bytes."""
    if not address:
        return ""
    data = ctypes.string_at(address)
    return data[:LONGEST_STRING].decode("utf-8", "replace")


def inline_text(address: int, end: int) -> str:
    """The same of a string that lies in a section which ends there; "" if the string does not end in it."""
    data, terminator, _ = ctypes.string_at(address, min(end - address, LONGEST_STRING + 1)).partition(b"\0")
    is_whole = bool(terminator) or len(data) > LONGEST_STRING
    return data[:LONGEST_STRING].decode("utf-8", "replace") if is_whole else ""


def section_places(dwarf: Optional[int]) -> list[tuple[int, int]]:
    """Where libdw has the sections of a Dwarf: (address, bytes)."""
    places, lib, section = [], library(), None
    elf = lib.dwarf_getelf(dwarf)
    while section := lib.elf_nextscn(elf, section):
        data = lib.elf_getdata(section, None)
        if data and data.contents.buffer and data.contents.size:
            places.append((data.contents.buffer, data.contents.size))
    return places
