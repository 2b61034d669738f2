"""The variables that an expression names, and the same expression with something else in their places.

Takes an expression of C, C++ or Fortran as users type it; gives its pieces. Pure text: it knows no variable and no
type. What assigns, or may mean anything but variables, members, calls and operators is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Optional

_TOKENS = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<logical>(?i:\.(?:and|or|not|eqv|neqv|eq|ne|lt|le|gt|ge)\.))"  # Fortran's
    r"|(?P<number>\.?[0-9](?:[eEpP][+-]|[\w.])*)"
    r"|(?P<member>(?:\.|->)\s*[A-Za-z_]\w*)"
    r"|(?P<keyword>(?:sizeof|struct|union|enum|unsigned|signed|char|short|int|long|float|double|const|volatile)\b)"
    r"|(?P<debugger>\$(?:\$?[0-9]+(?!\w)|\w+|\$?(?!\w)))"
    r"|(?P<name>[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*(?!\s*::))"
    r"|(?P<close>[\])])"
    r"|(?P<operator><<(?!=)|>>(?!=)|[<>!=]=|&&|\|\||(?<!\+)\+(?![+=])|(?<!-)-(?![-=>])|[*/%&|^](?!=)|[<>](?![<>=])"
    r"|[!~@?,\[(]|(?<!:):(?!:))"
)
_OPERANDS = ("member", "name", "close", "debugger")
_NAMES = ("name", "debugger")
_CALL = re.compile(r"\s*\(")  # after an operand; of a type it is a cast, in Fortran perhaps an element of an array


@dataclass(frozen=True)
class ExpressionPiece:
    """A part of an expression as it stands there.

    `is_name`: the name of a variable, a type, a function or a constant, the debugger's own ($NAME) among them.
    `member`: the name of the member that it selects, or "". `is_called`: it may be a call of what it names.
    """

    text: str
    is_name: bool
    member: str = ""
    is_called: bool = False


def pieces(expression: str) -> Optional[tuple[ExpressionPiece, ...]]:
    """The expression in pieces, None if it may do more than read variables."""
    expression_pieces: list[ExpressionPiece] = []
    at = 0
    while at < len(expression):
        token = _TOKENS.match(expression, at)
        if token is None:
            return None
        at = token.end()
        is_called = token.lastgroup in _OPERANDS and _CALL.match(expression, at) is not None
        member = token.group().lstrip("->. ") if token.lastgroup == "member" else ""
        expression_pieces.append(ExpressionPiece(token.group(), token.lastgroup in _NAMES, member.strip(), is_called))
    return tuple(expression_pieces) if any(piece.is_name for piece in expression_pieces) else None


def may_call(expression_pieces: tuple[ExpressionPiece, ...]) -> bool:
    """Whether an expression may call a function of the program."""
    return any(piece.is_called and not piece.text.startswith("$") for piece in expression_pieces)


def names(expression_pieces: tuple[ExpressionPiece, ...]) -> tuple[str, ...]:
    """Each name once, in the order in which they come."""
    return tuple(dict.fromkeys(piece.text for piece in expression_pieces if piece.is_name))


def replaced(expression_pieces: tuple[ExpressionPiece, ...], instead: Callable[[str], str]) -> str:
    """The expression with `instead(name)` for each name."""
    return "".join(instead(piece.text) if piece.is_name else piece.text for piece in expression_pieces)
