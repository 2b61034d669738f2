"""Find out what heap blocks hold, by following typed pointers from object to object.

Takes objects of known types, a way to read and the allocator's blocks; follows typed pointers from object to object.
Bounded in objects, so that loops and hostile memory end. What no typed pointer leads to stays unknown.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import NamedTuple, Optional

from pieglobalsfind.dwarf.types import Array, Base, Function, Pointer, Struct, TypeTable, Void
from pieglobalsfind.errors import MemoryUnreadable

from ..values.layout import is_pointer, leaves_at, pointer_offsets, subscript
from .ground import AMBIGUOUS, NO_POINTER, Ground
from .object_evidence import ground_by_type

MOST_OBJECTS = 400_000  # of all ranks together
FEWEST_OBJECTS = 2_000  # of one rank
MOST_WORDS = 1_000_000  # that are followed, of one rank
MOST_ELEMENTS = 100_000  # of one block
MOST_TARGETS = 10_000  # pointers of one type, arrays of it apart
MOST_TRIED = 10_000  # words that must be addresses, if a block is to be an array
LARGEST_OBJECT = 1 << 24  # bytes
MOST_BYTES = 1 << 26  # that are read at once
LONGEST_NAME = 60
BY_POINTER = "DWARF, by a pointer to it:"


class AllocatedRegion(NamedTuple):
    """What an allocator gave away; not `is_whole`: a region whose blocks' beginnings and ends are unknown."""

    start: int
    size: int
    is_whole: bool = True

    @property
    def end(self) -> int:
        """Return the address past the end."""
        return self.start + self.size


@dataclass(frozen=True)
class Typed:
    """`count` objects of a type, one after the other; `name` is how the program calls the first, "->" of a pointer's.

    Of several structs only the first is what the pointer says; the size of the block says whether others follow.
    `mangled` are the words of a jmp_buf that are.
    """

    address: int
    types: TypeTable
    type: int
    name: str
    language: str
    mangled: frozenset[int]
    count: int = 1
    is_pointed: bool = False  # found by a pointer, not a variable

    @cached_property
    def size(self) -> int:
        """Return one element's size in bytes."""
        return self.types.size(self.type)

    @property
    def end(self) -> int:
        """Return the address past the end."""
        return self.address + self.size * self.count

    def ground(self, address: int) -> Ground:
        """What the word at an address in it is."""
        number, offset = divmod(address - self.address, self.size)
        name = f"{self.name.removesuffix('->')}[{number}]" if number else self.name
        ground = ground_by_type(self.types, self.type, offset, name, self.language, self.mangled)
        symbol = ground.symbol.replace("->.", "->").replace("->[", "[0][")
        symbol = f"*{symbol[:-2]}" if symbol.endswith("->") else symbol
        source = ground.source.replace("DWARF:", BY_POINTER) if self.is_pointed else ground.source
        ground = replace(ground, symbol=symbol, source=source)
        if ground.kind == NO_POINTER and self.is_guess(number):
            return replace(ground, kind=AMBIGUOUS, source=f"{ground.source}, if the block is an array")
        return ground

    def is_guess(self, number: int) -> bool:
        """Whether that element may be something else: the rest of a larger struct, for instance."""
        return number > 0 and isinstance(self.types.strip(self.type), Struct)


class TypedPointer(NamedTuple):
    """A pointer in an object: its offset, the type that it points to, and the path to it."""

    offset: int
    type: int
    path: str


class PointersOf:
    """The pointers in objects of each type, looked up once."""

    def __init__(self) -> None:
        self._by_type: dict[tuple[int, int], tuple[TypeTable, tuple[TypedPointer, ...]]] = {}

    def of(self, types: TypeTable, index: int) -> tuple[TypedPointer, ...]:
        """Return the pointers in a type, found once."""
        key = id(types), index
        if key not in self._by_type:  # with the table, whose id stays its own as long as it is kept
            self._by_type[key] = types, tuple(targets(types, index))
        return self._by_type[key][1]


def targets(types: TypeTable, index: int) -> Iterator[TypedPointer]:
    """Pointers that lead to objects; not those in unions, which may be something else, nor to single bytes."""
    for offset in pointer_offsets(types, index)[:MOST_TARGETS]:
        for leaf in leaves_at(types, index, offset):
            if is_pointer(types, leaf, offset) and not leaf.in_union:
                bare = types.strip(leaf.type)
                named = bare.target if isinstance(bare, Pointer) else bare.element if isinstance(bare, Array) else None
                if named is not None and is_object(types, named):
                    yield TypedPointer(offset, named, leaf.path)


def is_object(types: TypeTable, index: int) -> bool:
    """Whether the type says what lies there: bytes are anything's."""
    bare = types.strip(index)
    if isinstance(bare, (Void, Function)) or (isinstance(bare, Base) and bare.size == 1):
        return False
    return 0 < types.size(index) <= LARGEST_OBJECT


class Reached:
    """The objects that typed pointers lead to, in the blocks that `block_at` knows.

    `read` raises `MemoryUnreadable`; `is_address` says whether a pointer may have a value. So many `ranks` will ask.
    """

    def __init__(
        self,
        pointers: PointersOf,
        read: Callable[[int, int], bytes],
        block_at: Callable[[int], Optional[AllocatedRegion]],
        is_address: Callable[[int], bool],
        ranks: int = 1,
    ) -> None:
        self._pointers = pointers
        self._read = read
        self._block_at = block_at
        self._is_address = is_address
        self._by_block: dict[int, list[Typed]] = {}  # by the start of their block
        self._keys: set[tuple[int, int, int]] = set()
        self._words = 0  # followed so far
        self._most = max(FEWEST_OBJECTS, MOST_OBJECTS // max(ranks, 1))
        self.is_cut = False

    def follow(self, roots: Iterable[Typed]) -> None:
        """From some objects on to all that pointers lead to."""
        left = deque(roots)
        while left:
            if len(self._keys) >= self._most or self._words >= MOST_WORDS:
                self.is_cut = True
                return
            left.extend(self._behind(left.popleft()))

    def _behind(self, typed: Typed) -> Iterator[Typed]:
        """The objects that are new, among those behind the pointers of some."""
        index, size = element_of(typed)
        places = self._pointers.of(typed.types, index)
        data = self._bytes(typed) if places else b""
        count = min(len(data) // size, MOST_WORDS // max(len(places), 1))
        self._words += count * len(places)
        for number in range(count if places else 0):
            for offset, target, path in places:
                value = struct.unpack_from("<Q", data, number * size + offset)[0]
                block = self._block_at(value) if value else None
                if block is not None:
                    yield from self._at(block, value, replace(typed, type=target, name=name_of(typed, number, path)))

    def _bytes(self, typed: Typed) -> bytes:
        """Of some objects, as far as anybody wants to follow them."""
        try:
            return self._read(typed.address, min(typed.size * typed.count, MOST_BYTES))
        except MemoryUnreadable:
            return b""

    def _at(self, block: AllocatedRegion, address: int, like: Typed) -> Iterator[Typed]:
        key = address, id(like.types), like.type
        typed = Typed(address, like.types, like.type, like.name, like.language, like.mangled, is_pointed=True)
        if key in self._keys or typed.end > block.end:
            return
        self._keys.add(key)
        if block.is_whole and address == block.start:
            typed = replace(typed, count=self._count(typed, block))
        self._by_block.setdefault(block.start, []).append(typed)
        yield typed

    def _count(self, first: Typed, block: AllocatedRegion) -> int:
        """How many there are in a block that begins with one."""
        count = min(block.size // first.size, MOST_ELEMENTS)
        bare = first.types.strip(first.type)
        if count < 2 or not isinstance(bare, Struct):
            return count
        if is_open(first.types, bare):
            return 1
        places = self._pointers.of(first.types, first.type)
        data = self._bytes(replace(first, count=count))
        words = (
            struct.unpack_from("<Q", data, number * first.size + place.offset)[0]
            for number in range(1, len(data) // first.size)
            for place in places
        )
        is_array = all(not word or self._is_address(word) for word in islice(words, MOST_TRIED))
        return count if data and is_array else 1

    # ---- what was found ----

    def ground(self, address: int) -> Optional[Ground]:
        """What the word at an address is by the objects that were reached, None if none of them has it."""
        block = self._block_at(address)
        around = self._by_block.get(block.start, ()) if block is not None else ()
        covering = [typed for typed in around if typed.address <= address < typed.end]
        sure = [typed for typed in covering if not typed.is_guess((address - typed.address) // typed.size)]
        grounds = [typed.ground(address) for typed in sure or covering]
        if len({ground.kind for ground in grounds}) > 1:
            first = grounds[0]
            return Ground(AMBIGUOUS, "DWARF: pointers of several types lead to it", first.symbol, first.type)
        return grounds[0] if grounds else None

    def has(self, block: AllocatedRegion) -> bool:
        """Whether a typed pointer leads to a block."""
        return block.start in self._by_block

    @property
    def starts(self) -> Iterator[int]:
        """The starts of the blocks that typed pointers lead to."""
        return iter(self._by_block)

    def pointers_in(self, block: AllocatedRegion) -> Iterator[int]:
        """Where pointers are in a block, with repetitions."""
        for typed in self._by_block.get(block.start, ()):
            for number in range(typed.count):
                for place in self._pointers.of(typed.types, typed.type):
                    yield typed.address + number * typed.size + place.offset


def is_open(types: TypeTable, bare: Struct) -> bool:
    """Whether more may follow a struct in its block than another one: members without a size, or those of a derived
    class."""
    return any(member.name.startswith("_vptr") or types.size(member.type) == 0 for member in bare.members)


def element_of(typed: Typed) -> tuple[int, int]:
    """The type and the size of what an array, or an array of arrays, has one after the other; of others their own."""
    index = typed.type
    bare = typed.types.strip(index)
    while isinstance(bare, Array) and bare.data_location is None and typed.types.size(bare.element) > 0:
        index = bare.element
        bare = typed.types.strip(index)
    return index, typed.types.size(index)


def name_of(typed: Typed, number: int, path: str) -> str:
    """How the program calls what a pointer in an object leads to."""
    bare = typed.types.strip(typed.type)
    if isinstance(bare, Array) and bare.data_location is None and typed.count == 1:
        name = typed.name.removesuffix("->") + subscript(bare, number)
    else:
        name = f"{typed.name.removesuffix('->')}[{number}]" if number else typed.name
    name = f"{name}{path}".replace("->.", "->").replace("->[", "[0][")
    name = f"(*{name[:-2]})" if name.endswith("->") else name
    return f"...{name[-LONGEST_NAME:]}->" if len(name) > LONGEST_NAME else f"{name}->"
