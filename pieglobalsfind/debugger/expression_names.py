"""The variables that an expression of C or C++ names, and the same expression with something else in their places.

Takes an expression as users type it; gives its pieces. Pure text: it knows no variable and no type. What has a side
effect, calls something, or may mean anything but variables, members and operators is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Optional

_TOKENS = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>\.?[0-9](?:[eEpP][+-]|[\w.])*)"
    r"|(?P<member>(?:\.|->)\s*[A-Za-z_]\w*)"
    r"|(?P<keyword>(?:sizeof|struct|union|enum|unsigned|signed|char|short|int|long|float|double|const|volatile)\b)"
    r"|(?P<name>[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*(?!\s*::))"
    r"|(?P<close>[\])])"
    r"|(?P<operator><<(?!=)|>>(?!=)|[<>!=]=|&&|\|\||(?<!\+)\+(?![+=])|(?<!-)-(?![-=>])|[*/%&|^](?!=)|[<>](?![<>=])"
    r"|[!~@?,\[(]|(?<!:):(?!:))"
)
_OPERANDS = ("member", "name", "close")
_CALL = re.compile(r"\s*\(")  # after an operand


@dataclass(frozen=True)
class ExpressionPiece:
    """A part of an expression as it stands there.

    `is_name`: the name of a variable, a type or a constant. `member`: the name of the member that it selects, or "".
    """

    text: str
    is_name: bool
    member: str = ""


def pieces(expression: str) -> Optional[tuple[ExpressionPiece, ...]]:
    """The expression in pieces, None if it may do more than read variables."""
    expression_pieces: list[ExpressionPiece] = []
    at = 0
    while at < len(expression):
        token = _TOKENS.match(expression, at)
        if token is None:
            return None
        at = token.end()
        if token.lastgroup in _OPERANDS and _CALL.match(expression, at):
            return None
        member = token.group().lstrip("->. ") if token.lastgroup == "member" else ""
        expression_pieces.append(ExpressionPiece(token.group(), token.lastgroup == "name", member.strip()))
    return tuple(expression_pieces) if any(piece.is_name for piece in expression_pieces) else None


def names(expression_pieces: tuple[ExpressionPiece, ...]) -> tuple[str, ...]:
    """Each name once, in the order in which they come."""
    return tuple(dict.fromkeys(piece.text for piece in expression_pieces if piece.is_name))


def replaced(expression_pieces: tuple[ExpressionPiece, ...], instead: Callable[[str], str]) -> str:
    """The expression with `instead(name)` for each name."""
    return "".join(instead(piece.text) if piece.is_name else piece.text for piece in expression_pieces)
