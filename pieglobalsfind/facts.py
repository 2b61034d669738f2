"""`@dataclass(frozen=True)` and `NamedTuple` for what debuggers import as they start: declared many times as fast.

For every class `dataclasses` writes and compiles six methods as it is declared, and it imports `inspect`: for the fifty
classes here half of the time that sourcing the GDB extension took. Here those methods are shared, and `__init__` is
compiled when so many instances have been made that it pays. It knows what these classes need: values, defaults, and
nothing inherited. A `NamedTuple`'s `__new__` is compiled in the same way: the standard's took as long as all of these
classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter, itemgetter

from pieglobalsfind.hints import TYPE_CHECKING, Any, Optional, TypeVar

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
FEW = 100  # instances, which without a compiled function take about as long as to compile one


class Default:
    """What `field` says of a field."""

    def __init__(self, value: Any, compare: bool) -> None:
        self.value = value
        self.compare = compare


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
    """An `__init__` for the first few instances, which then puts a compiled one into its place."""
    left = FEW

    def init(self: Any, /, *values: Any, **named: Any) -> None:
        nonlocal left
        left -= 1
        fields = taken(names, cls.__dict__, values, named) if left >= 0 else None
        if fields is not None:
            self.__dict__.update(fields)
            return
        made = compiled_init(cls, names)
        cls.__init__ = made  # type: ignore[misc]
        made(self, *values, **named)

    return init


def taken(
    names: tuple[str, ...], defaults: Mapping[str, Any], values: tuple[Any, ...], named: dict[str, Any]
) -> Optional[dict[str, Any]]:
    """The fields by a call's arguments; None if the call is wrong, which the compiled function says better."""
    given = dict(zip(names, values))
    if len(given) < len(values) or not given.keys().isdisjoint(named):
        return None
    given.update(named)
    found = {
        name: given[name] if name in given else defaults[name] for name in names if name in given or name in defaults
    }
    return found if len(found) == len(names) and given.keys() <= found.keys() else None


def compiled_init(cls: type, names: tuple[str, ...]) -> Callable[..., None]:
    defaults = {f"default_{name}": cls.__dict__[name] for name in names if name in cls.__dict__}
    lines = [" values = self.__dict__", *(f" values[{name!r}] = {name}" for name in names)]
    return compiled(f"{cls.__qualname__}.__init__", "self", names, defaults, lines)


def first_new(names: tuple[str, ...], defaults: dict[str, Any]) -> Any:
    """The same of a named tuple: its `__new__`."""
    left = FEW

    def new(kind: type, /, *values: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        items = taken(names, defaults, values, named) if left >= 0 else None
        if items is not None:
            return tuple.__new__(kind, items.values())
        made = compiled_new(kind, names, defaults)
        kind.__new__ = staticmethod(made)  # type: ignore[method-assign]
        return made(kind, *values, **named)

    return staticmethod(new)


def compiled_new(kind: type, names: tuple[str, ...], defaults: dict[str, Any]) -> Callable[..., Any]:
    known = {f"default_{name}": value for name, value in defaults.items()}
    items = "".join(f"{name}, " for name in names)
    line = f" return tuple_new(_cls, ({items}))"
    return compiled(f"{kind.__qualname__}.__new__", "_cls", names, {**known, "tuple_new": tuple.__new__}, [line])


def compiled(
    name: str, first: str, names: tuple[str, ...], known: dict[str, Any], lines: list[str]
) -> Callable[..., Any]:
    """A function of `first` and of `names`; what is `known` to its lines has the names' defaults as `default_NAME`."""
    parameters = [f"{one}=default_{one}" if f"default_{one}" in known else one for one in names]
    made: dict[str, Any] = {}
    exec("\n".join([f"def made({', '.join([first, *parameters])}):", *lines]), known, made)
    function: Callable[..., Any] = made["made"]
    function.__name__, function.__qualname__ = name.rpartition(".")[2], name  # for errors of whoever calls it wrongly
    return function


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
    """`__dataclass_fields__`, by which the standard's `replace` and `fields` know such a class.

    Made when it is asked for, and once: that takes a millisecond, and `replace` asks four times.
    """

    def __get__(self, instance: object, owner: type) -> dict[str, Any]:
        import dataclasses

        names = [(name, Any) for name in owner.__match_args__]  # type: ignore[attr-defined]
        found = {one.name: one for one in dataclasses.fields(dataclasses.make_dataclass(owner.__name__, names))}
        owner.__dataclass_fields__ = found  # type: ignore[attr-defined]
        return found


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    try:
        from _collections import _tuplegetter as item_property  # twice as fast, as the standard's have it
    except ImportError:

        def item_property(index: int, doc: str) -> property:
            return property(itemgetter(index), doc=doc)

    class NamedTupleType(type):
        """Turns the annotations of a class that is a tuple into its items' names."""

        def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
            names = tuple(namespace.get("__annotations__", ()))
            defaults = {one: namespace[one] for one in names if one in namespace}
            ours = {one: item_property(index, f"Item {index}.") for index, one in enumerate(names)}
            ours.update(_fields=names, __match_args__=names, __new__=first_new(names, defaults), __slots__=())
            return super().__new__(cls, name, bases, {**namespace, **ours})  # to set them later takes longer

    class NamedTuple(tuple, metaclass=NamedTupleType):
        """What `typing.NamedTuple` is, without methods for what nobody here does with one."""

        _make = classmethod(tuple.__new__)  # of as many values as there are names

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self))

        def _replace(self, **changes: Any) -> Any:
            return type(self)(**{**self._asdict(), **changes})

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"
