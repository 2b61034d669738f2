"""Where stock AMPI's code switches from one thread to another: in between, neither has its registers where they belong.

Takes a target; gives ranges of addresses. A kernel thread whose pc lies there has left a rank whose saved context is
still that of its last wait (Charm++, uFcontext.h: the thread that continues stores it).
"""

from __future__ import annotations

from contextlib import suppress

from pieglobalsfind.decoders.ampi.loader import EXPORTED
from pieglobalsfind.elf.file import SHT_DYNSYM, ElfFile
from pieglobalsfind.elf.loaded import exporters
from pieglobalsfind.elf.named_symbols import symbols
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.target import Target, file_starts

NAMES = ("CthResume", "swapJcontext", "setJcontext", "jump_fcontext", "make_fcontext", "CthStartThread")


def switching_code(target: Target) -> tuple[tuple[int, int], ...]:
    """(start, end) of every function of a switch; () where they are not exported, or the target is not AMPI."""
    paths = {mapping.start: mapping.path for mapping in file_starts(target.maps())}
    for loaded, _ in exporters(target.read, file_starts(target.maps()), EXPORTED):
        with suppress(RanklensError):
            path = target.open_path(paths[loaded.base])
            if path is not None:
                with ElfFile(path) as elf:
                    places = symbols(elf, loaded.load_bias, NAMES, SHT_DYNSYM)
                return tuple((at, at + size) for at, size in places.values())
    return ()
