"""Containers of linked nodes: list, forward_list, map, set, their multi and unordered forms.

Takes the container's bytes; gives its text. A chain ends after as many nodes as the container counts, so that a loop in
damaged memory does, too; one that ends earlier is not a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pieglobalsfind.dwarf.types import Array, Base, Enum, MemberPointer, Pointer, Struct, TypeTable
from pieglobalsfind.values.containers.contents import MOST_SHOWN, ContainedObject, ContentSource, NoValue
from pieglobalsfind.values.containers.sequences import LARGEST_COUNT, joined

LIST_NODE = 16  # bytes before the value: next and previous
FORWARD_NODE = 8  # next
HASH_NODE = 8
TREE_NODE = 32  # colour, parent, left and right
LEFT, RIGHT, PARENT = 16, 24, 8  # offsets in a node of libstdc++'s tree (bits/stl_tree.h)
LIBCXX_LEFT, LIBCXX_RIGHT, LIBCXX_PARENT = 0, 8, 16  # (__tree)
LIBCXX_HASH_NODE = 16  # next and hash
DEEPEST_TREE = 128  # levels; a red-black tree of 2^60 nodes has no more

Write = Callable[[ContentSource, int, ContainedObject], str]


def alignment(types: TypeTable, index: int, depth: int = 0) -> int:
    """Of an object of this type, in bytes."""
    bare = types.strip(index)
    if depth > 50:
        raise NoValue("its type is too deep")
    if isinstance(bare, Struct):
        inner = (alignment(types, member.type, depth + 1) for member in bare.members)
        return max(bare.alignment, max(inner, default=1))
    if isinstance(bare, Array):
        return alignment(types, bare.element, depth + 1)
    if isinstance(bare, Base):
        whole = bare.size // 2 if bare.encoding == "complex_float" else bare.size
        return max(1, min(whole, 16))
    return max(1, min(bare.size, 8)) if isinstance(bare, (Enum, Pointer, MemberPointer)) else 1


def value_offset(source: ContentSource, element: int, head: int) -> int:
    """Where the value is in a node that begins with so many bytes."""
    step = alignment(source.types, element)
    return -(-head // step) * step


def argument(source: ContentSource, whole: ContainedObject, number: int) -> int:
    """A type that a template was made of."""
    bare = source.types.strip(whole.type)
    if not isinstance(bare, Struct) or number >= len(bare.arguments):
        raise NoValue("debug information does not tell its template's arguments")
    return bare.arguments[number]


def _pointer_at(source: ContentSource, address: int) -> int:
    if source.contents.allow(8) < 8:
        raise NoValue("it is too large")
    return int.from_bytes(source.memory(address, 8), "little")


def written(
    source: ContentSource, title: str, nodes: Iterator[int], count: int, element: int, head: int, write: Write
) -> str:
    """`std::set with 2 elements = {[0] = 1, [1] = 2}`; elements that are not shown are compared.

    GDB counts a key and its value as two.
    """
    offset, parts = value_offset(source, element, head), list[str]()
    is_plain = source.is_plain(element)
    most = MOST_SHOWN // 2 if write is keyed else MOST_SHOWN
    for number in range(count):
        if number >= most and not source.contents.allow_element():
            break
        node = next(nodes, 0)
        if not node:
            raise NoValue("it has fewer elements than it counts")
        part = source.fetch(element, node + offset)
        if number < most:
            parts.append(write(source, number, part))
        else:
            source.contents.add(part.data if is_plain else write(source, number, part).encode())
    return f"{title} = {joined(parts, count > most)}" if count else title


def numbered(source: ContentSource, number: int, part: ContainedObject) -> str:
    """Return an element with its number."""
    return f"[{number}] = {source.show(part)}"


def keyed(source: ContentSource, number: int, part: ContainedObject) -> str:
    """Return an element with its key."""
    names = ("first", "second")
    if source.has(part, "__cc"):  # libc++'s __value_type
        part = source.member(part, "__cc")
    elif source.has(part, "__cc_"):
        part = source.member(part, "__cc_")
    key, value = (source.show(source.member(part, name)) for name in names)
    return f"[{key}] = {value}"


def counted(name: str, count: int) -> str:
    """Return a container's name with its number of elements; raises `NoValue`."""
    if not 0 <= count <= LARGEST_COUNT:
        raise NoValue("its number of elements makes no sense")
    return f"{name} with {count} element{'' if count == 1 else 's'}"


# ---- lists ----


def list_(source: ContentSource, whole: ContainedObject) -> str:
    """Return a `list` as GDB prints it."""
    element = argument(source, whole, 0)
    is_libcxx = source.has(whole, "__end_")
    head = source.member(whole, "__end_") if is_libcxx else source.member(whole, "_M_impl", "_M_node")
    following = source.word(head, "__next_" if is_libcxx else "_M_next")
    count = sum(1 for _ in chain(source, following, 8 if is_libcxx else 0, head.address))
    title = f"{name_of(source, whole)}" if count else f"empty {name_of(source, whole)}"
    nodes = chain(source, following, 8 if is_libcxx else 0, head.address)
    return written(source, title, nodes, count, element, LIST_NODE, numbered)


def forward_list(source: ContentSource, whole: ContainedObject) -> str:
    """Return a `forward_list` as GDB prints it."""
    element = argument(source, whole, 0)
    following = source.word(whole, "_M_impl", "_M_head", "_M_next")
    count = sum(1 for _ in chain(source, following, 0, 0))
    title = name_of(source, whole) if count else f"empty {name_of(source, whole)}"
    return written(source, title, chain(source, following, 0, 0), count, element, FORWARD_NODE, numbered)


def name_of(source: ContentSource, whole: ContainedObject) -> str:
    """Return a class's name without template arguments."""
    bare = source.types.strip(whole.type)
    return bare.name.partition("<")[0] if isinstance(bare, Struct) else ""


def chain(source: ContentSource, node: int, link: int, end: int) -> Iterator[int]:
    """The nodes from one on, to `end`; raises `NoValue` where the chain does not end."""
    seen = set[int]()
    while node and node != end:
        if node in seen:
            raise NoValue("its chain of nodes has a loop")
        seen.add(node)
        yield node
        node = _pointer_at(source, node + link)


# ---- trees ----


def _tree_title(source: ContentSource, whole: ContainedObject) -> str:
    return name_of(source, whole).replace("std::__1::", "std::")


def map_(source: ContentSource, whole: ContainedObject) -> str:
    """Return a `map` as GDB prints it."""
    return tree(source, whole, keyed)


def set_(source: ContentSource, whole: ContainedObject) -> str:
    """Return a `set` as GDB prints it."""
    return tree(source, whole, numbered)


def tree(source: ContentSource, whole: ContainedObject, write: Write) -> str:
    """Return a map or set of libstdc++ as GDB prints it."""
    inner = source.member(whole, "_M_t")
    element = argument(source, inner, 1)
    header = source.member(inner, "_M_impl", "_M_header")
    count = source.word(inner, "_M_impl", "_M_node_count")
    nodes = in_order(source, source.word(header, "_M_left"), header.address, (LEFT, RIGHT, PARENT))
    return written(source, counted(_tree_title(source, whole), count), nodes, count, element, TREE_NODE, write)


def in_order(source: ContentSource, node: int, end: int, links: tuple[int, int, int]) -> Iterator[int]:
    """The nodes of a red-black tree from the leftmost on."""
    left, right, parent = links
    while node and node != end:
        yield node
        child = _pointer_at(source, node + right)
        if child:
            node = lowest(source, child, left)
            continue
        for _ in range(DEEPEST_TREE):
            above = _pointer_at(source, node + parent)
            came_from_right = above != end and above and _pointer_at(source, above + right) == node
            node = above
            if not came_from_right:
                break
        else:
            raise NoValue("its tree is too deep")


def lowest(source: ContentSource, node: int, left: int) -> int:
    """Return the node at the left end of a tree."""
    for _ in range(DEEPEST_TREE):
        child = _pointer_at(source, node + left)
        if not child:
            return node
        node = child
    raise NoValue("its tree is too deep")


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
    element = argument(source, inner, 1)
    count = source.word(inner, "_M_element_count")
    nodes = chain(source, source.word(inner, "_M_before_begin", "_M_nxt"), 0, 0)
    return written(source, counted(_tree_title(source, whole), count), nodes, count, element, HASH_NODE, write)
