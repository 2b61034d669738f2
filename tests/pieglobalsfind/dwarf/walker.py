"""The independent reader that ours is compared with: a plain walk over all DIEs by pyelftools.

Takes a path; gives, for every variable with a fixed place, what can be read off its DIE directly. It shares no code
with the reader under test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from elftools.dwarf.dwarf_expr import DWARFExprParser
from elftools.elf.elffile import ELFFile


@dataclass(frozen=True)
class Found:
    name: str
    place: int
    thread_local: bool
    line: int
    size: int


def walk(path: Path) -> set[Found]:
    """Every variable of the file, those of functions included; what is discarded or has no memory left out."""
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        end = max(segment["p_vaddr"] + segment["p_memsz"] for segment in elf.iter_segments("PT_LOAD"))
        dwarf = elf.get_dwarf_info()
        return {
            found
            for unit in dwarf.iter_CUs()
            for die in unit.iter_DIEs()
            if die.tag == "DW_TAG_variable" and (found := variable(die, unit, end)) is not None
        }


def variable(die: Any, unit: Any, end: int) -> Optional[Found]:
    if "DW_AT_location" not in die.attributes or die.attributes["DW_AT_location"].form not in ("DW_FORM_exprloc",):
        return None
    name, line = inherited(die, "DW_AT_name"), inherited(die, "DW_AT_decl_line")
    place = 0
    kind = ""
    for operation in DWARFExprParser(unit.structs).parse_expr(die.attributes["DW_AT_location"].value):
        if operation.op_name == "DW_OP_addr":
            kind, place = "memory", place + operation.args[0]
        elif operation.op_name == "DW_OP_addrx":
            kind, place = "memory", place + unit.dwarfinfo.get_addr(unit, operation.args[0])
        elif operation.op_name in ("DW_OP_const8u", "DW_OP_const4u", "DW_OP_plus_uconst"):
            place += operation.args[0]
        elif operation.op_name in ("DW_OP_form_tls_address", "DW_OP_GNU_push_tls_address"):
            kind = "thread"
        elif operation.op_name not in ("DW_OP_plus",):
            return None
    if not kind or not name or (kind == "memory" and not 0 < place < end):
        return None
    return Found(name.decode(), place, kind == "thread", line or 0, size_of(type_of(die)))


def chain(die: Any) -> Iterator[Any]:
    while die is not None:
        yield die
        key = next((one for one in ("DW_AT_specification", "DW_AT_abstract_origin") if one in die.attributes), None)
        die = die.get_DIE_from_attribute(key) if key else None


def inherited(die: Any, attribute: str) -> Any:
    return next((one.attributes[attribute].value for one in chain(die) if attribute in one.attributes), None)


def type_of(die: Any) -> Any:
    for one in chain(die):
        if "DW_AT_type" in one.attributes:
            return one.get_DIE_from_attribute("DW_AT_type")
    return None


def size_of(die: Any) -> int:
    """Size in bytes by DW_AT_byte_size or, for arrays, by dimensions; Fortran descriptors by gfortran's layout."""
    if die is None:
        return 0
    if "DW_AT_byte_size" in die.attributes:
        return int(die.attributes["DW_AT_byte_size"].value)
    if die.tag in ("DW_TAG_pointer_type", "DW_TAG_reference_type", "DW_TAG_rvalue_reference_type"):
        return 8
    if die.tag != "DW_TAG_array_type":
        return size_of(type_of(die))
    ranges = [child for child in die.iter_children() if child.tag == "DW_TAG_subrange_type"]
    if "DW_AT_data_location" in die.attributes:
        return 40 + 24 * len(ranges)
    size = size_of(type_of(die))
    for one in ranges:
        size *= count_of(one)
    return size


def count_of(die: Any) -> int:
    if "DW_AT_count" in die.attributes:
        return int(die.attributes["DW_AT_count"].value)
    if "DW_AT_upper_bound" not in die.attributes:
        return 0
    fortran = die.cu.get_top_DIE().attributes["DW_AT_language"].value in (0x07, 0x08, 0x0E, 0x22, 0x23)
    lower = die.attributes["DW_AT_lower_bound"].value if "DW_AT_lower_bound" in die.attributes else int(fortran)
    upper = die.attributes["DW_AT_upper_bound"].value
    return max(0, int(upper) - int(lower) + 1)
