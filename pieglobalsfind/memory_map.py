"""A process's memory map as its kernel writes it (proc(5), /proc/PID/maps), read no further than asked for.

Takes the file's bytes; gives `MemoryMapping`s. A job of a thousand ranks has ten thousand lines, of which a few name
files; a reader of those, or of the line of one address, need not wait for all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Optional, Union, overload

from pieglobalsfind.ranges import range_at
from pieglobalsfind.target import MemoryMapping

_LINE = rb"([0-9a-f]+)-([0-9a-f]+) ([r-])([w-])([x-])([ps]) ([0-9a-f]+) [0-9a-f]+:[0-9a-f]+ \d+ *(.*)"

Fields = tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes]


@cache
def _line() -> re.Pattern[bytes]:
    """Compiled late: a debugger may start without reading any line."""
    return re.compile(_LINE)


class ProcMaps(Sequence[MemoryMapping]):
    """The lines of one reading, in ascending order of address; lines of another form are left out."""

    def __init__(self, text: Optional[bytes]) -> None:
        self._bytes = text
        self._paths = {b"": ""}  # thousands of lines name the same few files
        self._whole: Optional[tuple[MemoryMapping, ...]] = None

    @property
    def is_read(self) -> bool:
        """Return whether the whole map has been read."""
        return self._bytes is not None

    @property
    def _text(self) -> bytes:
        if self._bytes is None:
            self._bytes = self._contents()
        return self._bytes

    def _contents(self) -> bytes:
        """The file, where it was not given."""
        return b""

    def __len__(self) -> int:
        return len(self.whole())

    @overload
    def __getitem__(self, index: int) -> MemoryMapping: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[MemoryMapping, ...]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[MemoryMapping, tuple[MemoryMapping, ...]]:
        return self.whole()[index]

    def __iter__(self) -> Iterator[MemoryMapping]:
        return iter(self.whole())

    def one_by_one(self) -> Iterator[MemoryMapping]:
        """For readers that need the first few."""
        return (self._mapping(match.groups()) for match in _line().finditer(self._text))  # type: ignore[arg-type]

    def whole(self) -> tuple[MemoryMapping, ...]:
        """All of them."""
        if self._whole is None:
            self._whole = tuple(map(self._mapping, _line().findall(self._text)))
        return self._whole

    def of_files(self, part: str) -> list[MemoryMapping]:
        """Those of files in whose path `part` occurs."""
        written = part.replace("\n", "\\012").encode("utf-8", "surrogateescape")
        mappings = map(self._mapping, _line().findall(b"\n".join(self._lines_with(written))))
        return [mapping for mapping in mappings if _is_of_file(mapping, part)]

    def named(self, path: str) -> list[MemoryMapping]:
        """Those of exactly that name: of a file, or one that the kernel gives, as [vdso]."""
        written = path.replace("\n", "\\012").encode("utf-8", "surrogateescape")
        mappings = map(self._mapping, _line().findall(b"\n".join(self._lines_with(written))))
        return [mapping for mapping in mappings if mapping.path == path]

    def _lines_with(self, part: bytes) -> Iterator[bytes]:
        """By a search of the whole text: a look at each of its lines takes a hundred times as long."""
        at = self._text.find(part)
        while at >= 0:
            begin, end = self._text.rfind(b"\n", 0, at) + 1, self._text.find(b"\n", at)
            end = end if end >= 0 else len(self._text)
            yield self._text[begin:end]
            at = self._text.find(part, end)

    def at(self, address: int) -> Optional[MemoryMapping]:
        """The one that holds an address, by bisection: of the text, as long as nothing has needed all lines."""
        if self._whole is not None:
            return range_at(self._whole, address)
        low, high = 0, len(self._text)  # its line begins here, if there is one
        while low < high:
            begin = self._text.rfind(b"\n", low, (low + high) // 2) + 1 or low
            line = _line().match(self._text, begin)
            if line is None:  # the kernel writes no such line
                return next((mapping for mapping in self.whole() if mapping.start <= address < mapping.end), None)
            if address < int(line[1], 16):
                high = begin
            elif address >= int(line[2], 16):
                low = line.end() + 1
            else:
                return self._mapping(line.groups())  # type: ignore[arg-type]
        return None

    def _mapping(self, fields: Fields) -> MemoryMapping:
        start, end, r, w, x, shared, offset, path = fields
        name = self._paths.get(path)
        if name is None:
            name = self._paths[path] = readable_path(path)
        return MemoryMapping(
            int(start, 16), int(end, 16), r == b"r", w == b"w", x == b"x", int(offset, 16), name, shared == b"s"
        )


def readable_path(path: bytes) -> str:
    """As the kernel was given it: it writes line ends as \\012."""
    return path.decode("utf-8", "surrogateescape").replace("\\012", "\n")


def of_files(maps: Sequence[MemoryMapping], part: str) -> list[MemoryMapping]:
    """The mappings of files in whose path `part` occurs."""
    return (
        maps.of_files(part)
        if isinstance(maps, ProcMaps)
        else [mapping for mapping in maps if _is_of_file(mapping, part)]
    )


def named(maps: Sequence[MemoryMapping], path: str) -> list[MemoryMapping]:
    """The mappings of exactly that name."""
    return maps.named(path) if isinstance(maps, ProcMaps) else [each for each in maps if each.path == path]


def _is_of_file(mapping: MemoryMapping, part: str) -> bool:
    return mapping.path.startswith("/") and part in mapping.path


def mapping_at(maps: Sequence[MemoryMapping], address: int) -> Optional[MemoryMapping]:
    """The mapping that holds an address."""
    if isinstance(maps, ProcMaps):
        return maps.at(address)
    return range_at(maps, address)
