"""What holds one object or a few: optional, variant, tuple, unique_ptr, shared_ptr.

Takes the wrapper's bytes; gives its text. Of smart pointers the object is shown and compared, not its address.
"""

from __future__ import annotations

import re
from typing import Optional

from pieglobalsfind.dwarf.type_names import type_name
from pieglobalsfind.dwarf.types import Function, Pointer, Struct, Void
from pieglobalsfind.values.containers import libcxx
from pieglobalsfind.values.containers.bounded_contents import ContainedObject, ContentSource, NoValue
from pieglobalsfind.values.containers.nodes import argument
from pieglobalsfind.values.containers.sequences import target_of

MOST_ALTERNATIVES = 200
NO_INDEX = (0xFF, 0xFFFF, 0xFFFFFFFF)  # variant_npos in as many bytes as the index has
STRING = re.compile(
    r"std::(__cxx11|__1)::basic_string<char, std::(__1::)?char_traits<char>, std::(__1::)?allocator<char> ?>( (?=>))?"
)
ATOMICS = ("_M_i", "_M_p", "_M_fp", "__a_value")  # of integers and classes, pointers, numbers; libc++'s


def name_of(source: ContentSource, whole: ContainedObject) -> str:
    """The class's name, `std::string` in it short, as GDB has it."""
    bare = source.types.strip(whole.type)
    return STRING.sub("std::string", bare.name) if isinstance(bare, Struct) else ""


def optional(source: ContentSource, whole: ContainedObject) -> str:
    """libstdc++ has the value and whether there is one in `_M_payload`, libc++ in the object itself."""
    is_libcxx = source.has(whole, "__engaged_")
    inner = whole if is_libcxx else source.member(whole, "_M_payload")
    if not source.word(inner, "__engaged_" if is_libcxx else "_M_engaged"):
        return f"{name_of(source, whole)} [no contained value]"
    if is_libcxx:
        value = source.member(inner, "__val_")
    else:
        value = source.member(inner, "_M_payload")
        value = source.member(value, "_M_value") if source.has(value, "_M_value") else value
    return f"{name_of(source, whole)} = {{[contained value] = {source.show(value)}}}"


def variant(source: ContentSource, whole: ContainedObject) -> str:
    """Return a `variant` as GDB prints it."""
    is_libcxx = not source.has(whole, "_M_index")
    index, part = libcxx.alternative(source, whole) if is_libcxx else alternative(source, whole)
    if index in NO_INDEX:
        return f"{name_of(source, whole)} [no contained value]"
    if index > MOST_ALTERNATIVES:
        raise NoValue("its index is invalid")
    rest, first = (("__tail",), ("__head", "__value")) if is_libcxx else (("_M_rest",), ("_M_first", "_M_storage"))
    for _ in range(index):
        part = source.member(part, *rest)
    text = source.show(stored(source, source.member(part, *first)))
    return f"{name_of(source, whole)} [index {index}] = {{{text}}}"


def alternative(source: ContentSource, whole: ContainedObject) -> tuple[int, ContainedObject]:
    """Return the index and the object of a variant of libstdc++."""
    return source.word(whole, "_M_index"), source.member(whole, "_M_u")


def stored(source: ContentSource, part: ContainedObject) -> ContainedObject:
    """The object in an aligned buffer, which is what libstdc++ keeps of an alternative that has a destructor."""
    if not source.has(part, "_M_storage"):
        return part
    buffer = source.member(part, "_M_storage")
    element = argument(source, part, 0)
    return ContainedObject(element, buffer.address, buffer.data[: source.types.size(element)])


def pair(source: ContentSource, whole: ContainedObject) -> str:
    """Return a `pair` as GDB prints it."""
    first, second = (source.show(source.member(whole, name)) for name in ("first", "second"))
    return f"{{first = {first}, second = {second}}}"


def atomic(source: ContentSource, whole: ContainedObject) -> str:
    """The bases and members around the value are libstdc++'s."""
    inner = whole
    while not any(source.has(inner, name) for name in ATOMICS):
        name = next((member for member in ("_M_base", "_M_b", "__a_") if source.has(inner, member)), "")
        inner = source.member(inner, name or ATOMICS[0])
    value = source.member(inner, next(name for name in ATOMICS if source.has(inner, name)))
    return f"{name_of(source, whole)} = {{ {source.show(value)} }}"


def tuple_(source: ContentSource, whole: ContainedObject) -> str:
    """Return a `tuple` as GDB prints it."""
    parts = [
        f"[{number}] = {source.show(contained_object)}"
        for number, contained_object in enumerate(tuple_parts(source, whole))
    ]
    return f"std::tuple containing = {{{', '.join(parts)}}}" if parts else "empty std::tuple"


def tuple_parts(source: ContentSource, whole: ContainedObject) -> list[ContainedObject]:
    """Raises `NoValue` unless they are as many as its type says."""
    contained_objects = (
        list(libcxx.tuple_parts(source, whole)) if source.has(whole, "__base_") else heads(source, whole, 0)
    )
    bare = source.types.strip(whole.type)
    if not contained_objects and not (isinstance(bare, Struct) and bare.name.endswith("tuple<>")):
        raise NoValue("its type is not as expected")
    return contained_objects


def heads(source: ContentSource, whole: ContainedObject, depth: int) -> list[ContainedObject]:
    """The elements of a tuple: each level has the first of what is left as one base class, the rest as another."""
    bare = source.types.strip(whole.type)
    if not isinstance(bare, Struct) or depth > MOST_ALTERNATIVES:
        raise NoValue("its type is not as expected")
    head: Optional[ContainedObject] = None
    rest: list[ContainedObject] = []
    for member in bare.members:
        inner = source.at(whole, member.offset, member.type)
        name = name_of(source, inner)
        if re.match(r"std::(_Tuple_impl|tuple)<", name):
            rest = heads(source, inner, depth + 1)
        elif name.startswith("std::_Head_base<"):
            head = source.member(inner, "_M_head_impl") if source.has(inner, "_M_head_impl") else base_of(source, inner)
    return rest if head is None else [head, *rest]


def base_of(source: ContentSource, whole: ContainedObject) -> ContainedObject:
    """An empty class, which a tuple has as a base class."""
    bare = source.types.strip(whole.type)
    if isinstance(bare, Struct) and len(bare.members) == 1 and bare.members[0].is_base:
        return source.at(whole, 0, bare.members[0].type)
    raise NoValue("its type is not as expected")


def unique_ptr(source: ContentSource, whole: ContainedObject) -> str:
    """Return a `unique_ptr` as GDB prints it."""
    if source.has(whole, "__ptr_"):
        pointer = source.member(whole, "__ptr_")
        pointer = source.member(pointer, "__value_") if source.has(pointer, "__value_") else pointer
    else:
        inner = source.member(whole, "_M_t")
        inner = source.member(inner, "_M_t") if source.has(inner, "_M_t") else inner
        contained_objects = heads(source, inner, 0)
        if not contained_objects:
            raise NoValue("its type is not as expected")
        pointer = contained_objects[0]
    title = f"std::unique_ptr<{type_name(source.types, argument(source, whole, 0), 'C++')}>"
    return f"{title} = {{{pointee(source, pointer)}}}"


def shared_ptr(source: ContentSource, whole: ContainedObject) -> str:
    """Return a `shared_ptr` as GDB prints it."""
    is_libcxx = source.has(whole, "__ptr_")
    pointer = source.member(whole, "__ptr_" if is_libcxx else "_M_ptr")
    title = f"std::shared_ptr<{type_name(source.types, argument(source, whole, 0), 'C++')}>"
    if not source.word(pointer):
        return f"{title} (empty) = {{get() = 0x0}}"
    return f"{title} = {{{pointee(source, pointer)}}}"


def pointee(source: ContentSource, pointer: ContainedObject) -> str:
    """`*get() = 5`; the pointer itself where it leads to nothing that can be shown."""
    address = source.word(pointer)
    if not address:
        return "get() = 0x0"
    bare = source.types.strip(target_of(source, pointer))
    if isinstance(bare, (Void, Function, Pointer)) or not bare.size or (isinstance(bare, Struct) and bare.opaque):
        return f"get() = {source.show(pointer)}"
    return f"*get() = {source.show(source.fetch(target_of(source, pointer), address))}"
