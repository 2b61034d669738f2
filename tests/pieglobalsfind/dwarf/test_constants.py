"""Our numbers are those that pyelftools has by the same names, or, where it has none, those of the standard's lists."""

from __future__ import annotations

from elftools.dwarf import dwarf_expr, enums

from pieglobalsfind.dwarf import constants

# what pyelftools has not, or by another name: DWARF 5, tables 7.2 and 7.3, and dwarfstd.org/languages.html
NEWER = {
    "DW_TAG_template_type_parameter": 0x2F,
    "DW_UT_type": 0x02,
    "DW_UT_skeleton": 0x04,
    "DW_LANG_C_plus_plus_20": 0x2B,
    "DW_LANG_C17": 0x2C,
    "DW_LANG_Fortran18": 0x2D,
}


def test_numbers_are_those_of_the_standard() -> None:
    known: dict[str, object] = dict(NEWER)
    for one in (enums.ENUM_DW_TAG, enums.ENUM_DW_AT, enums.ENUM_DW_FORM, enums.ENUM_DW_ATE, enums.ENUM_DW_LANG):
        known.update(one)
    known.update(dwarf_expr.DW_OP_name2opcode)
    ours = {name: value for name, value in vars(constants).items() if name.startswith("DW_")}
    assert len(ours) > 150
    assert ours == {name: known[name] for name in ours}
