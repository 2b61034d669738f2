"""The compiler for programs of GDB's test suite that run in a rank: `compiler.py rankcc|rankcxx|rankfort OPTIONS`.

Programs are linked with in_first_rank.c, and the `main` that the runtime enters is that file's: only the entry of the
dynamic symbol table is changed, so the debugger's symbols are those of the program. What the kernel enters is that
file's, too. The ordinary compilers make shared libraries.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv" / "bin"
ORDINARY = {"rankcc": "gcc", "rankcxx": "g++", "rankfort": "gfortran"}
NO_PROGRAM = {"-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "--version", "-dumpversion", "-dumpmachine", "-v"}
ENTRY, OURS, ALONE = b"main", b"main_in_first_rank", b"begin_in_process"
E_ENTRY = slice(0x18, 0x20)
SHT_DYNSYM = 11  # ELF gABI, figure 4-9
POSITION = {"-no-pie", "-nopie", "-pie", "-fno-pie", "-fno-PIE", "-fPIE", "-fpie"}


class Section(NamedTuple):
    """As in the section header table: Elf64_Shdr."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


def main() -> int:
    name, *options = sys.argv[1:]
    if "-shared" in options or NO_PROGRAM.intersection(options) & {"-v", "--version", "-dumpversion", "-dumpmachine"}:
        os.execvp(ORDINARY[name], [ORDINARY[name], *options])
    options = [option for option in options if option not in POSITION]
    if NO_PROGRAM.intersection(options):
        return subprocess.call([str(BIN / name), *options])
    with tempfile.TemporaryDirectory() as folder:
        hold = Path(folder) / "in_first_rank.o"
        source = Path(__file__).with_name("in_first_rank.c")
        subprocess.run([str(BIN / "rankcc"), "-O1", "-c", str(source), "-o", str(hold)], check=True)
        exported = [f"-Wl,--export-dynamic-symbol={symbol.decode()}" for symbol in (OURS, ALONE)]
        libraries = f"-Wl,-rpath,{ROOT / 'build' / 'runtime' / 'lib'}"
        status = subprocess.call([str(BIN / name), *options, str(hold), *exported, libraries])
    program = Path(output_of(options))
    if status == 0 and program.exists():
        enter_ours(program)
    return status


def output_of(options: Sequence[str]) -> str:
    return options[options.index("-o") + 1] if "-o" in options else "a.out"


def enter_ours(program: Path) -> None:
    """Let the program's dynamic symbol `main` mean ours, and let the kernel enter ours."""
    content = bytearray(program.read_bytes())
    symbols = dict(dynamic_symbols(bytes(content)))
    if ENTRY in symbols and OURS in symbols:
        # Elf64_Sym: st_name (4 bytes), st_info, st_other, st_shndx (2), then st_value and st_size.
        to, source = symbols[ENTRY] + 8, symbols[OURS] + 8
        content[to : to + 16] = content[source : source + 16]
        content[E_ENTRY] = content[symbols[ALONE] + 8 : symbols[ALONE] + 16]
        program.write_bytes(content)


def dynamic_symbols(content: bytes) -> Iterator[tuple[bytes, int]]:
    """The names of .dynsym and where in the file their entries are."""
    table, count = struct.unpack_from("<Q", content, 0x28)[0], struct.unpack_from("<H", content, 0x3C)[0]
    sections = [Section(*struct.unpack_from("<IIQQQQIIQQ", content, table + 64 * at)) for at in range(count)]
    for section in sections:
        if section.type == SHT_DYNSYM:
            names = sections[section.link].offset
            for at in range(section.offset, section.offset + section.size, 24):
                start = names + struct.unpack_from("<I", content, at)[0]
                yield content[start : content.index(b"\0", start)], at


if __name__ == "__main__":
    raise SystemExit(main())
