"""Where the value lies in a node of a list, a tree or a hash table.

Takes a container's type; gives the layout of its nodes: by the node's own type, to which the container's allocator
leads, or, where debug information only declares that one, by the alignment of the elements. DWARF says nothing of
`__attribute__((packed))`, so that the second way refuses where such an element would lie elsewhere. Reads no memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pieglobalsfind.dwarf.types import Array, Base, Enum, MemberPointer, Place, Pointer, Struct, Typedef, TypeTable
from pieglobalsfind.values.containers.bounded_contents import LARGEST_ELEMENT, NoValue

NODE = re.compile(r"std::(?:\w+::)*(_List|_Fwd_list|_Rb_tree|_Hash|__list|__forward_list|__tree|__hash)_node<")
VALUES = "_M_storage", "_M_data", "_M_value_field", "_M_v", "__value_"  # libstdc++'s, old ones' and libc++'s members
MOST_LEVELS = 12  # of base classes and members between a container and its allocator
MOST_CLASSES = 200  # that are searched for it
DEEPEST = 50  # levels of types within one another
WORD = 8
PACKED = "its elements' type is packed"
PERHAPS_PACKED = "debug information does not say whether its elements' type is packed"


@dataclass(frozen=True)
class NodeLayout:
    """A node's value is of type `element`, at so many bytes; `size` is how many bytes of a node are read."""

    element: int
    value: int
    size: int


def layout_of(types: TypeTable, container: int, element: int, head: int) -> NodeLayout:
    """The layout of a container's nodes, which begin with `head` bytes of links. Raises `NoValue`.

    The maps of libc++ 22 name a class as their element that is nowhere defined; the node has the pair that it means.
    """
    place = types.kept(value_in_node, container)
    declared = types.strip(element)
    if place is not None and isinstance(declared, Struct) and declared.opaque:
        element = place[1]
    size = types.size(element)
    if not 0 <= size <= LARGEST_ELEMENT:
        raise NoValue("it is too large")
    value = place[0] if place is not None and place[0] >= head else _by_alignment(types, element, head)
    return NodeLayout(element, value, value + size)


def value_in_node(types: TypeTable, container: int) -> Place:
    """Offset and type of the value in the nodes that a container's allocator makes, None if no type describes them."""
    seen: set[int] = set()
    for index in _allocated(types, container, seen, 0):
        bare = types.strip(index)
        if isinstance(bare, Struct) and not bare.opaque and NODE.match(bare.name):
            return next(filter(None, (types.place(index, name) for name in VALUES)), None)
    return None


def _allocated(types: TypeTable, index: int, seen: set[int], depth: int) -> Iterator[int]:
    """The arguments of all templates that a class is derived from or has as members: an allocator's is the node."""
    bare = types.strip(index)
    if index in seen or depth > MOST_LEVELS or len(seen) > MOST_CLASSES or not isinstance(bare, Struct):
        return
    seen.add(index)
    yield from bare.arguments if depth else ()
    for member in bare.members:
        yield from _allocated(types, member.type, seen, depth + 1)


def _by_alignment(types: TypeTable, element: int, head: int) -> int:
    step = alignment(types, element)
    value = -(-head // step) * step
    if value != head and may_be_packed(types, element):
        raise NoValue(PERHAPS_PACKED)
    return value


def may_be_packed(types: TypeTable, index: int, depth: int = 0) -> bool:
    """Whether the alignment is only that of members, so that a packed class would look the same."""
    bare = types.strip(index)
    if isinstance(bare, Array):
        return depth < DEEPEST and may_be_packed(types, bare.element, depth + 1)
    return isinstance(bare, Struct) and bare.alignment == 1


def alignment(types: TypeTable, index: int, depth: int = 0) -> int:
    """Of an object of this type, in bytes. Raises `NoValue` for a class whose members show that it is packed."""
    if depth > DEEPEST:
        raise NoValue("its type is too deep")
    asked = _asked_for(types, index)
    bare = types.strip(index)
    if isinstance(bare, Struct):
        return max(asked, _of_class(types, bare, depth))
    if isinstance(bare, Array):
        return max(asked, alignment(types, bare.element, depth + 1))
    if asked > 1:
        return asked  # of a typedef, which may have less than the type
    if isinstance(bare, Base):
        whole = bare.size // 2 if bare.encoding == "complex_float" else bare.size
        return max(1, min(whole, 16))
    return max(1, min(bare.size, WORD)) if isinstance(bare, (Enum, Pointer, MemberPointer)) else 1


def _asked_for(types: TypeTable, index: int) -> int:
    """What the program asks for by the names that it gives a type."""
    aliased, asked = types[index], 1
    for _ in range(DEEPEST):
        target = getattr(aliased, "target", None)
        if target is None or isinstance(aliased, (Pointer, MemberPointer)):
            break
        asked = max(asked, aliased.alignment) if isinstance(aliased, Typedef) else asked
        aliased = types[target]
    return asked


def _of_class(types: TypeTable, bare: Struct, depth: int) -> int:
    whole = bare.alignment
    for member in bare.members:
        step = max(member.alignment, alignment(types, member.type, depth + 1))
        if member.location is None and not member.bit_size and member.offset % step:
            raise NoValue(PACKED)
        whole = max(whole, step)
    if bare.size % whole:
        raise NoValue(PACKED)
    return whole
