"""Containers of linked nodes: list, forward_list, map, set, their multi and unordered forms.

Takes the container's bytes; gives its text. A chain ends after as many nodes as the container counts, so that a loop in
damaged memory does, too; one that ends earlier is not a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from pieglobalsfind.dwarf.types import Struct
from pieglobalsfind.values.containers import order_free_text
from pieglobalsfind.values.containers.bounded_contents import (
    MOST_SHOWN,
    ContainedObject,
    ContentSource,
    NoValue,
    encoded,
)
from pieglobalsfind.values.containers.node_layout import NodeLayout, layout_of
from pieglobalsfind.values.containers.sequences import LARGEST_COUNT, joined

LIST_NODE = 16  # bytes before the value: next and previous
FORWARD_NODE = 8  # next
HASH_NODE = 8
TREE_NODE = 32  # colour, parent, left and right
LEFT, RIGHT = 16, 24  # offsets in a node of libstdc++'s tree (bits/stl_tree.h)
DEEPEST_TREE = 128  # levels; a red-black tree of 2^60 nodes has no more

Write = Callable[[ContentSource, int, ContainedObject], str]


class Node(NamedTuple):
    """A node's address and its bytes, as far as its value goes."""

    address: int
    data: bytes


CUT = Node(0, b"")  # stands for all that is not read


def argument(source: ContentSource, whole: ContainedObject, number: int) -> int:
    """A type that a template was made of."""
    bare = source.types.strip(whole.type)
    if not isinstance(bare, Struct) or number >= len(bare.arguments):
        raise NoValue("debug information does not give its template's arguments")
    return bare.arguments[number]


def _read_node(source: ContentSource, address: int, layout: NodeLayout) -> Node:
    """`CUT` where no more bytes may be read; raises `NoValue` where they can't be."""
    if source.contents.allow(layout.size) < layout.size:
        return CUT
    return Node(address, source.memory(address, layout.size))


def link_at(node: Node, offset: int) -> int:
    """The pointer at an offset of a node."""
    return int.from_bytes(node.data[offset : offset + 8], "little")


def counted_text(
    source: ContentSource, title: str, nodes: Iterator[Node], count: int, layout: NodeLayout, write: Write
) -> str:
    """`std::set with 2 elements = {[0] = 1, [1] = 2}` of a container that counts its elements. Raises `NoValue`."""
    parts, passed = _texts(source, islice(nodes, count), layout, write)
    if passed < count and not source.contents.lacking:
        raise NoValue("it has fewer elements than it counts")
    return f"{title} = {joined(parts, count > len(parts))}" if count else title


def chained_text(source: ContentSource, name: str, nodes: Iterator[Node], layout: NodeLayout) -> str:
    """`std::list = {[0] = 1, [1] = 2}`, of one whose end alone says how many elements it has. Raises `NoValue`."""
    parts, passed = _texts(source, nodes, layout, numbered)
    return f"{name} = {joined(parts, passed > len(parts))}" if passed else f"empty {name}"


def _texts(source: ContentSource, nodes: Iterator[Node], layout: NodeLayout, write: Write) -> tuple[list[str], int]:
    """The texts of the elements that are shown, and how many there are; those that are not shown are compared.

    GDB counts a key and its value as two.
    """
    is_plain = source.is_plain(layout.element)
    most = MOST_SHOWN // 2 if write is keyed else MOST_SHOWN
    parts: list[str] = []
    passed = 0
    for node in nodes:
        if node is CUT or (passed >= most and not source.contents.allow_element()):
            return parts, passed + 1
        part = ContainedObject(layout.element, node.address + layout.value, node.data[layout.value :])
        if passed < most:
            parts.append(write(source, passed, part))
        else:
            source.contents.add(part.data if is_plain else encoded(write(source, passed, part)))
        passed += 1
    return parts, passed


def numbered(source: ContentSource, number: int, part: ContainedObject) -> str:
    """Return an element with its number."""
    return f"[{number}] = {source.show(part)}"


def keyed(source: ContentSource, number: int, part: ContainedObject) -> str:
    """Return an element with its key."""
    pair = source.member(part, "__cc") if source.has(part, "__cc") else part  # libc++'s __value_type
    pair = source.member(pair, "__cc_") if source.has(pair, "__cc_") else pair
    key, value = (source.show(source.member(pair, name)) for name in ("first", "second"))
    return f"[{key}] = {value}"


def counted(name: str, count: int) -> str:
    """Return a container's name with its number of elements; raises `NoValue`."""
    if not 0 <= count <= LARGEST_COUNT:
        raise NoValue("its number of elements is invalid")
    return f"{name} with {count} element{'' if count == 1 else 's'}"


def name_of(source: ContentSource, whole: ContainedObject) -> str:
    """Return a class's name without template arguments."""
    bare = source.types.strip(whole.type)
    return bare.name.partition("<")[0] if isinstance(bare, Struct) else ""


def short_name(source: ContentSource, whole: ContainedObject) -> str:
    """The same without libc++'s inline namespace."""
    return name_of(source, whole).replace("std::__1::", "std::")


# ---- lists ----


def list_(source: ContentSource, whole: ContainedObject) -> str:
    """Return a `list` as GDB prints it."""
    is_libcxx = source.has(whole, "__end_")
    head = source.member(whole, "__end_") if is_libcxx else source.member(whole, "_M_impl", "_M_node")
    following = source.word(head, "__next_" if is_libcxx else "_M_next")
    layout = layout_of(source.types, whole.type, argument(source, whole, 0), LIST_NODE)
    nodes = chain(source, following, 8 if is_libcxx else 0, head.address, layout)
    return chained_text(source, name_of(source, whole), nodes, layout)


def forward_list(source: ContentSource, whole: ContainedObject) -> str:
    """Return a `forward_list` as GDB prints it."""
    following = source.word(whole, "_M_impl", "_M_head", "_M_next")
    layout = layout_of(source.types, whole.type, argument(source, whole, 0), FORWARD_NODE)
    return chained_text(source, name_of(source, whole), chain(source, following, 0, 0, layout), layout)


def chain(source: ContentSource, address: int, link: int, end: int, layout: NodeLayout) -> Iterator[Node]:
    """The nodes from one on, to `end`; raises `NoValue` where the chain does not end."""
    seen = set[int]()
    while address and address != end:
        if address in seen:
            raise NoValue("its chain of nodes has a loop")
        seen.add(address)
        node = _read_node(source, address, layout)
        yield node
        address = link_at(node, link) if node is not CUT else end


# ---- trees ----


def map_(source: ContentSource, whole: ContainedObject) -> str:
    """Return a `map` as GDB prints it."""
    return tree(source, whole, keyed)


def set_(source: ContentSource, whole: ContainedObject) -> str:
    """Return a `set` as GDB prints it."""
    return tree(source, whole, numbered)


def tree(source: ContentSource, whole: ContainedObject, write: Write) -> str:
    """Return a map or set of libstdc++ as GDB prints it."""
    inner = source.member(whole, "_M_t")
    root = source.word(inner, "_M_impl", "_M_header", "_M_parent")
    count = source.word(inner, "_M_impl", "_M_node_count")
    title = counted(short_name(source, whole), count)
    layout = layout_of(source.types, inner.type, argument(source, inner, 1), TREE_NODE)
    return counted_text(source, title, in_order(source, root, (LEFT, RIGHT), layout), count, layout, write)


def in_order(source: ContentSource, address: int, links: tuple[int, int], layout: NodeLayout) -> Iterator[Node]:
    """The nodes of a red-black tree from the leftmost on, by its root."""
    left, right = links
    above: list[Node] = []
    while address or above:
        while address:
            if len(above) > DEEPEST_TREE:
                raise NoValue("its tree is too deep")
            node = _read_node(source, address, layout)
            if node is CUT:
                yield node
                return
            above.append(node)
            address = link_at(node, left)
        node = above.pop()
        yield node
        address = link_at(node, right)


# ---- hash tables ----


def unordered_map(source: ContentSource, whole: ContainedObject) -> str:
    """Return an `unordered_map` as GDB prints it."""
    return hash_table(source, whole, keyed)


def unordered_set(source: ContentSource, whole: ContainedObject) -> str:
    """Return an `unordered_set` as GDB prints it."""
    return hash_table(source, whole, numbered)


def hash_table(source: ContentSource, whole: ContainedObject, write: Write) -> str:
    """Return an unordered container of libstdc++ as GDB prints it."""
    inner = source.member(whole, "_M_h")
    count = source.word(inner, "_M_element_count")
    title = counted(short_name(source, whole), count)
    layout = layout_of(source.types, inner.type, argument(source, inner, 1), HASH_NODE)
    nodes = chain(source, source.word(inner, "_M_before_begin", "_M_nxt"), 0, 0, layout)
    return unordered_text(source, title, nodes, count, layout, write)


def unordered_text(
    source: ContentSource, title: str, nodes: Iterator[Node], count: int, layout: NodeLayout, write: Write
) -> str:
    """As `counted_text`; ranks may have the same elements in another order. Raises `NoValue`."""
    most = MOST_SHOWN // 2 if write is keyed else MOST_SHOWN
    parts: list[str] = []
    passed = 0
    is_cut = False
    for node in islice(nodes, count):
        is_cut = node is CUT or (passed >= most and not source.contents.allow_element())
        if is_cut:
            break
        part = ContainedObject(layout.element, node.address + layout.value, node.data[layout.value :])
        parts.append(write(source, 0, part) if write is keyed else source.show(part))
        passed += 1
    if passed < count and not is_cut:
        raise NoValue("it has fewer elements than it counts")
    return f"{title} = {order_free_text.marked(parts, most, write is not keyed, is_cut)}" if count else title
