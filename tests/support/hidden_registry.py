"""The embedded runtime without a registry: a copy of what is built, whose library publishes it where no reader looks.

In the copy's symbol table and in the name of the mapping another name of the same length stands for the registry's. The
symbol is hidden there, so that the system's loader looks for none of that name.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from tests.support.running import built

NAME, OTHER = b"rank_debug_registry", b"rank_debug_unlisted"
SYMBOL_SIZE, VISIBILITY, HIDDEN = 24, 5, 2  # of Elf64_Sym: bytes, where st_other is, STV_HIDDEN


def rankrun_without_registry(folder: Path) -> Path:
    """The launcher of a runtime in a new folder."""
    shutil.copytree(built("rankrun").resolve().parents[1], folder)
    library = folder / "lib" / "librankmpi.so"
    data = bytearray(library.read_bytes())
    with library.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".dynsym")
        assert isinstance(symbols, SymbolTableSection)
        (index,) = (at for at, symbol in enumerate(symbols.iter_symbols()) if symbol.name == NAME.decode())
        data[symbols["sh_offset"] + SYMBOL_SIZE * index + VISIBILITY] = HIDDEN
    library.write_bytes(data.replace(NAME, OTHER))
    return folder / "bin" / "rankrun"
