"""Evaluates a breakpoint's condition in the rank that hits it, while GDB has the symbols of another rank that steps.

Takes a condition as the user has written it; gives its value in the rank that comes by. GDB holds on to the symbols
that a step began with, and reads them at the end of a `finish` or a call: they have to stay. Of several copies of a
file GDB takes names from the first, so those that would be the stepping rank's are replaced by the other's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any, Optional

import gdb

from gdbext.gdb_api.language import follow_frame, language, lookup, names_pattern
from gdbext.gdb_api.run_commands import DebuggerError, execute, set_convenience
from gdbext.symbols.focus import Focus
from pieglobalsfind.errors import TargetError
from pieglobalsfind.session.process_view import ProcessView

QUOTED_SCOPE = r"'[^']+'::"
OBJECT = r"(?:[\w$:.]|->|\s|\[[^\[\]]*\]|\([^()]*\))+$"  # of a member: what stands before it, and more at times
ONLY_RANKS = r"(?s)\$_rank_in\([\"']([\d,-]+)[\"']\)(?: (?:&&|\.and\.) \((.*)\))?"
VARIABLE = "_rank_own_"  # of GDB's convenience variables
PARTS = re.compile(
    r"(?i)(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<and>&&|\.and\.)"
    r"|(?P<weaker>\|\||[?,]|(?<![=!<>])=(?!=)|\.(?:or|xor|eqv|neqv)\.)|(?P<quote>['\"])"
)
OF_RANK_ALONE = re.compile(r"(?=.*\$_rank\b)(?:\s|\d+|\$_rank\b|[<>=!]=|[<>](?![<>])|&&|\|\||[()!%*+-])+", re.DOTALL)


def is_true(focus: Focus, moment: ProcessView, rank: int, condition: str) -> bool:
    """Whether a condition holds in a rank; raises `gdb.error`, and `TargetError` for what only one rank can have."""
    names = ConditionNames(moment, rank, focus)
    with focus.beside(moment, rank) as added:
        follow_frame()
        return bool(gdb.parse_and_eval(names.replaced(condition, added)))


def ranks_of(condition: Optional[str]) -> tuple[Optional[str], Optional[str]]:
    """The set that a condition of `rank break` is for, and the rest of it; (None, condition) for any other."""
    match = re.fullmatch(ONLY_RANKS, condition or "")
    return (match.group(1), match.group(2)) if match else (None, condition)


def may_hold(focus: Focus, rank: int, condition: str) -> bool:
    """Whether a condition may hold in a rank by what it says of `$_rank` alone, before all else, as GDB reads it.

    To have the rank's symbols for the rest takes ten times as long as all else at a hit.
    """
    operands = about_rank(condition)
    if not operands:
        return True
    set_convenience("_rank", rank)
    try:
        return all(bool(gdb.parse_and_eval(operand)) for operand in operands)
    except gdb.error:  # the whole says why
        return True
    finally:
        focus.announce()


@lru_cache(maxsize=100)
def about_rank(condition: str) -> tuple[str, ...]:
    """Return the first operands of the condition's `&&` as far as they are about `$_rank` alone."""
    depth = start = 0
    operands = []
    for part in PARTS.finditer(condition):
        depth += (part.lastgroup == "open") - (part.lastgroup == "close")
        if part.lastgroup == "quote" or (part.lastgroup == "weaker" and depth == 0):
            return ()
        if part.lastgroup == "and" and depth == 0:
            operands.append(condition[start : part.start()])
            start = part.end()
    return tuple(takewhile(OF_RANK_ALONE.fullmatch, [*operands, condition[start:]]))


class ConditionNames:
    """The names in an expression that is evaluated in the innermost frame of a rank; another one is in focus."""

    def __init__(self, moment: ProcessView, rank: int, focus: Focus) -> None:
        self._moment = moment
        self._rank = rank
        self._stepping = focus.rank
        self._paths = focus.paths
        self._added: Sequence[gdb.Objfile] = ()
        self._count = 0

    def replaced(self, condition: str, added: Sequence[gdb.Objfile]) -> str:
        """The expression with a convenience variable for each name that would be the stepping rank's.

        `added` have the rank's own symbols. Raises `TargetError` if that can't be done.
        """
        self._added = added
        if re.search(QUOTED_SCOPE, condition):
            raise self._refusal(condition)
        return re.sub(names_pattern(), lambda match: self._own(match, condition), condition)

    def _own(self, match: re.Match[str], condition: str) -> str:
        name, member = match["name"], match.groupdict().get("member")
        if member and language() == "c++" and self._may_be_static(condition[: match.start()], member.lstrip("->. ")):
            raise self._refusal(condition[: match.end()])
        return self._instead(name) or match[0] if name else match[0]

    def _instead(self, name: str) -> str:
        """What to write for a name, "" for the name itself."""
        symbol, is_member = lookup(name)
        full = symbol.name if symbol is not None else f"{gdb.parse_and_eval('*this').type}::{name}" if is_member else ""
        if symbol is not None and not self._may_be_steppings(symbol, name):
            return ""
        own_symbols = (
            objfile.lookup_global_symbol(full) or objfile.lookup_static_symbol(full) for objfile in self._added if full
        )
        own = next((symbol for symbol in own_symbols if symbol is not None), None)
        if own is not None:
            self._count += 1
            gdb.set_convenience_variable(f"{VARIABLE}{self._count}", own.value())
            return f"${VARIABLE}{self._count}"
        if self._is_steppings(name):
            raise self._refusal(name)
        return ""

    def _may_be_steppings(self, symbol: Any, name: str) -> bool:
        """Whether it is a variable or a function in what is in focus; GDB itself looks up static members again."""
        if not (symbol.is_variable or symbol.is_function) or symbol.needs_frame or symbol.symtab is None:
            return False
        home = symbol.symtab.objfile
        return "::" in name or (home not in self._added and home.filename in self._paths)

    def _is_steppings(self, name: str) -> bool:
        """Whether a name without debug information is that of something in the stepping rank's copy."""
        try:
            address = int(gdb.parse_and_eval(f"&{name}"))
        except (gdb.error, TypeError):  # no variable: a type, or a word of the language
            return False
        return self._moment.translator.owner(address).rank not in (None, self._rank)

    def _may_be_static(self, before: str, member: str) -> bool:
        """Whether a member of an object is one that all have in common, of which GDB takes the first file's."""
        match = re.search(OBJECT, before)
        try:
            named = execute(f"whatis {match[0] if match else before}").partition("=")[2]
            kind = gdb.lookup_type(re.sub(r"\bconst\b|\bvolatile\b|[*&]", "", named).strip()).strip_typedefs()
            return is_static(kind, member)
        except (gdb.error, DebuggerError):
            return True

    def _refusal(self, name: str) -> TargetError:
        return TargetError(
            f"rank {self._rank}'s {name} can't be read while rank {self._stepping} steps",
            "the step ends here; `continue`, or delete the condition",
        )


def is_static(kind: gdb.Type, member: str) -> bool:
    """Whether a class, or one that it is derived from, has a static member of a name."""
    for field in kind.fields():
        if field.is_base_class:
            if field.type is not None and is_static(field.type.strip_typedefs(), member):
                return True
        elif field.name == member:
            return not hasattr(field, "bitpos")
    return False
