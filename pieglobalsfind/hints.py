"""The names of `typing`, for what debuggers import as they start: `typing` itself took longer than fifteen of those.

To type checkers they are `typing`'s own. Nobody here asks for a type as the program runs, so that then a stand-in does.
"""

from __future__ import annotations

from collections.abc import Callable

TYPE_CHECKING = False  # to type checkers a variable of this name is true

if TYPE_CHECKING:
    from typing import Any as Any
    from typing import Optional as Optional
    from typing import Protocol as Protocol
    from typing import TypeVar as TypeVar
    from typing import Union as Union
    from typing import overload as overload
else:

    class Hint:
        """Any special form, with whatever is written in its brackets."""

        def __getitem__(self, types: object) -> Hint:
            return self

    Any = Optional = Union = Hint()

    class Protocol:
        """What classes that say what they expect are derived from."""

    def TypeVar(name: str, *types: object, bound: object = None) -> Hint:  # noqa: N802 - as in `typing`
        return Any

    def overload(function: Callable[..., object]) -> Callable[..., object]:
        return function
