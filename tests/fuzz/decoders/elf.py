"""ELF files: symbols are the true ones as long as only code and data, or other symbols' values, are damaged."""

from __future__ import annotations

from collections.abc import Callable

from elftools.elf import elffile
from elftools.elf.structs import ELFStructs

from inspector.program.program_file import ProgramFile
from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.elf.loaded import LoadedElf
from pieglobalsfind.elf.symbol_table import read_symbols
from pieglobalsfind.errors import MemoryUnreadable, RanklensError
from tests.fuzz.patches import damaged, written
from tests.fuzz.scratch import ScratchFile
from tests.support.fabricate.elf_file import PAGE, SYMBOL, Symbol, shared_object

SYMBOLS = (
    Symbol("main", 0x1000, 16),
    Symbol("solve", 0x1040, 64),
    Symbol("my_rank", 0x2000, 4, 0x11, 2),
    Symbol("hidden", 0x2010, 8, 0x01, 2),
)
BYTES = shared_object(SYMBOLS)
TABLE = 3 * PAGE
SCRATCH = ScratchFile()
MADE: dict[tuple[object, ...], dict[str, object]] = {}  # pyelftools' structures by what they depend on

MOST_MADE = 1 << 8


class KeptStructures(ELFStructs):
    """pyelftools' structures, which it makes anew for each file, though they depend on the header's kinds alone."""

    def create_basic_structs(self) -> None:
        """Those that were made for such a file before."""
        self._make(super().create_basic_structs)

    def create_advanced_structs(self, *kinds: object) -> None:
        """Those that were made for such a file before."""
        self._make(super().create_advanced_structs, *kinds)

    def _make(self, make: Callable[..., None], *kinds: object) -> None:
        place = self.little_endian, self.elfclass, *kinds
        if place not in MADE:
            if len(MADE) >= MOST_MADE:
                MADE.clear()  # damaged headers have ever other kinds
            make(*kinds)
            MADE[place] = dict(self.__dict__)
        self.__dict__.update(MADE[place])


setattr(elffile, "ELFStructs", KeptStructures)  # noqa: B010


def seeds() -> list[bytes]:
    """No damage; words of headers, symbols and sections."""
    places = [*range(0, 0x200, 16), *range(TABLE, len(BYTES), 12)]
    return [b"", *(written([(at, b"\xff\x7f")]) for at in places)]


def of_symbol(offset: int) -> int:
    """The symbol whose value or size a byte is; -1: it is of something that all symbols follow from."""
    index, field = divmod(offset - TABLE - SYMBOL, SYMBOL)
    return index if 0 <= index < len(SYMBOLS) and field >= 8 else -1


def check(data: bytes) -> None:
    content, wrong = damaged(BYTES, data)
    SCRATCH.write(content)
    try:
        with ElfFile(SCRATCH.path) as elf:
            symbols = read_symbols(elf)
            names = [symbols.addresses.named(address.name) for address in symbols.addresses]
            _ = elf.build_id, elf.dynamic, elf.tls, elf.sections
        with ProgramFile(SCRATCH.path) as file:
            _ = list(file.relocations()), file.symbols, file.needed, file.flags, file.dynamic_section
    except RanklensError:
        symbols = None
    read_loaded(content)
    others = {of_symbol(offset) for offset in wrong if not PAGE <= offset < TABLE}
    if symbols is None or -1 in others:
        return
    assert all(names)
    for index, symbol in enumerate(SYMBOLS):
        file_symbol = symbols.addresses.named(symbol.name)
        if index not in others and file_symbol is not None:
            assert file_symbol.start == symbol.value, (symbol.name, file_symbol)


def read_loaded(content: bytes) -> None:
    """The same bytes as an image in memory."""

    def read(address: int, size: int) -> bytes:
        if not 0 <= address - PAGE <= len(content) - size or size > len(content):
            raise MemoryUnreadable(address, size)
        return content[address - PAGE : address - PAGE + size]

    try:
        image = LoadedElf(read, PAGE)
        _ = image.build_id, image.dynamic, image.span, image.load_bias, image.symbol("main")
    except RanklensError:
        pass
