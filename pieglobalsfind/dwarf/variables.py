"""Finds every variable of static storage in a file's DIEs, with its name, place, type and storage.

Takes an opened `Module`; walks each unit once, DIE by DIE, without recursion. What stands around a variable is named
after all units were walked, as functions are named by types of any unit. Variables without memory (declarations, what
the compiler turned into constants, locals) are left out; so is what the linker discarded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from operator import itemgetter
from typing import NamedTuple, Optional

from pieglobalsfind.dwarf import constants as dw
from pieglobalsfind.dwarf.libdw.bindings import LONGEST_STRING, Die
from pieglobalsfind.dwarf.libdw.die_reader import Reader, Unit
from pieglobalsfind.dwarf.libdw.die_walk import walk
from pieglobalsfind.dwarf.libdw.module import Module
from pieglobalsfind.dwarf.thread_local_symbols import EXTERNAL, ThreadLocalSymbols
from pieglobalsfind.dwarf.type_names import MOST_PARAMETERS, type_name
from pieglobalsfind.dwarf.type_reader import (
    RECORDS,
    TypeReader,
    place_of,
)
from pieglobalsfind.dwarf.types import (
    COMMON,
    FILE_STATIC,
    FUNCTION_STATIC,
    GLOBAL,
    MODULE,
    THREAD_LOCAL,
    VOID,
    TypeTable,
    Variable,
    Variables,
)

TLS = (dw.DW_OP_form_tls_address, dw.DW_OP_GNU_push_tls_address)
PLACES = (dw.DW_AT_location, dw.DW_AT_const_value)
CONSTANTS = (dw.DW_OP_const1u, dw.DW_OP_const2u, dw.DW_OP_const4u, dw.DW_OP_const8u, dw.DW_OP_constu)

LANGUAGES = {
    **dict.fromkeys((dw.DW_LANG_C89, dw.DW_LANG_C, dw.DW_LANG_C99, dw.DW_LANG_C11, dw.DW_LANG_C17), "C"),
    **dict.fromkeys(
        (dw.DW_LANG_C_plus_plus, dw.DW_LANG_C_plus_plus_11, dw.DW_LANG_C_plus_plus_14, dw.DW_LANG_C_plus_plus_20), "C++"
    ),
    **dict.fromkeys(
        (
            dw.DW_LANG_Fortran77,
            dw.DW_LANG_Fortran90,
            dw.DW_LANG_Fortran95,
            dw.DW_LANG_Fortran03,
            dw.DW_LANG_Fortran08,
            dw.DW_LANG_Fortran18,
        ),
        "Fortran",
    ),
}

NAME, ADDRESS, TLS_OFFSET = map(Variable._fields.index, ("name", "address", "tls_offset"))
TYPES = (*RECORDS, dw.DW_TAG_enumeration_type, dw.DW_TAG_typedef)
MOST_TEXT = 1 << 28  # characters of qualifications in all
MOST_AROUND = 50  # functions around one whose names are part of its own

Demangle = Callable[[str], str]


class Scope(NamedTuple):
    """Where the walk is: `prefix` qualifies names ("app::"), within the function `function` if there is one."""

    prefix: str = ""
    function: Optional[Die] = None
    kind: str = ""  # storage of what is declared right here, "" for a file's or namespace's variable


ANYWHERE = Scope()  # in no scope that has a name


# A variable but for what its scope says of it, that scope, and where its declaration is if that stands elsewhere, or 0.
Found = tuple[Variable, Scope, int]


class ScopedFunction(NamedTuple):
    """A function by its own name, in the scope that qualifies it: that of its declaration if there is one."""

    die: Die
    name: str
    scope: Scope
    declared: Optional[Die]


class Within(NamedTuple):
    """What a scope says of the variables in it: what stands before their names, and fields of a `Variable`."""

    prefix: str
    storage: str  # "": global or file static
    function: str
    block: str


class VariablePlace(NamedTuple):
    """Where a variable lies: a vaddr, or an offset in the module's TLS block."""

    offset: int
    thread_local: bool


class VariableReader:
    """The variables of one file, and the reader of their types, which needs the scopes that were walked through."""

    def __init__(self, module: Module, demangle: Demangle) -> None:
        self._module = module
        self._list = tuple(module.units())
        self._units = {unit.die.cu: unit for unit in self._list}
        self._numbers = {unit.die.cu: number for number, unit in enumerate(self._list)}
        self._demangle = demangle
        self._reader = Reader()
        self._low, self._high = module.low, module.high
        self._prefixes: dict[int, str] = {}  # of types
        self._scopes: dict[int, Scope] = {}  # of functions, and of declarations that a definition elsewhere may name
        self._walked: set[Optional[int]] = set()
        self._names: dict[int, str] = {}  # of functions
        self.types = TypeReader(module, self._list, self._prefix, self._is_fortran)
        self._table = TypeTable(self.types)
        self._text = 0  # characters of qualifications
        self._languages: dict[Optional[int], str] = {}
        self._language = ""
        self._source = ""  # the name of the unit's file, without its folder
        self._thread_locals = ThreadLocalSymbols(module.path)

    def read(self) -> Variables:
        """Every variable, in ascending order of place; what several units repeat, once."""
        # units of types first: they say in which namespaces the types of variables are
        units = sorted(self._list, key=lambda unit: not unit.holds_type)
        rows = [row for unit in units for row in self._rows(unit)]
        variables = [self._placed(row, scope, declared) for row, scope, declared in rows]
        fixed = in_order([row for row in variables if row.address is not None], ADDRESS)
        local = in_order([row for row in variables if row.address is None], TLS_OFFSET)
        return Variables([*local, *fixed], self._table, [row.address or 0 for row in (*local, *fixed)])

    def has_all(self, indices: Iterable[int]) -> bool:
        """Whether the indices are places within units of this very file, where DIEs may be looked for."""
        ends = sorted(chain((unit.die.addr or 0 for unit in self._list), map(sum, self._module.section_places)))
        return all(self._has(index, ends) for index in set(indices) - {VOID})

    def _has(self, index: int, ends: list[int]) -> bool:
        number, distance = place_of(index)
        start = self._list[number].die.addr or 0 if 0 <= number < len(self._list) else 0
        is_own = any(first <= start < first + size for first, size in self._module.section_places)
        return is_own and start + distance < ends[bisect_right(ends, start)]

    def _rows(self, unit: Unit) -> list[Found]:
        """A unit's variables; the scopes of all that it holds are known from then on."""
        self._language = self._language_of(unit.die.cu)
        self._source = self._reader.string(unit.die, dw.DW_AT_name).rpartition("/")[2]
        self._walked.add(unit.die.cu)
        return list(self._walk(unit.die))

    def _language_of(self, cu: Optional[int]) -> str:
        if cu not in self._languages:
            unit = self._units.get(cu)
            number = self._reader.language(unit.die) if unit is not None else 0
            self._languages[cu] = LANGUAGES.get(number, "other") if unit is not None else ""
        return self._languages[cu]

    def _is_fortran(self, die: Die) -> bool:
        return self._language_of(die.cu) == "Fortran"

    def _prefix(self, die: Die) -> str:
        """What stands before the name of a type; its unit is walked for that if it was not yet."""
        if die.cu not in self._walked and self._language_of(die.cu) == "C++":
            self._rows(self._units[die.cu])
        return self._prefixes.get(die.addr or 0, "")

    def _walk(self, unit: Die) -> Iterator[Found]:
        for die, tag, scope in walk(self._reader, unit, ANYWHERE, self._enter):
            if tag in (dw.DW_TAG_variable, dw.DW_TAG_member):
                variable = self._variable(die, tag, scope)
                if variable is not None:
                    yield variable

    def _enter(self, die: Die, tag: int, scope: Scope) -> Optional[Scope]:
        """The scope inside a DIE, or None where no variable of static storage can be."""
        if tag in TYPES:
            return self._type_scope(die, tag, scope)
        if tag == dw.DW_TAG_subprogram:
            return self._function_scope(die, scope)
        if tag in (dw.DW_TAG_lexical_block, dw.DW_TAG_inlined_subroutine, dw.DW_TAG_entry_point):
            return scope
        if tag == dw.DW_TAG_namespace:
            name = self._name(die) or "(anonymous namespace)"
            return scope._replace(prefix=self._qualified(scope.prefix, f"{name}::"))
        if tag == dw.DW_TAG_module:
            return scope._replace(prefix=f"{self._name(die)}::", kind=MODULE)
        if tag == dw.DW_TAG_common_block:
            return scope._replace(kind=f"{COMMON} {self._name(die)}")
        return None

    def _type_scope(self, die: Die, tag: int, scope: Scope) -> Optional[Scope]:
        prefix = scope.prefix if self._language == "C++" else ""
        if prefix:
            self._prefixes[die.addr or 0] = prefix
        if tag not in RECORDS or self._language != "C++":
            return None
        name = self._reader.own_string(die, dw.DW_AT_name)
        return scope._replace(prefix=self._qualified(prefix, f"{name}::") if name else prefix)

    def _qualified(self, prefix: str, name: str) -> str:
        """`prefix` before `name`; cut where a damaged file has more of it than anybody reads, or memory holds."""
        self._text += len(prefix)
        is_fit = len(prefix) <= LONGEST_STRING and self._text <= MOST_TEXT
        return prefix + name if is_fit else f"...::{name}"

    def _name(self, die: Die) -> str:
        return self._reader.string(die, dw.DW_AT_name)

    def _function_scope(self, die: Die, scope: Scope) -> Optional[Scope]:
        self._scopes[die.addr or 0] = scope
        is_declaration = self._reader.has(die, dw.DW_AT_declaration)  # of members mostly, with parameters alone
        return None if is_declaration else Scope("", die, FUNCTION_STATIC)

    def _linkage_name(self, die: Die) -> str:
        return self._reader.string(die, dw.DW_AT_linkage_name) or self._reader.string(die, dw.DW_AT_MIPS_linkage_name)

    def _variable(self, die: Die, tag: int, scope: Scope) -> Optional[Found]:
        if tag == dw.DW_TAG_member or self._reader.has(die, dw.DW_AT_declaration):
            if scope.prefix and self._language == "C++":
                self._scopes[die.addr or 0] = scope
            return None
        place = self._place(die) or self._place_by_symbol(die, scope)
        return None if place is None else self._describe(die, scope, place)

    def _place_by_symbol(self, die: Die, scope: Scope) -> Optional[VariablePlace]:
        """A thread-local variable's, outside of functions: in one, a variable that was optimized away looks alike."""
        if scope.function is not None or any(self._reader.has(die, attribute) for attribute in PLACES):
            return None
        source = EXTERNAL if self._reader.flag(die, dw.DW_AT_external) else self._source
        offset = self._thread_locals.offset(source, self._linkage_name(die) or self._name(die))
        return None if offset is None else VariablePlace(offset, True)

    def _place(self, die: Die) -> Optional[VariablePlace]:
        """DW_AT_location, if it is a fixed place in memory that this file has."""
        expression = self._reader.block(die, dw.DW_AT_location)
        if not expression or dw.DW_OP_reg0 <= expression[0] <= dw.DW_OP_fbreg:  # registers and frame offsets: locals
            return None
        operations = self._reader.location(die)
        if not operations:
            return None
        first, rest = operations[0], operations[1:]
        thread_local = first[0] in CONSTANTS and bool(rest) and rest[0][0] in TLS
        added = addend(rest[1:] if thread_local else rest)
        if added is None or (first[0] != dw.DW_OP_addr and not thread_local):
            return None
        place = first[1] + added
        return VariablePlace(place, thread_local) if thread_local or self._low < place < self._high else None

    def _describe(self, die: Die, scope: Scope, place: VariablePlace) -> Optional[Found]:
        name = self._name(die)
        if not name:
            return None
        declared = self._reader.reference(die, dw.DW_AT_specification, inherited=True)
        file, line = self._reader.declared_at(die, self._units)
        external = self._reader.flag(die, dw.DW_AT_external)
        row = Variable(
            name,
            self._linkage_name(die),
            file,
            line,
            self.types.of(die),
            0,  # once its type is known
            THREAD_LOCAL if place.thread_local else GLOBAL if external else FILE_STATIC,
            self._language,
            None if place.thread_local else place.offset,
            place.offset if place.thread_local else None,
        )
        return row, scope, declared.addr or 0 if declared is not None else 0

    # ---- names, once all units were walked ----

    def _placed(self, row: Variable, scope: Scope, declared: int) -> Variable:
        """The variable as what stands around it makes it."""
        prefix, storage, function, block = self._within(scope)
        if declared in self._scopes and storage != COMMON:
            prefix = self._qualifier(self._scopes[declared])
        storage = row.storage if row.storage == THREAD_LOCAL else storage or row.storage
        name = self._qualified(prefix, row.name)
        size = self.types.stated_size(row.type) or self._table.size(row.type)
        return row._replace(name=name, size=size, storage=storage, function=function, block=block)

    def _within(self, scope: Scope) -> Within:
        if scope.kind.startswith(COMMON):
            return Within("", COMMON, "", scope.kind[len(COMMON) + 1 :])
        if scope.function is None:
            return Within(scope.prefix, scope.kind, "", "")
        function = self._function_name(scope.function)
        return Within(f"{function}::{scope.prefix}", scope.kind, function, "")

    def _qualifier(self, scope: Scope) -> str:
        """All that stands before a name in `scope`. Functions are named only when they hold something."""
        return scope.prefix if scope.function is None else f"{self._function_name(scope.function)}::{scope.prefix}"

    def _function_name(self, die: Die) -> str:
        """`work` in C, `module::work` in Fortran, `app::work(int)` in C++."""
        key = die.addr or 0
        if key not in self._names:
            self._name_functions(die)
        return self._names[key]

    def _name_functions(self, innermost: Die) -> None:
        """Name a function, and before it those around it; in a damaged file each may be within another, endlessly."""
        around: list[ScopedFunction] = []
        outer: Optional[Die] = innermost
        while outer is not None and (outer.addr or 0) not in self._names:
            if len(around) > MOST_AROUND:
                self._names[outer.addr or 0] = "..."
                break
            around.append(self._scoped(outer))
            outer = around[-1].scope.function
        for function in reversed(around):
            self._names[function.die.addr or 0] = self._name_of_function(function)

    def _scoped(self, function: Die) -> ScopedFunction:
        scope = self._scopes.get(function.addr or 0, ANYWHERE)
        declared = self._reader.reference(function, dw.DW_AT_specification)
        declared = declared or self._reader.reference(function, dw.DW_AT_abstract_origin)
        if declared is not None:
            scope = self._scopes.get(declared.addr or 0, scope)
        return ScopedFunction(function, self._name(function), scope, declared)

    def _name_of_function(self, function: ScopedFunction) -> str:
        name = self._qualified(self._qualifier(function.scope), function.name)
        if self._language_of(function.die.cu) != "C++":
            return name
        linkage = self._linkage_name(function.die)
        readable = self._demangle(linkage) if linkage else ""
        return readable if readable and readable != linkage else f"{name}({self._parameters(function)})"

    def _parameters(self, function: ScopedFunction) -> str:
        """Functions of local classes have no linkage name in DWARF: spell their parameters as demanglers do."""
        parameters = list(islice(self.types.parameters(function.die), MOST_PARAMETERS))
        if not parameters and function.declared is not None:  # as link-time optimization leaves it
            parameters = list(islice(self.types.parameters(function.declared), MOST_PARAMETERS))
        return ", ".join(type_name(self._table, parameter, "C++") for parameter in parameters)


def in_order(variables: list[Variable], place: int) -> list[Variable]:
    """By place and name; of those that have these and the line in common the first."""
    if len(set(map(itemgetter(place), variables))) == len(variables):
        return sorted(variables, key=itemgetter(place))
    keys = set[tuple[object, str, int]]()
    left = []
    for row in sorted(variables, key=itemgetter(place, NAME)):
        if (row[place], row.name, row.line) not in keys:
            keys.add((row[place], row.name, row.line))
            left.append(row)
    return left


def addend(operations: tuple[tuple[int, int], ...]) -> Optional[int]:
    """What `plus_uconst N`, or `const N; plus`, adds to an address; None if anything else is done with it.

    A value that is computed from an address (`stack_value`, `deref`, `implicit_pointer`), or a part of a variable
    (`piece`), has no storage of its own (DWARF 5, 2.6.1.1.4 and 2.6.1.2).
    """
    total, left = 0, iter(operations)
    for atom, operand in left:
        if atom in CONSTANTS:
            if next(left, (0, 0))[0] != dw.DW_OP_plus:
                return None
        elif atom != dw.DW_OP_plus_uconst:
            return None
        total += operand
    return total
