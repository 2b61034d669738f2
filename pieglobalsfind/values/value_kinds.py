"""What kind of value a type describes: whether its bytes alone make its text, or its equality."""

from __future__ import annotations

from pieglobalsfind.dwarf.types import Array, Base, Enum, Member, Struct, TypeTable


def is_simple(types: TypeTable, index: int) -> bool:
    """Whether it is a number, or a few: its bytes alone make its text."""
    bare = types.strip(index)
    if isinstance(bare, Struct) and not bare.opaque:
        return all(member.location is None and _is_number(types, member.type) for member in bare.members)
    return _is_number(types, index)


def _is_number(types: TypeTable, index: int) -> bool:
    return isinstance(types.strip(index), (Base, Enum))


def is_plain(types: TypeTable, index: int) -> bool:
    """Whether equal bytes are equal values on every rank: without pointers, containers, or padding that may differ."""
    bare = types.strip(index)
    if isinstance(bare, Struct):
        parts = [member for member in bare.members if not is_empty(types, member)]
        is_whole = not bare.opaque and sum(types.size(part.type) for part in parts) == bare.size
        return is_whole and all(not part.bit_size and is_plain(types, part.type) for part in parts)
    if isinstance(bare, Base):
        numbers = 2 if "complex" in bare.encoding else 1
        return bare.size // numbers <= 8  # the x87's numbers have padding
    return isinstance(bare, Enum) or (isinstance(bare, Array) and is_plain(types, bare.element))


def is_empty(types: TypeTable, member: Member) -> bool:
    """Whether it is a base class without members, which takes no room."""
    bare = types.strip(member.type)
    return member.is_base and isinstance(bare, Struct) and not bare.opaque and not bare.members
