"""`@dataclass(frozen=True)` for what debuggers import as they start: declared a dozen times as fast as the standard's.

For every class `dataclasses` writes and compiles six methods as it is declared, and it imports `inspect`: for the fifty
classes here half of the time that sourcing the GDB extension took. Here those methods are shared, and `__init__` is
compiled when the first instance is made. It knows what these classes need: values, defaults, and nothing inherited.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:  # to type checkers they are what they stand for
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
else:

    def dataclass(*, frozen: bool) -> Callable[[type], type]:
        """The decorator; there are none but frozen ones."""
        if not frozen:
            raise TypeError("facts do not change")
        return declared

    def field(*, default: Any, compare: bool = True) -> Any:
        """A default value; `compare`: whether two instances must have the same to be equal."""
        return Default(default, compare)

    def replace(value: Any, **changes: Any) -> Any:
        """A copy in which some fields are others."""
        return type(value)(**{**{name: getattr(value, name) for name in value.__match_args__}, **changes})


Class = TypeVar("Class", bound=type)


class Default(NamedTuple):
    value: Any
    compare: bool


def declared(cls: Class) -> Class:
    """Make `cls` frozen, compared by value, and made from its fields in the order of their annotations."""
    names = tuple(cls.__annotations__)
    compared = []
    for name in names:
        default = cls.__dict__.get(name)
        if isinstance(default, Default):
            setattr(cls, name, default.value)
        if not isinstance(default, Default) or default.compare:
            compared.append(name)
    methods = {
        "__init__": first_init(cls, names),
        "__match_args__": names,
        "__eq__": equality(compared),
        "__hash__": lambda self: hash(tuple(getattr(self, name) for name in compared)),
        "__repr__": represented,
        "__setattr__": refused,
        "__delattr__": refused,
        "__dataclass_fields__": Fields(),
    }
    for name, method in methods.items():
        if name in ("__hash__", "__init__") or name not in cls.__dict__:
            setattr(cls, name, method)
    return cls


def first_init(cls: type, names: tuple[str, ...]) -> Callable[..., None]:
    """An `__init__` that puts the compiled one into its place."""

    def init(self: Any, *values: Any, **named: Any) -> None:
        compiled = compiled_init(cls, names)
        cls.__init__ = compiled  # type: ignore[misc]
        compiled(self, *values, **named)

    return init


def compiled_init(cls: type, names: tuple[str, ...]) -> Callable[..., None]:
    defaults = {f"default_{name}": cls.__dict__[name] for name in names if name in cls.__dict__}
    parameters = [f"{name}=default_{name}" if f"default_{name}" in defaults else name for name in names]
    lines = [f"def __init__({', '.join(['self', *parameters])}):", " values = self.__dict__"]
    lines += [f" values[{name!r}] = {name}" for name in names]
    made: dict[str, Any] = {}
    exec("\n".join(lines), defaults, made)
    init: Callable[..., None] = made["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"  # for errors of whoever calls it wrongly
    return init


def equality(compared: list[str]) -> Callable[[Any, object], Any]:
    values = attrgetter(*compared) if compared else bool

    def equal(self: Any, other: object) -> Any:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    return equal


def represented(self: Any) -> str:
    fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{type(self).__qualname__}({fields})"


def refused(self: Any, name: str, *_: object) -> None:
    raise AttributeError(f"{name!r} of a {type(self).__qualname__} can't be changed")


class Fields:
    """`__dataclass_fields__`, by which the standard's `replace` and `fields` know such a class; made when asked for."""

    def __get__(self, instance: object, owner: type) -> dict[str, Any]:
        import dataclasses

        names = [(name, Any) for name in owner.__match_args__]  # type: ignore[attr-defined]
        return {one.name: one for one in dataclasses.fields(dataclasses.make_dataclass(owner.__name__, names))}
