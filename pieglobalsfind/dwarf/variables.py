"""Finds every variable of static storage in a file's DIEs, with its name, place, type and storage.

Takes an opened `Module`; walks each unit once, without recursion: as bytes (die_scanner.py), or, where those are
unusual or of another file, DIE by DIE. What stands around a variable is named when all units were walked, as functions
are named by types of any unit. Variables without memory (declarations, what the compiler turned into constants, locals)
are left out; so is what the linker discarded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice, repeat
from operator import itemgetter
from typing import NamedTuple, Optional

from pieglobalsfind.dwarf import constants as dw
from pieglobalsfind.dwarf.die_scanner import TYPES, Abbreviation, KnownKinds, UnitBytes
from pieglobalsfind.dwarf.die_walk import walk
from pieglobalsfind.dwarf.forms import UnreadableError
from pieglobalsfind.dwarf.libdw import LONGEST_STRING, Die, Module, Reader, Unit
from pieglobalsfind.dwarf.names import MOST_PARAMETERS, type_name
from pieglobalsfind.dwarf.type_reader import (
    LARGEST_SIZE,
    RECORDS,
    UNIT_SHIFT,
    UNREADABLE,
    TypeReader,
    index_at,
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

NAME, SIZE, ADDRESS, TLS_OFFSET = map(Variable._fields.index, ("name", "size", "address", "tls_offset"))
UNTOLD = -1  # a size that more has to be read for than one DIE
MOST_TEXT = 1 << 28  # characters of qualifications in all
MOST_AROUND = 50  # functions around one whose names are part of its own

Demangle = Callable[[str], str]


class Scope(NamedTuple):
    """Where the walk is: `prefix` qualifies names ("app::"), within the function `function` if there is one."""

    prefix: str = ""
    function: Optional[Die] = None
    kind: str = ""  # storage of what is declared right here, "" for a file's or namespace's variable


ANYWHERE = Scope()  # in no scope that has a name


# A variable whose DIE tells all: the DIE's offset in the section, its scope.
Note = tuple[int, Scope]
# A variable but for what its scope says of it, that scope, and where its declaration is if that stands elsewhere, or 0.
Found = tuple[Variable, Scope, int]


class Described(NamedTuple):
    """The fields of variables as their DIEs tell them, column by column."""

    names: Sequence[str]
    linkages: Iterable[str]
    files: Iterable[str]
    lines: Iterable[int]
    indices: Iterable[int]
    sizes: Iterable[int]
    storages: Iterable[str]
    addresses: Sequence[int]

    def rows(self, functions: Sequence[Optional[str]], language: str) -> Iterator[Variable]:
        """The variables, each a static one of the function of that name if there is one."""
        names, *more, storages, addresses = self
        if any(functions):
            names = [f"{function}::{name}" if function else name for function, name in zip(functions, names)]
            storages = [FUNCTION_STATIC if function else one for function, one in zip(functions, storages)]
        else:
            functions = [""] * len(functions)
        same = repeat(language), addresses, repeat(None), functions, repeat("")
        return map(tuple.__new__, repeat(Variable), zip(names, *more, storages, *same))


class FunctionTold(NamedTuple):
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


class UnitFiles(dict[Optional[int], str]):
    """The files of a unit by their numbers, looked up once."""

    def __init__(self, reader: Reader, unit: Unit) -> None:
        super().__init__({None: ""})
        self._reader = reader
        self._unit = unit

    def __missing__(self, number: Optional[int]) -> str:
        name = self[number] = self._reader.file_name(self._unit, number or 0)
        return name


class TypesTold(dict[Optional[int], tuple[int, int]]):
    """The types that a unit's DIEs name by their distance from its header: index, and size if their DIEs say it."""

    def __init__(self, number: int, unit_bytes: UnitBytes) -> None:
        super().__init__({None: (VOID, 0)})
        self._found = unit_bytes
        self._first_index = index_at(number, 0) - unit_bytes.first

    def fill(self, distances: Iterable[Optional[int]]) -> None:
        """Look up all that are not known yet."""
        unit_bytes, more = self._found, self._first_index + self._found.begin
        low, high = unit_bytes.first - unit_bytes.begin, unit_bytes.end - unit_bytes.begin
        unknown = [one or 0 for one in set(distances).difference(self)]
        inside = [one for one in unknown if low < one < high]
        if len(inside) < len(unknown):
            self.update(dict.fromkeys(unknown, (UNREADABLE, 0)))
        for one, size in zip(inside, unit_bytes.sizes_told(inside)):
            self[one] = more + one, size if size and size <= LARGEST_SIZE else UNTOLD


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
        self._bytes: dict[Optional[int], Optional[UnitBytes]] = {}
        self._kinds = KnownKinds(module)
        self._prefixes: dict[int, str] = {}  # of types
        self._scopes: dict[int, Scope] = {}  # of functions, and of declarations that a definition elsewhere may name
        self._walked: set[Optional[int]] = set()
        self._names: dict[int, str] = {}  # of functions
        self.types = TypeReader(module, self._list, self._prefix, self._is_fortran)
        self._table = TypeTable(self.types)
        self._text = 0  # characters of qualifications
        self._languages: dict[Optional[int], str] = {}
        self._language = ""

    def read(self) -> Variables:
        """Every variable, in ascending order of place; what several units repeat, once."""
        # units of types first: they say in which namespaces the types of variables are
        units = sorted(self._list, key=lambda one: not one.holds_type)
        rows = [row for unit in units for row in self._rows(unit)]
        variables = [
            row if scope is ANYWHERE and not declared else self._placed(row, scope, declared)
            for row, scope, declared in rows
        ]
        fixed, local = variables, list[Variable]()
        if None in map(itemgetter(ADDRESS), variables):
            fixed = [row for row in variables if row.address is not None]
            local = [row for row in variables if row.address is None]
        variables = [*in_order(local, TLS_OFFSET), *in_order(fixed, ADDRESS)]
        if UNTOLD in map(itemgetter(SIZE), variables):
            for number, row in enumerate(variables):
                if row.size == UNTOLD:
                    variables[number] = row._replace(size=self._table.size(row.type))
        return Variables(variables, self._table, [address or 0 for address in map(itemgetter(ADDRESS), variables)])

    def has_all(self, indices: Iterable[int]) -> bool:
        """Whether indices are of types in this file, in units that are read as bytes."""
        named = sorted(set(indices))
        largest, left = list[int](), len(named)
        while left and named[left - 1] > VOID:  # of each unit
            largest.append(named[left - 1])
            left = bisect_left(named, largest[-1] >> UNIT_SHIFT << UNIT_SHIFT, 0, left)
        return all(map(self._has, largest))

    def _has(self, index: int) -> bool:
        number, distance = place_of(index)
        unit_bytes = self.bytes_of(self._list[number]) if 0 <= number < len(self._list) else None
        return unit_bytes is not None and distance < unit_bytes.end - unit_bytes.first

    def bytes_of(self, unit: Unit) -> Optional[UnitBytes]:
        """The unit as bytes, None where it has to be read by libdw."""
        if unit.die.cu not in self._bytes:
            section, found = self._module.section(unit.die.addr), None
            with suppress(UnreadableError):
                found = UnitBytes(self._module, unit, section, self._kinds) if section is not None else None
            self._bytes[unit.die.cu] = found
        return self._bytes[unit.die.cu]

    def _rows(self, unit: Unit) -> list[Found]:
        """A unit's variables; the scopes of all that it holds are known from then on."""
        self._language = self._language_of(unit.die.cu)
        self._walked.add(unit.die.cu)
        as_bytes = self.bytes_of(unit)
        try:
            return list(self._scan(unit, as_bytes) if as_bytes is not None else self._walk(unit.die))
        except UnreadableError:
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

    # ---- as bytes ----

    def _scan(self, unit: Unit, unit_bytes: UnitBytes) -> list[Found]:
        """Most variables' DIEs tell all that there is to say: they are noted first, and then read all at once."""
        inside, scope, scopes = 0, ANYWHERE, [(0, ANYWHERE)]
        noted = defaultdict[Abbreviation, list[Note]](list)
        rows: list[Optional[Found]] = []
        cu, first = unit.die.cu, unit_bytes.address(0)
        for lowest, depth, at, kind, told in unit_bytes.entries(self._language == "C++"):
            if depth <= inside or lowest <= inside:
                while scopes[-1][0] >= min(lowest, depth):
                    scopes.pop()
                inside, scope = scopes[-1]
            if told is not None:
                noted[kind].append((at, scope))
            elif kind.tag in (dw.DW_TAG_variable, dw.DW_TAG_member):
                rows.append(self._variable(Die(first + at, cu), kind.tag, scope))
            else:
                inner = self._enter(Die(first + at, cu), kind.tag, scope)
                if inner is not None:
                    inside, scope = depth, inner
                    scopes.append((depth, inner))
        files, types = UnitFiles(self._reader, unit), TypesTold(self._numbers[cu], unit_bytes)
        plain = self._plain_functions(unit_bytes, chain.from_iterable(noted.values()))
        for kind, notes in noted.items():
            places, around = zip(*notes)
            functions = list(map(plain.get, map(id, around)))
            columns = self._described(unit_bytes, places, kind, files, types)
            if None not in functions and self._are_all_told(columns):
                rows += zip(columns.rows(functions, self._language), repeat(ANYWHERE), repeat(0))
                continue
            bare = columns.rows([None] * len(places), self._language)
            for at, row, outer in zip(places, bare, around):
                is_told = row.name and self._low < (row.address or 0) < self._high
                rows.append((row, outer, 0) if is_told else self._variable(Die(first + at, cu), kind.tag, outer))
        return [row for row in rows if row is not None]

    def _plain_functions(self, unit_bytes: UnitBytes, notes: Iterable[Note]) -> dict[int, str]:
        """Scopes, by their `id`, in which a variable is all that its DIE tells: names of the functions that they are.

        The name is "" outside of functions.
        """
        names = {id(ANYWHERE): ""}
        if self._language == "C++":
            return names
        start, places = unit_bytes.address(unit_bytes.begin), dict[int, int]()
        for scope in {id(scope): scope for _, scope in notes}.values():
            prefix, die, kind = scope
            if die is not None and not prefix and kind == FUNCTION_STATIC:
                place = die.addr or 0
                if self._scopes[place] is ANYWHERE:
                    places[id(scope)] = place - start
        told = {one: name for one, name in zip(places, unit_bytes.names_told(places.values())) if name is not None}
        texts = zip(told, self._module.texts(list(told.values())) if told else ())
        names.update((one, text) for one, text in texts if text and len(text) < LONGEST_STRING - 1)
        return names

    def _are_all_told(self, columns: Described) -> bool:
        """Whether nothing more has to be looked up of any of them, or cut."""
        is_here = self._low < min(columns.addresses) and max(columns.addresses) < self._high
        return is_here and all(columns.names)

    def _described(
        self, unit_bytes: UnitBytes, places: Sequence[int], kind: Abbreviation, files: UnitFiles, types: TypesTold
    ) -> Described:
        """What `_describe` gives for each DIE of this kind, in a tenth of the time."""
        assert kind.told is not None
        names, linkages, numbers, lines, distances, external, addresses = unit_bytes.columns(places, kind.told)
        types.fill(distances)
        indices, sizes = zip(*map(types.__getitem__, distances))
        return Described(
            list(self._module.texts(names)),
            self._module.texts(linkages),
            map(files.__getitem__, numbers),
            lines if all(lines) else [line or 0 for line in lines],
            indices,
            sizes,
            repeat(GLOBAL) if all(external) else [GLOBAL if one else FILE_STATIC for one in external],
            addresses,
        )

    # ---- by libdw ----

    def _walk(self, unit: Die) -> Iterator[Found]:
        for die, tag, scope in walk(self._reader, unit, ANYWHERE, self._enter):
            if tag in (dw.DW_TAG_variable, dw.DW_TAG_member):
                found = self._variable(die, tag, scope)
                if found is not None:
                    yield found

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

    def _function_scope(self, die: Die, scope: Scope) -> Scope:
        self._scopes[die.addr or 0] = scope
        return Scope("", die, FUNCTION_STATIC)

    def _linkage_name(self, die: Die) -> str:
        return self._reader.string(die, dw.DW_AT_linkage_name) or self._reader.string(die, dw.DW_AT_MIPS_linkage_name)

    def _variable(self, die: Die, tag: int, scope: Scope) -> Optional[Found]:
        if tag == dw.DW_TAG_member or self._reader.has(die, dw.DW_AT_declaration):
            if scope.prefix and self._language == "C++":
                self._scopes[die.addr or 0] = scope
            return None
        place = self._place(die)
        return None if place is None else self._describe(die, scope, place)

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
            UNTOLD,
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
        told = self._qualified(prefix, row.name), *row[1:6], storage, *row[7:10], function, block
        return tuple.__new__(Variable, told)

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
        around: list[FunctionTold] = []
        outer: Optional[Die] = innermost
        while outer is not None and (outer.addr or 0) not in self._names:
            if len(around) > MOST_AROUND:
                self._names[outer.addr or 0] = "..."
                break
            around.append(self._told_of(outer))
            outer = around[-1].scope.function
        for function_told in reversed(around):
            self._names[function_told.die.addr or 0] = self._name_of_function(function_told)

    def _told_of(self, function: Die) -> FunctionTold:
        scope, own = self._scopes.get(function.addr or 0, ANYWHERE), self._own_name(function)
        if own:
            return FunctionTold(function, own, scope, None)
        declared = self._reader.reference(function, dw.DW_AT_specification)
        declared = declared or self._reader.reference(function, dw.DW_AT_abstract_origin)
        if declared is not None:
            scope = self._scopes.get(declared.addr or 0, scope)
        return FunctionTold(function, self._name(function), scope, declared)

    def _name_of_function(self, function_told: FunctionTold) -> str:
        name = self._qualified(self._qualifier(function_told.scope), function_told.name)
        if self._language_of(function_told.die.cu) != "C++":
            return name
        linkage = self._linkage_name(function_told.die)
        readable = self._demangle(linkage) if linkage else ""
        return readable if readable and readable != linkage else f"{name}({self._parameters(function_told)})"

    def _own_name(self, die: Die) -> str:
        """A name that stands in .debug_str and that no other DIE describes, "" otherwise."""
        unit_bytes = self._bytes.get(die.cu)
        at = (die.addr or 0) - unit_bytes.address(0) if unit_bytes is not None else 0
        if unit_bytes is None or not unit_bytes.first <= at < unit_bytes.end:
            return ""
        return self._module.text(unit_bytes.names_told([at - unit_bytes.begin])[0])

    def _parameters(self, function_told: FunctionTold) -> str:
        """Functions of local classes have no linkage name in DWARF: spell their parameters as demanglers do."""
        found = list(islice(self.types.parameters(function_told.die), MOST_PARAMETERS))
        if not found and function_told.declared is not None:  # as link-time optimization leaves it
            found = list(islice(self.types.parameters(function_told.declared), MOST_PARAMETERS))
        return ", ".join(type_name(self._table, one, "C++") for one in found)


def in_order(variables: list[Variable], place: int) -> list[Variable]:
    """By place and name; of those that have these and the line in common the first."""
    if len(set(map(itemgetter(place), variables))) == len(variables):
        return sorted(variables, key=itemgetter(place))
    known = set[tuple[object, str, int]]()
    left = []
    for row in sorted(variables, key=itemgetter(place, NAME)):
        if (row[place], row.name, row.line) not in known:
            known.add((row[place], row.name, row.line))
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
