"""Which container a type is, by its name and the standard library's namespaces, and its text.

Takes an object of class type; gives its text, or None for a class that is not a known container.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Optional, Union

from pieglobalsfind.dwarf.types import Array, Struct, TypeTable
from pieglobalsfind.model import Absent
from pieglobalsfind.values.containers import libcxx, nodes, sequences, wrappers
from pieglobalsfind.values.containers.bounded_contents import ContainedObject, ContentSource, NoValue

# The inline namespaces of libstdc++'s and libc++'s versions
NAME = re.compile(r"std::(?:__cxx11::|__1::|__ndk1::|__8::)?(\w+)<")
SEQUENCE = re.compile(r"std::(?:\w+::)?(?:vector|deque)<")
Writer = Callable[[ContentSource, ContainedObject], str]
WRITERS: dict[str, Writer] = {
    "basic_string": sequences.string,
    "basic_string_view": sequences.string_view,
    "vector": sequences.vector,
    "deque": sequences.deque,
    "list": nodes.list_,
    "forward_list": nodes.forward_list,
    "map": nodes.map_,
    "multimap": nodes.map_,
    "set": nodes.set_,
    "multiset": nodes.set_,
    "unordered_map": nodes.unordered_map,
    "unordered_multimap": nodes.unordered_map,
    "unordered_set": nodes.unordered_set,
    "unordered_multiset": nodes.unordered_set,
    "optional": wrappers.optional,
    "variant": wrappers.variant,
    "pair": wrappers.pair,
    "atomic": wrappers.atomic,
    "tuple": wrappers.tuple_,
    "unique_ptr": wrappers.unique_ptr,
    "shared_ptr": wrappers.shared_ptr,
}


# Of containers whose layout is libc++'s own, by a member that they have
LIBCXX: dict[str, tuple[str, Writer]] = {
    "vector": ("__size_", libcxx.vector_of_bits),
    "deque": ("__map_", libcxx.deque),
    "forward_list": ("__before_begin_", libcxx.forward_list),
    **dict.fromkeys(("map", "multimap"), ("__tree_", partial(libcxx.tree, write=nodes.keyed))),
    **dict.fromkeys(("set", "multiset"), ("__tree_", partial(libcxx.tree, write=nodes.numbered))),
    **dict.fromkeys(
        ("unordered_map", "unordered_multimap"), ("__table_", partial(libcxx.hash_table, write=nodes.keyed))
    ),
    **dict.fromkeys(
        ("unordered_set", "unordered_multiset"), ("__table_", partial(libcxx.hash_table, write=nodes.numbered))
    ),
}


def written(source: ContentSource, whole: ContainedObject, bare: Struct, writer: Writer) -> str:
    """By the layout that the type has."""
    match = NAME.match(bare.name)
    mark, other = LIBCXX.get(match[1] if match else "", ("", writer))
    return other(source, whole) if mark and source.has(whole, mark) else writer(source, whole)


def writer_of(bare: Struct) -> Optional[Writer]:
    """None for a class that is not a container."""
    match = NAME.match(bare.name)
    return WRITERS.get(match[1]) if match and bare.name.endswith(">") else None


def sequence_element(types: TypeTable, index: int) -> Optional[int]:
    """The type of the elements of a `vector` or `deque`; None for all that has no elements by number."""
    bare = types.strip(index)
    if not isinstance(bare, Struct) or bare.opaque or not bare.arguments or not SEQUENCE.match(bare.name):
        return None
    return bare.arguments[0]


class BitPlace(int):
    """The address of a byte of which one bit, `bit`, is an element of a `vector<bool>`."""

    bit = 0


def bit_place(start: int, number: int) -> BitPlace:
    """Where a bit lies, counted from the lowest of the first byte."""
    place = BitPlace(start + number // 8)
    place.bit = number % 8
    return place


def element_count(source: ContentSource, whole: ContainedObject) -> int:
    """How many elements a `vector` or `deque` has. Raises `NoValue`."""
    blocks, extent = _blocks(source, whole), None
    if blocks is None:
        extent = _extent(source, whole)
    return blocks.count if blocks is not None else extent[2] if extent is not None else _bits(source, whole)[1]


def element_place(source: ContentSource, whole: ContainedObject, number: int) -> Union[int, Absent]:
    """Where an element of a `vector` or `deque` lies, or why there is none. Raises `NoValue`."""
    count = element_count(source, whole)
    if number >= count:
        return too_few(count)
    blocks = _blocks(source, whole)
    if blocks is not None:
        return next(sequences.places(source, blocks, range(number, number + 1)))
    extent = _extent(source, whole)
    if extent is None:
        return bit_place(_bits(source, whole)[0], number)
    element, start, _ = extent
    return start + number * source.types.size(element)


def _blocks(source: ContentSource, whole: ContainedObject) -> Optional[sequences.Blocks]:
    """Of a deque."""
    if source.has(whole, "__map_"):
        return libcxx.blocks_of(source, whole)
    is_deque = source.has(whole, "_M_impl") and source.has(source.member(whole, "_M_impl"), "_M_map")
    return sequences.blocks_of(source, whole) if is_deque else None


def _extent(source: ContentSource, whole: ContainedObject) -> Optional[tuple[int, int, int]]:
    """Of a vector; None of bits."""
    return None if source.has(whole, "__size_") else sequences.vector_extent(source, whole)


def _bits(source: ContentSource, whole: ContainedObject) -> tuple[int, int]:
    if source.has(whole, "__size_"):
        return libcxx.bits_extent(source, whole)
    return sequences.bits_extent(source, source.member(whole, "_M_impl"))


def too_few(count: int) -> Absent:
    """Why a rank has no such element."""
    return Absent(f"it has {count} element{'' if count == 1 else 's'}")


def is_container(types: TypeTable, index: int) -> bool:
    """Return whether a type is a container whose contents can be read."""
    bare = types.strip(index)
    return isinstance(bare, Struct) and not bare.opaque and writer_of(bare) is not None


def holds_containers(types: TypeTable, index: int, depth: int = 0) -> bool:
    """Whether a variable of the type is one, or has one in it."""
    bare = types.strip(index)
    if depth > 50:
        return False
    if isinstance(bare, Struct):
        return is_container(types, index) or any(
            holds_containers(types, member.type, depth + 1) for member in bare.members
        )
    return isinstance(bare, Array) and holds_containers(types, bare.element, depth + 1)


def text_of(source: ContentSource, whole: ContainedObject) -> Optional[str]:
    """The container's text; None for other classes."""
    bare = source.types.strip(whole.type)
    writer = writer_of(bare) if isinstance(bare, Struct) and not bare.opaque else None
    if writer is None or not isinstance(bare, Struct):
        return None
    if len(whole.data) < bare.size:
        return "<incomplete>"
    try:
        return written(source, whole, bare, writer)
    except NoValue as why:
        source.contents.lacking = source.contents.lacking or str(why)
        return f"<not readable as {bare.name.partition('<')[0]}: {why}>"
