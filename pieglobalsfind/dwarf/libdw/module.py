"""An ELF file that libdw has opened for its debug information.

Takes a path; finds separate debug files, split units and compressed sections as libdwfl does, each by its own copy.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from ctypes import byref, c_uint8, c_uint64, c_void_p
from functools import cached_property
from typing import Any, Optional

from pieglobalsfind.dwarf import constants as dw
from pieglobalsfind.dwarf.libdw import private_copy
from pieglobalsfind.dwarf.libdw.bindings import Attribute, Callbacks, Die, FindDebuginfo, library, section_places, text
from pieglobalsfind.dwarf.libdw.die_reader import Unit
from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.errors import ObjectFileError


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


class Module:
    """An ELF file opened for its debug information, with its separate debug file if it has one.

    Raises `ObjectFileError`, also where the file has another build-id than the wanted one.
    """

    def __init__(self, path: str, build_id: bytes = b"") -> None:
        self._session = None
        self.path = path
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
        """Files that this one names for its units, but that lack them or are not there."""
        bare = (unit.skeleton for unit in self.units() if unit.is_skeleton and unit.die is unit.skeleton)
        return tuple(self._own_string(die, dw.DW_AT_dwo_name, dw.DW_AT_GNU_dwo_name)[1] for die in bare)

    def call_frame_tables(self) -> tuple[int, ...]:
        """Dwarf_CFI handles of .eh_frame and .debug_frame, those that there are; they live as long as the module."""
        bias = c_uint64()
        calls = (
            self.lib.dwfl_module_eh_cfi(self._module, byref(bias)),
            self.lib.dwfl_module_dwarf_cfi(self._module, byref(bias)),
        )
        return tuple(call for call in calls if call)

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
        descriptor = private_copy.opened_split(self.path, folder, name) if name else -1
        if descriptor < 0:
            return None
        split, copy = Die(), b"/dev/fd/%d\0" % descriptor
        try:
            if not any(start <= place <= place + len(copy) <= start + size for start, size in self.section_places):
                return None
            original = ctypes.string_at(place, len(copy))
            ctypes.memmove(place, copy, len(copy))  # libdwfl maps files to be written to, for itself alone
            try:
                self.lib.dwarf_get_units(self._dwarf, before, byref(c_void_p()), None, None, None, byref(split))
            finally:
                ctypes.memmove(place, original, len(original))
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
