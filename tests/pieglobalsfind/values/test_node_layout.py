"""Where values lie in nodes whose own type debug information only declares: by alignment, or not at all."""

from __future__ import annotations

import pytest

from pieglobalsfind.dwarf.types import Array, Base, Dimension, Member, Struct, Type, Typedef, TypeTable
from pieglobalsfind.values.containers.bounded_contents import NoValue
from pieglobalsfind.values.containers.node_layout import PACKED, PERHAPS_PACKED, layout_of

CONTAINER, ELEMENT, LONG, CHARACTER = 0, 1, 2, 3
LIST, TREE = 16, 25  # bytes of links: of libstdc++'s list, of libc++'s tree
REST: tuple[Type, ...] = (Base("long double", 16, "float"), Base("char", 1, "signed_char"), Base("int", 4, "signed"))


def offset(element: Type, head: int, *more: Type) -> int:
    table = TypeTable((Struct("class", "std::list<E>", 24, ()), element, *REST, *more))
    layout = layout_of(table, CONTAINER, ELEMENT, head)
    assert layout.size == layout.value + table.size(ELEMENT)
    return layout.value


def aggregate(*members: Member, size: int, alignment: int = 1) -> Struct:
    return Struct("struct", "E", size, members, alignment=alignment)


def test_numbers() -> None:
    assert offset(Base("int", 4, "signed"), TREE) == 28
    assert offset(Base("char", 1, "signed_char"), TREE) == 25
    assert offset(Base("long double", 16, "float"), LIST) == 16


def test_alignment_asked_for_by_class_member_and_name() -> None:
    assert offset(aggregate(Member("c", CHARACTER, 0), size=32, alignment=32), LIST) == 32
    member = Member("c", CHARACTER, 0, alignment=32)
    assert offset(aggregate(member, size=32, alignment=32), LIST) == 32
    assert offset(Typedef("Aligned", 4, alignment=32), LIST) == 32


@pytest.mark.parametrize("count", [1, 3])
def test_classes_that_are_seen_to_be_packed(count: int) -> None:
    at_odd_place = aggregate(Member("c", CHARACTER, 0), Member("d", LONG, 1), size=17)
    with pytest.raises(NoValue, match=PACKED):
        offset(at_odd_place, LIST)
    with pytest.raises(NoValue, match=PACKED):
        offset(Array(5, (Dimension(0, count),), 17 * count), LIST, at_odd_place)


def test_classes_that_may_be_packed_and_would_lie_elsewhere() -> None:
    """Nothing tells `struct {int i;}` from the packed one; in a node where both lie alike that does not matter."""
    number = aggregate(Member("i", 4, 0), size=4)
    with pytest.raises(NoValue, match=PERHAPS_PACKED):
        offset(number, TREE)
    assert offset(number, LIST) == 16


def test_a_node_whose_element_is_only_declared_says_the_type_of_its_value() -> None:
    """As in maps of libc++ 22: `__tree<__value_type<K, V>, ...>`, and a node with a `pair<const K, V>`."""
    pair, node, allocator, container = 5, 6, 7, 8
    types: list[Type] = [Struct("class", "std::__1::__value_type<int, int>", 0, (), opaque=True), *REST]
    table = TypeTable(
        (
            Base("int", 4, "signed"),
            *types,
            Struct("struct", "std::__1::pair<int const, int>", 8, (Member("first", 0, 0), Member("second", 0, 4))),
            Struct("class", "std::__1::__tree_node<E, void*>", 40, (Member("__value_", pair, 28),)),
            Struct("class", "std::__1::allocator<N>", 1, (), arguments=(node,)),
            Struct("class", "std::__1::__tree<E>", 24, (Member("__alloc", allocator, 0),)),
        )
    )
    layout = layout_of(table, container, 1, TREE)
    assert (layout.element, layout.value, layout.size) == (pair, 28, 36)
