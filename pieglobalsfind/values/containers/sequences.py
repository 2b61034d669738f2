"""Containers whose elements lie side by side: string, string_view, vector, vector<bool>, deque.

Takes the container's bytes; gives its text. A length that does not fit the pointers is not a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Optional

from pieglobalsfind.dwarf.types import Pointer
from pieglobalsfind.values.containers.bounded_contents import (
    MOST_SHOWN,
    ContainedObject,
    ContentSource,
    NoValue,
    encoded,
)
from pieglobalsfind.values.scalar_text import decode_characters, escaped, quoted

DEQUE_BLOCK = 512  # bytes of a block of libstdc++'s deque (__deque_buf_size)
BITS = 64  # of a word of vector<bool>
LARGEST_COUNT = 1 << 40
MOST_TEXTS = 4096  # that are kept, each of at most MOST_SHOWN characters


def joined(parts: list[str], more: bool) -> str:
    """Return elements in braces."""
    return "{" + ", ".join(parts) + ("..." if more else "") + "}"


def target_of(source: ContentSource, pointer: ContainedObject) -> int:
    """The type that a pointer points to."""
    bare = source.types.strip(pointer.type)
    if not isinstance(bare, Pointer):
        raise NoValue("its type is not as expected")
    return bare.target


def side_by_side(source: ContentSource, element: int, address: int, count: int) -> str:
    """`{1, 2, 3}`; what is not shown of it is compared."""
    size = source.types.size(element)
    if size <= 0 or not 0 <= count <= LARGEST_COUNT:
        raise NoValue("its elements have no size")
    held = source.contents.allow(size * count) // size
    data = source.memory(address, held * size)
    shown = min(held, MOST_SHOWN)
    parts = [source.show(part) for part in elements(element, address, data, size, 0, shown)]
    if held > shown and source.is_plain(element):
        source.contents.add(data)
    elif held > shown:
        for part in elements(element, address, data, size, shown, held):
            if not source.contents.allow_element():
                break
            source.contents.add(encoded(source.show(part)))
    return joined(parts, count > shown)


def elements(element: int, address: int, data: bytes, size: int, first: int, last: int) -> Iterator[ContainedObject]:
    """Yield the elements of an array's bytes."""
    for at in range(first * size, last * size, size):
        yield ContainedObject(element, address + at, data[at : at + size])


def vector(source: ContentSource, whole: ContainedObject) -> str:
    """Return a `vector` as GDB prints it."""
    extent = vector_extent(source, whole)
    if extent is None:
        return vector_of_bits(source, source.member(whole, "_M_impl"))
    element, start, count = extent
    return f"std::vector of length {count}" + (f" = {side_by_side(source, element, start, count)}" if count else "")


def vector_extent(source: ContentSource, whole: ContainedObject) -> Optional[tuple[int, int, int]]:
    """The elements' type, where the first lies, and how many there are; None for bits. Raises `NoValue`."""
    names = ("_M_start", "_M_finish") if source.has(whole, "_M_impl") else LIBCXX_VECTOR
    inner = source.member(whole, "_M_impl") if names is not LIBCXX_VECTOR else whole
    begin = source.member(inner, names[0])
    if not isinstance(source.types.strip(begin.type), Pointer):
        return None
    element = target_of(source, begin)
    start, end = source.word(begin), source.word(inner, names[1])
    size = source.types.size(element)
    if size <= 0 or end < start or (end - start) % size:
        raise NoValue("its begin and end do not fit")
    return element, start, (end - start) // size


LIBCXX_VECTOR = ("__begin_", "__end_")


def vector_of_bits(source: ContentSource, inner: ContainedObject) -> str:
    """Return a `vector<bool>` of libstdc++ as GDB prints it."""
    return bits_text(source, *bits_extent(source, inner))


def bits_extent(source: ContentSource, inner: ContainedObject) -> tuple[int, int]:
    """Where the bits of a `vector<bool>` of libstdc++ begin, and how many there are; raises `NoValue`."""
    start = source.word(inner, "_M_start", "_M_p")
    end, rest = source.word(inner, "_M_finish", "_M_p"), source.word(inner, "_M_finish", "_M_offset")
    if end < start or (end - start) % 8 or rest >= BITS:
        raise NoValue("its begin and end do not fit")
    return start, (end - start) * 8 + rest


def bits_text(source: ContentSource, start: int, count: int) -> str:
    """`std::vector<bool> of length 2 = {true, false}`; bits that are not shown are compared."""
    if not 0 <= count <= LARGEST_COUNT:
        raise NoValue("its length is invalid")
    held = source.contents.allow((count + 7) // 8)
    data = source.memory(start, held)
    shown = min(count, MOST_SHOWN, 8 * held)
    parts = ["true" if data[at // 8] >> at % 8 & 1 else "false" for at in range(shown)]
    if count > shown:
        spare = -count % 8
        source.contents.add(data[:-1] + bytes([data[-1] & 0xFF >> spare]) if 0 < count <= len(data) * 8 else data)
    return f"std::vector<bool> of length {count}" + (f" = {joined(parts, count > shown)}" if count else "")


@dataclass(frozen=True)
class Blocks:
    """A deque's elements: `start` of them would lie before the first, counted from the block that `first` leads to."""

    element: int
    first: int
    start: int
    per_block: int
    count: int


def deque(source: ContentSource, whole: ContainedObject) -> str:
    """Return a `deque` of libstdc++ as GDB prints it."""
    return blocks_text(source, blocks_of(source, whole))


def blocks_of(source: ContentSource, whole: ContainedObject) -> Blocks:
    """Where the elements of a `deque` of libstdc++ lie; raises `NoValue`."""
    inner = source.member(whole, "_M_impl")
    element = target_of(source, source.member(inner, "_M_start", "_M_cur"))
    size = source.types.size(element)
    if size <= 0:
        raise NoValue("its elements have no size")
    per_block = DEQUE_BLOCK // size if size < DEQUE_BLOCK else 1
    start, end = ({name: source.word(inner, side, name) for name in DEQUE_ITERATOR} for side in DEQUE_SIDES)
    blocks, rest = divmod(end["_M_node"] - start["_M_node"], 8)
    before = (start["_M_cur"] - start["_M_first"]) // size
    count = blocks * per_block + (end["_M_cur"] - end["_M_first"]) // size - before
    if not 0 <= count <= LARGEST_COUNT or not 0 <= before <= per_block or rest:
        raise NoValue("its begin and end do not fit")
    return Blocks(element, start["_M_node"], before, per_block, count)


DEQUE_SIDES = ("_M_start", "_M_finish")
DEQUE_ITERATOR = ("_M_cur", "_M_first", "_M_node")


def places(source: ContentSource, blocks: Blocks, numbers: range) -> Iterator[int]:
    """The addresses of some elements of a deque."""
    size = source.types.size(blocks.element)
    current, begin = -1, 0
    for number in numbers:
        block, at = divmod(blocks.start + number, blocks.per_block)
        if block != current:
            current, begin = block, int.from_bytes(source.memory(blocks.first + 8 * block, 8), "little")
        yield begin + at * size


def blocks_text(source: ContentSource, blocks: Blocks) -> str:
    """Return a deque as GDB prints it; what is not shown of it is compared."""
    count = blocks.count
    text = f"std::deque with {count} element{'' if count == 1 else 's'}"
    parts: list[str] = []
    is_plain = source.is_plain(blocks.element)
    for number, place in enumerate(places(source, blocks, range(count))):
        if number >= MOST_SHOWN and not source.contents.allow_element():
            break
        part = source.fetch(blocks.element, place)
        if number < MOST_SHOWN:
            parts.append(source.show(part))
        else:
            source.contents.add(part.data if is_plain else encoded(source.show(part)))
    return f"{text} = {joined(parts, count > MOST_SHOWN)}" if count else text


def string(source: ContentSource, whole: ContainedObject) -> str:
    """`"text"`, as much as GDB shows, the rest compared."""
    if source.has(whole, "_M_dataplus"):
        pointer = source.member(whole, "_M_dataplus", "_M_p")
        return characters(
            source, target_of(source, pointer), source.word(pointer), source.word(whole, "_M_string_length")
        )
    return libcxx_string(source, whole)


def libcxx_string(source: ContentSource, whole: ContainedObject) -> str:
    """libc++ keeps a short text in the object itself; the lowest bit of the first byte says which form it is."""
    long = whole
    for name in ("__r_", "__rep_", "__value_", "__l"):  # some of them, by version
        long = source.member(long, name) if source.has(long, name) else long
    pointer = source.member(long, "__data_")
    element = target_of(source, pointer)
    if whole.data[0] & 1:
        return characters(source, element, source.word(pointer), source.word(long, "__size_"))
    return characters(source, element, whole.address + source.types.size(element), whole.data[0] >> 1)


def string_view(source: ContentSource, whole: ContainedObject) -> str:
    """Return a `string_view` as GDB prints it."""
    names = ("_M_str", "_M_len") if source.has(whole, "_M_str") else ("__data", "__size")
    if not source.has(whole, names[0]):
        names = ("__data_", "__size_")
    pointer = source.member(whole, names[0])
    return characters(source, target_of(source, pointer), source.word(pointer), source.word(whole, names[1]))


def characters(source: ContentSource, element: int, address: int, count: int) -> str:
    """Return characters in quotes, as GDB prints them; raises `NoValue`."""
    size = source.types.size(element)
    if size not in (1, 2, 4) or not 0 <= count <= LARGEST_COUNT:
        raise NoValue("its length is invalid")
    held = source.contents.allow(size * count) // size
    data = source.memory(address, size * held) if held else b""
    shown = data[: MOST_SHOWN * size]
    if held > MOST_SHOWN:
        source.contents.add(data)
    text = plain_text(data[: MOST_SHOWN + 1]) if size == 1 else wide_text(shown, size)
    return text if text.endswith("...") or count <= MOST_SHOWN else f"{text}..."


@lru_cache(maxsize=MOST_TEXTS)
def plain_text(data: bytes) -> str:
    """As of an array of characters, whose last zero is none of the text's; kept, as many ranks have the same."""
    return quoted(data, '"') if data.endswith(b"\0") else decode_characters(data)


def wide_text(data: bytes, size: int) -> str:
    """`u"text"`, `U"text"`."""
    codes = (int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size))
    text = "".join(escaped(code, '"') for code in codes)
    return f'{"u" if size == 2 else "U"}"{text}"'
