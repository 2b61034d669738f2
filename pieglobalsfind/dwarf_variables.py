"""Finds every variable of static storage in a file's DIEs, with its name, place, type and storage.

Takes an opened `Module`; walks each unit once, without recursion. Variables without memory (declarations, what the
compiler turned into constants, locals) are left out; so is what the linker discarded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Optional

from pieglobalsfind.dwarf_libdw import Die, Module, Reader
from pieglobalsfind.dwarf_names import type_name
from pieglobalsfind.dwarf_type_reader import (
    AT_ARTIFICIAL,
    AT_DECLARATION,
    AT_EXTERNAL,
    AT_NAME,
    AT_SPECIFICATION,
    RECORDS,
    TAG_PARAMETER,
    TypeReader,
)
from pieglobalsfind.dwarf_types import (
    COMMON,
    FILE_STATIC,
    FUNCTION_STATIC,
    GLOBAL,
    MODULE,
    THREAD_LOCAL,
    Variable,
    Variables,
)

DEEPEST = 200  # nested scopes; compilers stop far earlier

# DW_TAG
TAG_LEXICAL_BLOCK = 0x0B
TAG_COMMON_BLOCK = 0x1A
TAG_MODULE = 0x1E
TAG_INLINED = 0x1D
TAG_SUBPROGRAM = 0x2E
TAG_VARIABLE = 0x34
TAG_MEMBER = 0x0D
TAG_NAMESPACE = 0x39
TAG_ENTRY_POINT = 0x03

# DW_AT
AT_ABSTRACT_ORIGIN = 0x31
AT_LINKAGE_NAME = 0x6E
AT_MIPS_LINKAGE_NAME = 0x2007

# DW_OP
OP_ADDR = 0x03
OP_PLUS = 0x22
OP_PLUS_UCONST = 0x23
OP_TLS = (0x9B, 0xE0)  # form_tls_address, GNU_push_tls_address
OP_CONSTANTS = (0x08, 0x0A, 0x0C, 0x0E, 0x10)  # const1u, const2u, const4u, const8u, constu

# DW_LANG
LANGUAGES = {
    **dict.fromkeys((0x01, 0x02, 0x0C, 0x1D, 0x2C), "C"),
    **dict.fromkeys((0x04, 0x1A, 0x21, 0x2B), "C++"),
    **dict.fromkeys((0x07, 0x08, 0x0E, 0x22, 0x23, 0x2D), "Fortran"),
}

Demangle = Callable[[str], str]


@dataclass(frozen=True)
class Scope:
    """Where the walk is: `prefix` qualifies names ("app::"), within the function `function` if there is one."""

    prefix: str = ""
    function: Optional[Die] = None
    kind: str = ""  # storage of what is declared right here, "" for a file's or namespace's variable


@dataclass(frozen=True)
class Place:
    """Where a variable lies: a vaddr, or an offset in the module's TLS block."""

    offset: int
    thread_local: bool


class VariableReader:
    """One walk over one file."""

    def __init__(self, module: Module, demangle: Demangle) -> None:
        self._module = module
        self._units = {unit.die.cu: unit for unit in module.units()}
        self._demangle = demangle
        self._reader = Reader()
        self._prefixes: dict[int, str] = {}  # of declarations that a definition elsewhere may name
        self._types = TypeReader(self._reader, lambda die: self._prefixes.get(die.addr or 0, ""))
        self._language = ""

    def read(self) -> Variables:
        """Every variable, in ascending order of place; what several units repeat, once."""
        found: dict[tuple[str, Optional[int], Optional[int], int], Variable] = {}
        # units of types first: they say in which namespaces the types of variables are
        for unit in sorted(self._units.values(), key=lambda one: not one.holds_type):
            self._language = LANGUAGES.get(self._reader.language(unit.die), "other")
            for variable in self._walk(unit.die):
                found.setdefault((variable.name, variable.address, variable.tls_offset, variable.line), variable)
        types = self._types.table()
        sized = (replace(one, size=types.size(one.type)) for one in found.values())
        return Variables(tuple(sorted(sized, key=lambda one: (one.address or 0, one.tls_offset or 0, one.name))), types)

    def _walk(self, unit: Die) -> Iterator[Variable]:
        stack = [(self._reader.children(unit), Scope())]
        while stack:
            children, scope = stack[-1]
            die = next(children, None)
            if die is None:
                stack.pop()
                continue
            tag = self._reader.tag(die)
            if tag in (TAG_VARIABLE, TAG_MEMBER):
                variable = self._variable(die, tag, scope)
                if variable is not None:
                    yield variable
                continue
            inner = self._enter(die, tag, scope)
            if inner is not None and len(stack) < DEEPEST:
                stack.append((self._reader.children(die), inner))

    def _enter(self, die: Die, tag: int, scope: Scope) -> Optional[Scope]:
        """The scope inside a DIE, or None where no variable of static storage can be."""
        if tag in RECORDS or tag in (0x04, 0x16):
            return self._type_scope(die, tag, scope)
        if tag == TAG_SUBPROGRAM:
            return self._function_scope(die, scope)
        if tag in (TAG_LEXICAL_BLOCK, TAG_INLINED, TAG_ENTRY_POINT):
            return scope
        if tag == TAG_NAMESPACE:
            return replace(scope, prefix=f"{scope.prefix}{self._name(die) or '(anonymous namespace)'}::")
        if tag == TAG_MODULE:
            return replace(scope, prefix=f"{self._name(die)}::", kind=MODULE)
        if tag == TAG_COMMON_BLOCK:
            return replace(scope, kind=f"{COMMON} {self._name(die)}")
        return None

    def _type_scope(self, die: Die, tag: int, scope: Scope) -> Optional[Scope]:
        prefix = scope.prefix if self._language == "C++" else ""
        if prefix:
            self._prefixes[die.addr or 0] = prefix
        if tag not in RECORDS or self._language != "C++":
            return None
        name = self._reader.own_string(die, AT_NAME)
        return replace(scope, prefix=f"{prefix}{name}::" if name else prefix)

    def _name(self, die: Die) -> str:
        return self._reader.string(die, AT_NAME)

    def _function_scope(self, die: Die, scope: Scope) -> Scope:
        self._prefixes[die.addr or 0] = scope.prefix if scope.function is None else self._qualifier(scope)
        return Scope("", die, FUNCTION_STATIC)

    def _qualifier(self, scope: Scope) -> str:
        """All that stands before a name in `scope`. Functions are named only when they hold something."""
        return scope.prefix if scope.function is None else f"{self._function_name(scope.function)}::{scope.prefix}"

    def _function_name(self, die: Die) -> str:
        """`work` in C, `module::work` in Fortran, `app::work(int)` in C++."""
        named = self._reader.reference(die, AT_SPECIFICATION) or self._reader.reference(die, AT_ABSTRACT_ORIGIN)
        own = self._prefixes.get(die.addr or 0, "")
        name = (own if named is None else self._prefixes.get(named.addr or 0, own)) + self._name(die)
        if self._language != "C++":
            return name
        linkage = self._linkage_name(die)
        readable = self._demangle(linkage) if linkage else ""
        return readable if readable and readable != linkage else f"{name}({self._parameters(die)})"

    def _parameters(self, die: Die) -> str:
        """Functions of local classes have no linkage name in DWARF: spell their parameters as demanglers do."""
        found = [
            self._types.of(child, False)
            for child in self._reader.children(die)
            if self._reader.tag(child) == TAG_PARAMETER and not self._reader.flag(child, AT_ARTIFICIAL)
        ]
        types = self._types.table() if found else None
        return ", ".join(type_name(types, one, "C++") for one in found) if types is not None else ""

    def _linkage_name(self, die: Die) -> str:
        return self._reader.string(die, AT_LINKAGE_NAME) or self._reader.string(die, AT_MIPS_LINKAGE_NAME)

    def _variable(self, die: Die, tag: int, scope: Scope) -> Optional[Variable]:
        if tag == TAG_MEMBER or self._reader.has(die, AT_DECLARATION):
            if scope.prefix and self._language == "C++":
                self._prefixes[die.addr or 0] = self._qualifier(scope)
            return None
        place = self._place(die)
        return None if place is None else self._describe(die, scope, place)

    def _place(self, die: Die) -> Optional[Place]:
        """DW_AT_location, if it is a fixed place in memory that this file has."""
        expression = self._reader.block(die, 0x02)
        if not expression or expression[0] in range(0x50, 0x92):  # registers and frame offsets: locals
            return None
        operations = self._reader.location(die)
        if not operations:
            return None
        first, rest = operations[0], operations[1:]
        if first[0] == OP_ADDR:
            address = first[1] + constant_sum(rest)
            return Place(address, False) if self._module.low < address < self._module.high else None
        if first[0] in OP_CONSTANTS and any(atom in OP_TLS for atom, _ in rest):
            return Place(first[1] + constant_sum(rest[1:]), True)
        return None

    def _describe(self, die: Die, scope: Scope, place: Place) -> Optional[Variable]:
        name = self._name(die)
        if not name:
            return None
        declared = self._reader.reference(die, AT_SPECIFICATION)
        prefix = None if declared is None else self._prefixes.get(declared.addr or 0)
        file, line = self._reader.declared_at(die, self._units)
        in_common = scope.kind.startswith(COMMON)
        return Variable(
            name=name if in_common else (self._qualifier(scope) if prefix is None else prefix) + name,
            linkage_name=self._linkage_name(die),
            file=file,
            line=line,
            type=self._types.of(die, self._language == "Fortran"),
            size=0,
            storage=self._storage(die, scope, place),
            language=self._language,
            address=None if place.thread_local else place.offset,
            tls_offset=place.offset if place.thread_local else None,
            function="" if in_common or scope.function is None else self._function_name(scope.function),
            block=scope.kind[len(COMMON) + 1 :] if in_common else "",
        )

    def _storage(self, die: Die, scope: Scope, place: Place) -> str:
        if place.thread_local:
            return THREAD_LOCAL
        if scope.kind:
            return COMMON if scope.kind.startswith(COMMON) else scope.kind
        return GLOBAL if self._reader.flag(die, AT_EXTERNAL) else FILE_STATIC


def constant_sum(operations: tuple[tuple[int, int], ...]) -> int:
    """What `plus_uconst N`, or `const N; plus`, adds to an address."""
    total = 0
    for atom, operand in operations:
        if atom == OP_PLUS_UCONST or atom in OP_CONSTANTS:
            total += operand
    return total
