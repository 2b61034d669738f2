"""What holds one object or a few: optional, variant, tuple, unique_ptr, shared_ptr.

Takes the wrapper's bytes; gives its text. Of smart pointers the object is shown and compared, not its address.
"""

from __future__ import annotations

import re
from typing import Optional

from pieglobalsfind.dwarf.names import type_name
from pieglobalsfind.dwarf.types import Function, Pointer, Struct, Void
from pieglobalsfind.values.containers import libcxx
from pieglobalsfind.values.containers.contents import NoValue, Part, Source
from pieglobalsfind.values.containers.nodes import argument
from pieglobalsfind.values.containers.sequences import target_of

MOST_ALTERNATIVES = 200
NO_INDEX = (0xFF, 0xFFFF, 0xFFFFFFFF)  # variant_npos in as many bytes as the index has
STRING = re.compile(
    r"std::(__cxx11|__1)::basic_string<char, std::(__1::)?char_traits<char>, std::(__1::)?allocator<char> ?>( (?=>))?"
)
ATOMICS = ("_M_i", "_M_p", "_M_fp", "__a_value")  # of integers and classes, pointers, numbers; libc++'s


def name_of(source: Source, whole: Part) -> str:
    """The class's name, `std::string` in it short, as GDB has it."""
    bare = source.types.strip(whole.type)
    return STRING.sub("std::string", bare.name) if isinstance(bare, Struct) else ""


def optional(source: Source, whole: Part) -> str:
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


def variant(source: Source, whole: Part) -> str:
    is_libcxx = not source.has(whole, "_M_index")
    index, part = libcxx.alternative(source, whole) if is_libcxx else alternative(source, whole)
    if index in NO_INDEX:
        return f"{name_of(source, whole)} [no contained value]"
    if index > MOST_ALTERNATIVES:
        raise NoValue("its index makes no sense")
    rest, first = (("__tail",), ("__head", "__value")) if is_libcxx else (("_M_rest",), ("_M_first", "_M_storage"))
    for _ in range(index):
        part = source.member(part, *rest)
    text = source.show(stored(source, source.member(part, *first)))
    return f"{name_of(source, whole)} [index {index}] = {{{text}}}"


def alternative(source: Source, whole: Part) -> tuple[int, Part]:
    return source.word(whole, "_M_index"), source.member(whole, "_M_u")


def stored(source: Source, part: Part) -> Part:
    """The object in an aligned buffer, which is what libstdc++ keeps of an alternative that has a destructor."""
    if not source.has(part, "_M_storage"):
        return part
    buffer = source.member(part, "_M_storage")
    element = argument(source, part, 0)
    return Part(element, buffer.address, buffer.data[: source.types.size(element)])


def pair(source: Source, whole: Part) -> str:
    first, second = (source.show(source.member(whole, name)) for name in ("first", "second"))
    return f"{{first = {first}, second = {second}}}"


def atomic(source: Source, whole: Part) -> str:
    """The bases and members around the value are libstdc++'s."""
    inner = whole
    while not any(source.has(inner, name) for name in ATOMICS):
        name = next((one for one in ("_M_base", "_M_b", "__a_") if source.has(inner, one)), "")
        inner = source.member(inner, name or ATOMICS[0])
    value = source.member(inner, next(name for name in ATOMICS if source.has(inner, name)))
    return f"{name_of(source, whole)} = {{ {source.show(value)} }}"


def tuple_(source: Source, whole: Part) -> str:
    parts = [f"[{number}] = {source.show(one)}" for number, one in enumerate(tuple_parts(source, whole))]
    return f"std::tuple containing = {{{', '.join(parts)}}}" if parts else "empty std::tuple"


def tuple_parts(source: Source, whole: Part) -> list[Part]:
    """Raises `NoValue` unless they are as many as its type says."""
    found = list(libcxx.tuple_parts(source, whole)) if source.has(whole, "__base_") else heads(source, whole, 0)
    bare = source.types.strip(whole.type)
    if not found and not (isinstance(bare, Struct) and bare.name.endswith("tuple<>")):
        raise NoValue("its type is not as expected")
    return found


def heads(source: Source, whole: Part, depth: int) -> list[Part]:
    """The elements of a tuple: each level has the first of what is left as one base class, the rest as another."""
    bare = source.types.strip(whole.type)
    if not isinstance(bare, Struct) or depth > MOST_ALTERNATIVES:
        raise NoValue("its type is not as expected")
    head: Optional[Part] = None
    rest: list[Part] = []
    for one in bare.members:
        inner = source.at(whole, one.offset, one.type)
        name = name_of(source, inner)
        if re.match(r"std::(_Tuple_impl|tuple)<", name):
            rest = heads(source, inner, depth + 1)
        elif name.startswith("std::_Head_base<"):
            head = source.member(inner, "_M_head_impl") if source.has(inner, "_M_head_impl") else base_of(source, inner)
    return rest if head is None else [head, *rest]


def base_of(source: Source, whole: Part) -> Part:
    """An empty class, which a tuple has as a base class."""
    bare = source.types.strip(whole.type)
    if isinstance(bare, Struct) and len(bare.members) == 1 and bare.members[0].is_base:
        return source.at(whole, 0, bare.members[0].type)
    raise NoValue("its type is not as expected")


def unique_ptr(source: Source, whole: Part) -> str:
    if source.has(whole, "__ptr_"):
        pointer = source.member(whole, "__ptr_")
        pointer = source.member(pointer, "__value_") if source.has(pointer, "__value_") else pointer
    else:
        inner = source.member(whole, "_M_t")
        inner = source.member(inner, "_M_t") if source.has(inner, "_M_t") else inner
        found = heads(source, inner, 0)
        if not found:
            raise NoValue("its type is not as expected")
        pointer = found[0]
    title = f"std::unique_ptr<{type_name(source.types, argument(source, whole, 0), 'C++')}>"
    return f"{title} = {{{pointee(source, pointer)}}}"


def shared_ptr(source: Source, whole: Part) -> str:
    is_libcxx = source.has(whole, "__ptr_")
    pointer = source.member(whole, "__ptr_" if is_libcxx else "_M_ptr")
    title = f"std::shared_ptr<{type_name(source.types, argument(source, whole, 0), 'C++')}>"
    if not source.word(pointer):
        return f"{title} (empty) = {{get() = 0x0}}"
    return f"{title} = {{{pointee(source, pointer)}}}"


def pointee(source: Source, pointer: Part) -> str:
    """`*get() = 5`; the pointer itself where it leads to nothing that can be shown."""
    address = source.word(pointer)
    if not address:
        return "get() = 0x0"
    bare = source.types.strip(target_of(source, pointer))
    if isinstance(bare, (Void, Function, Pointer)) or not bare.size or (isinstance(bare, Struct) and bare.opaque):
        return f"get() = {source.show(pointer)}"
    return f"*get() = {source.show(source.fetch(target_of(source, pointer), address))}"
