"""How the values of attributes are written, by their forms (DWARF 5, 7.5.6): how long they are, and what they can mean.

Takes a section's bytes; never looks up what a value leads to.
"""

from __future__ import annotations

import struct

from pieglobalsfind.dwarf import constants as dw

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
# struct's letters for forms of a fixed size (DWARF 5, table 7.6)
FIXED = {
    dw.DW_FORM_data2: "H",
    dw.DW_FORM_data4: "I",
    dw.DW_FORM_data8: "Q",
    dw.DW_FORM_data1: "B",
    dw.DW_FORM_flag: "B",
    dw.DW_FORM_ref1: "B",
    dw.DW_FORM_ref2: "H",
    dw.DW_FORM_ref4: "I",
    dw.DW_FORM_ref8: "Q",
    dw.DW_FORM_ref_sup4: "I",
    dw.DW_FORM_data16: "16s",
    dw.DW_FORM_ref_sig8: "Q",
    dw.DW_FORM_ref_sup8: "Q",
    dw.DW_FORM_strx1: "B",
    dw.DW_FORM_strx2: "H",
    dw.DW_FORM_strx3: "3s",
    dw.DW_FORM_strx4: "I",
    dw.DW_FORM_addrx1: "B",
    dw.DW_FORM_addrx2: "H",
    dw.DW_FORM_addrx3: "3s",
    dw.DW_FORM_addrx4: "I",
}
# offsets in sections: 4 or 8 bytes
OF_SECTION = (
    dw.DW_FORM_strp,
    dw.DW_FORM_ref_addr,
    dw.DW_FORM_sec_offset,
    dw.DW_FORM_strp_sup,
    dw.DW_FORM_line_strp,
    dw.DW_FORM_GNU_ref_alt,
    dw.DW_FORM_GNU_strp_alt,
)
LEB128 = (
    dw.DW_FORM_sdata,
    dw.DW_FORM_udata,
    dw.DW_FORM_ref_udata,
    dw.DW_FORM_strx,
    dw.DW_FORM_addrx,
    dw.DW_FORM_loclistx,
    dw.DW_FORM_rnglistx,
    dw.DW_FORM_GNU_addr_index,
    dw.DW_FORM_GNU_str_index,
)
# blocks whose length has a fixed size
COUNTED = {dw.DW_FORM_block2: "H", dw.DW_FORM_block4: "I", dw.DW_FORM_block1: "B"}


class UnreadableError(Exception):
    """The unit is not written as this module expects."""


def leb128(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned LEB128 number and where it ends (DWARF 5, 7.6); `IndexError` behind the data."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
        if shift > 63:
            raise UnreadableError


def behind_value(data: bytes, at: int, form: int) -> int:
    """Where a value of a form of variable size ends."""
    if form in LEB128:
        return leb128(data, at)[1]
    if form == dw.DW_FORM_string:
        end = data.find(b"\0", at)
        if end < 0:
            raise UnreadableError
        return end + 1
    length, at = _block_length(data, at, form)
    return at + length


def _block_length(data: bytes, at: int, form: int) -> tuple[int, int]:
    if form in COUNTED:
        counted = struct.Struct("<" + COUNTED[form])
        return counted.unpack_from(data, at)[0], at + counted.size
    return leb128(data, at)
