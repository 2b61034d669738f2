"""The frozen classes of facts.py behave as the standard's `dataclasses` and `NamedTuple`, which are the oracles."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any, NamedTuple, Optional

import pytest

from pieglobalsfind import facts


def plain(decorator: Any, field: Any) -> Any:
    """The same class by one or the other."""

    @decorator(frozen=True)
    class Place:
        """Where something is."""

        name: str
        address: int
        size: int = 8
        label: Optional[str] = field(default=None, compare=False)

        @property
        def end(self) -> int:
            return self.address + self.size

    return Place


OURS, STANDARD = plain(facts.dataclass, facts.field), plain(dataclasses.dataclass, dataclasses.field)
CALLS: tuple[tuple[tuple[object, ...], dict[str, object]], ...] = (
    (("a", 1), {}),
    (("a", 1, 8), {"label": "x"}),
    (("b",), {"address": 1}),
    (("a", 2, 9, "y"), {}),
)


def test_values_and_equality() -> None:
    pairs = [(OURS(*values, **named), STANDARD(*values, **named)) for values, named in CALLS]
    for ours, standard in pairs:
        assert vars(ours) == vars(standard) and ours.end == standard.end
        assert repr(ours) == repr(standard)
        for our_other, other in pairs:
            assert (ours == our_other) == (standard == other)
            assert (hash(ours) == hash(our_other)) == (hash(standard) == hash(other))
    assert OURS("a", 1) != ("a", 1, 8, None) and OURS("a", 1) != STANDARD("a", 1)
    assert OURS.size == STANDARD.size == 8 and OURS.__doc__ == STANDARD.__doc__


def test_many_are_as_few() -> None:
    """After some the functions that make them are others."""
    ours, standard = plain(facts.dataclass, facts.field), plain(dataclasses.dataclass, dataclasses.field)
    functions = set()
    for number in range(facts.FEW + 2):
        values, named = CALLS[number % len(CALLS)]
        assert vars(ours(*values, **named)) == vars(standard(*values, **named))
        functions.add(ours.__init__)
    assert len(functions) == 2


@pytest.mark.parametrize(
    "values, named",
    [((), {}), (("a",), {}), (("a", 1), {"other": 2}), (("a", 1), {"name": "b"}), ((1, 2, 3, 4, 5), {})],
)
def test_wrong_calls(values: tuple[object, ...], named: dict[str, object]) -> None:
    said = []
    for kind in (OURS, STANDARD):
        with pytest.raises(TypeError) as error:
            kind(*values, **named)
        said.append(str(error.value))
    assert said[0] == said[1]


def test_frozen() -> None:
    one = OURS("a", 1)
    for change, arguments in ((setattr, ("name", "b")), (delattr, ("name",)), (setattr, ("new", 1))):
        with pytest.raises(AttributeError):
            change(one, *arguments)
    assert one == OURS("a", 1)
    with pytest.raises(TypeError):
        facts.dataclass(frozen=False)


@pytest.mark.parametrize("replace", [facts.replace, dataclasses.replace])
def test_replace(replace: Any) -> None:
    assert vars(replace(OURS("a", 1), size=3)) == vars(STANDARD("a", 1, 3))
    assert [one.name for one in dataclasses.fields(OURS)] == ["name", "address", "size", "label"]
    with pytest.raises(TypeError):
        replace(OURS("a", 1), other=3)


def test_fields_are_made_once() -> None:
    """`replace` asks for them several times, and is asked for by the thousand."""
    kind = plain(facts.dataclass, facts.field)
    assert kind.__dataclass_fields__ is kind.__dataclass_fields__


class OurEntry(facts.NamedTuple):
    """One line."""

    kind: str
    address: int
    size: int = 8

    @property
    def end(self) -> int:
        return self.address + self.size


class StandardEntry(NamedTuple):
    """One line."""

    kind: str
    address: int
    size: int = 8

    @property
    def end(self) -> int:
        return self.address + self.size


def test_named_tuples() -> None:
    for kind in (OurEntry, StandardEntry):
        one = kind("a", address=1)
        assert one == ("a", 1, 8) and (one.kind, one.address, one.size, one.end) == ("a", 1, 8, 9)
        assert one._replace(size=2) == ("a", 1, 2) and type(one._replace(size=2)) is kind
        assert kind._fields == ("kind", "address", "size") and one._asdict() == {"kind": "a", "address": 1, "size": 8}
        made = kind._make(iter(("b", 2, 3)))
        assert type(made) is kind and made == ("b", 2, 3) and hash(made) == hash(("b", 2, 3))
        assert repr(made) == f"{kind.__name__}(kind='b', address=2, size=3)" and kind.__doc__ == "One line."
        again = pickle.loads(pickle.dumps(made))
        assert type(again) is kind and again == made
        for wrong in ("size", "other"):
            with pytest.raises(AttributeError):
                setattr(made, wrong, 1)


def test_many_named_tuples_are_as_few() -> None:
    class Many(facts.NamedTuple):
        kind: str
        size: int = 8

    functions = set()
    for number in range(facts.FEW + 2):
        assert Many("a") == ("a", 8) and Many(size=number, kind="b") == ("b", number)
        functions.add(Many.__new__)
    assert len(functions) == 2


@pytest.mark.parametrize(
    "values, named",
    [((), {}), (("a",), {}), (("a", 1), {"other": 2}), (("a", 1), {"kind": "b"}), ((1, 2, 3, 4), {})],
)
def test_wrong_named_tuples(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    said = []
    for kind in (OurEntry, StandardEntry):
        with pytest.raises(TypeError) as error:
            kind(*values, **named)
        said.append(str(error.value).partition("__new__")[2])
    assert said[0] == said[1]
