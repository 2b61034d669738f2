"""LLVM's libc++: the containers whose layout has nothing in common with libstdc++'s.

Takes the container's bytes; gives its text, as the modules of libstdc++ do. Many members are pairs in which an empty
class takes no room (`__compressed_pair`); newer versions have the member itself there.
"""

from __future__ import annotations

from collections.abc import Iterator

from pieglobalsfind.dwarf.types import Struct
from pieglobalsfind.values.containers.bounded_contents import ContainedObject, ContentSource, NoValue
from pieglobalsfind.values.containers.node_layout import layout_of
from pieglobalsfind.values.containers.nodes import (
    FORWARD_NODE,
    Write,
    argument,
    chain,
    chained_text,
    counted,
    counted_text,
    in_order,
    short_name,
    unordered_text,
)
from pieglobalsfind.values.containers.sequences import LARGEST_COUNT, Blocks, bits_text, blocks_text, target_of

DEQUE_BLOCK, LEAST_IN_BLOCK = 4096, 16  # bytes, elements (__deque_block_size)
LINKS = 0, 8  # offsets of left and right in a node of the tree
TREE_NODE = 25  # bytes before the value: the links, and whether it is black
HASH_NODE = 16  # next and hash


def value_of(source: ContentSource, whole: ContainedObject, *names: str) -> ContainedObject:
    """The first of the members that there is, without the pair around it."""
    name = next((name for name in names if source.has(whole, name)), names[0])
    part = source.member(whole, name)
    return source.member(part, "__value_") if source.has(part, "__value_") else part


def vector_of_bits(source: ContentSource, whole: ContainedObject) -> str:
    """Return a `vector<bool>` of libc++ as GDB prints it."""
    return bits_text(source, *bits_extent(source, whole))


def bits_extent(source: ContentSource, whole: ContainedObject) -> tuple[int, int]:
    """Where the bits of a `vector<bool>` of libc++ begin, and how many there are."""
    return source.word(whole, "__begin_"), source.word(value_of(source, whole, "__size_"))


def deque(source: ContentSource, whole: ContainedObject) -> str:
    """Return a `deque` of libc++ as GDB prints it."""
    return blocks_text(source, blocks_of(source, whole))


def blocks_of(source: ContentSource, whole: ContainedObject) -> Blocks:
    """Where the elements of a `deque` of libc++ lie; raises `NoValue`."""
    blocks = source.member(whole, "__map_", "__begin_")
    first, last = source.word(blocks), source.word(whole, "__map_", "__end_")
    pointer = ContainedObject(target_of(source, blocks), 0, b"")
    element = target_of(source, pointer)
    size, start = source.types.size(element), source.word(whole, "__start_")
    count = source.word(value_of(source, whole, "__size_"))
    per_block = DEQUE_BLOCK // size if 0 < size < DEQUE_BLOCK // LEAST_IN_BLOCK else LEAST_IN_BLOCK
    if size <= 0 or not 0 <= count <= LARGEST_COUNT or start + count > max(last - first, 0) // 8 * per_block:
        raise NoValue("its begin and end do not fit")
    return Blocks(element, first, start, per_block, count)


def forward_list(source: ContentSource, whole: ContainedObject) -> str:
    """Return a `forward_list` of libc++ as GDB prints it."""
    first = source.word(value_of(source, whole, "__before_begin_"), "__next_")
    layout = layout_of(source.types, whole.type, argument(source, whole, 0), FORWARD_NODE)
    return chained_text(source, short_name(source, whole), chain(source, first, 0, 0, layout), layout)


def tree(source: ContentSource, whole: ContainedObject, write: Write) -> str:
    """Return a map or set of libc++ as GDB prints it."""
    inner = source.member(whole, "__tree_")
    root = source.word(value_of(source, inner, "__pair1_", "__end_node_"), "__left_")
    count = source.word(value_of(source, inner, "__pair3_", "__size_"))
    title = counted(short_name(source, whole), count)
    layout = layout_of(source.types, inner.type, argument(source, inner, 0), TREE_NODE)
    return counted_text(source, title, in_order(source, root, LINKS, layout), count, layout, write)


def hash_table(source: ContentSource, whole: ContainedObject, write: Write) -> str:
    """Return an unordered container of libc++ as GDB prints it."""
    inner = source.member(whole, "__table_")
    first = source.word(value_of(source, inner, "__p1_", "__first_node_"), "__next_")
    count = source.word(value_of(source, inner, "__p2_", "__size_"))
    title = counted(short_name(source, whole), count)
    layout = layout_of(source.types, inner.type, argument(source, inner, 0), HASH_NODE)
    return unordered_text(source, title, chain(source, first, 0, 0, layout), count, layout, write)


def alternative(source: ContentSource, whole: ContainedObject) -> tuple[int, ContainedObject]:
    """The index of a variant's alternative, and all of them: each has the first as its head and the others as tail."""
    inner = value_of(source, whole, "__impl", "__impl_")
    return source.word(inner, "__index"), source.member(inner, "__data")


def tuple_parts(source: ContentSource, whole: ContainedObject) -> Iterator[ContainedObject]:
    """The elements of a tuple, which are base classes of one of its members."""
    inner = source.member(whole, "__base_")
    bare = source.types.strip(inner.type)
    for member in bare.members if isinstance(bare, Struct) else ():
        leaf = source.at(inner, member.offset, member.type)
        if source.has(leaf, "__value_"):
            yield source.member(leaf, "__value_")
        elif member.is_base:  # of an empty class
            yield leaf
