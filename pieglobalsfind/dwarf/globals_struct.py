"""Look up by its name the type of the struct that holds a program's globals.

Takes an open file and a name as the program gave it; gives the type with all that it needs, as one variable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from pieglobalsfind.dwarf import constants as dw
from pieglobalsfind.dwarf.libdw.bindings import Die
from pieglobalsfind.dwarf.libdw.die_reader import Reader
from pieglobalsfind.dwarf.libdw.die_walk import walk
from pieglobalsfind.dwarf.libdw.module import Module
from pieglobalsfind.dwarf.type_reader import RECORDS, TypeReader
from pieglobalsfind.dwarf.types import ROOT, TypeTable, Variable, Variables
from pieglobalsfind.dwarf.variables import LANGUAGES


def root(module: Module, type_name: str) -> Optional[Variables]:
    """The struct, class or typedef of that name, None if no unit defines it."""
    reader = Reader()
    units = tuple(module.units())
    languages = {unit.die.cu: LANGUAGES.get(reader.language(unit.die), "other") for unit in units}
    types = TypeReader(module, units, lambda die: "", lambda die: languages.get(die.cu) == "Fortran")
    wanted = type_name
    for tag in ("struct ", "class ", "union ", "type("):
        wanted = wanted[len(tag) :].rstrip(")") if wanted.startswith(tag) else wanted
    for unit in units:
        language = languages.get(unit.die.cu, "other")
        for die in definitions(reader, unit.die):
            if reader.own_string(die, dw.DW_AT_name) == wanted.rpartition("::")[2]:
                index = types.index(die)
                file, line = reader.declared_at(die, {unit.die.cu: unit})
                table = TypeTable(types)
                variable = Variable(type_name, "", file, line, index, table.size(index), ROOT, language, None)
                return Variables((variable,), table)
    return None


def definitions(reader: Reader, unit: Die) -> Iterator[Die]:
    """Named types that a unit defines, in namespaces, modules and functions too."""
    for die, tag, _ in walk(reader, unit, True, _holds_types):
        if (tag in RECORDS or tag == dw.DW_TAG_typedef) and not reader.has(die, dw.DW_AT_declaration):
            yield die


def _holds_types(die: Die, tag: int, around: bool) -> Optional[bool]:
    return True if tag in (dw.DW_TAG_namespace, dw.DW_TAG_module, dw.DW_TAG_subprogram) else None
