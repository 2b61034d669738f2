"""The compilers of programs of GDB's test suite: `compiler.py rankcc|rankcxx|rankfort|nativecc|... OPTIONS`.

Programs are linked with in_process.c, whose code the kernel enters. Those for ranks are linked with in_first_rank.c as
well, and the `main` that the runtime enters is that file's: only the entry of the dynamic symbol table is changed, so
the debugger's symbols are those of the program. Those for processes are as like them as they can be: independent of
their position, not static, with all their symbols exported, and with the runtime's library, of which they use nothing.
The ordinary compilers make shared libraries.
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
RANK, NATIVE = "rank", "native"
ORDINARY = {"cc": "gcc", "cxx": "g++", "fort": "gfortran"}
NO_PROGRAM = {"-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "--version", "-dumpversion", "-dumpmachine", "-v"}
ENTRY, OURS, ALONE = b"main", b"main_in_first_rank", b"begin_in_process"
AS_IN_RANKS = ("-pie", "-rdynamic", f"-Wl,-e,{ALONE.decode()}")
E_ENTRY = slice(0x18, 0x20)
SHT_DYNSYM = 11  # ELF gABI, figure 4-9
STATIC = {"-static", "-static-pie"}
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
    way = RANK if name.startswith(RANK) else NATIVE
    ordinary = ORDINARY[name.removeprefix(way)]
    if "-shared" in options or NO_PROGRAM.intersection(options) & {"-v", "--version", "-dumpversion", "-dumpmachine"}:
        os.execvp(ordinary, [ordinary, *options])
    options = [option for option in options if option not in POSITION]
    compiler = str(BIN / name) if way == RANK else ordinary
    if NO_PROGRAM.intersection(options):
        return subprocess.call([compiler, *options])
    if STATIC.intersection(options):
        print(f"{name}: a program for rankrun can't be linked statically, and is compared with none", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        begins = compiled(Path(folder), "gcc", "in_process")
        if way == NATIVE:
            return subprocess.call([compiler, *options, begins, *AS_IN_RANKS, *runtime()])
        exported = [f"-Wl,--export-dynamic-symbol={symbol.decode()}" for symbol in (OURS, ALONE)]
        libraries = f"-Wl,-rpath,{ROOT / 'build' / 'runtime' / 'lib'}"
        ranks = compiled(Path(folder), str(BIN / "rankcc"), "in_first_rank")
        status = subprocess.call([compiler, *options, begins, ranks, *exported, libraries])
    program = Path(output_of(options))
    if status == 0 and program.exists():
        enter_ours(program)
    return status


def runtime() -> list[str]:
    """The options that have a program load the runtime's library, and with it others, without a use for it."""
    libraries = os.environ["RANKLENS_SUITE_LIBRARIES"]
    return [f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-Wl,--no-as-needed", "-lrankmpi", "-Wl,--as-needed"]


def compiled(folder: Path, compiler: str, name: str) -> str:
    """The object file of a source file of this folder."""
    object_file = folder / f"{name}.o"
    source = Path(__file__).with_name(f"{name}.c")
    subprocess.run([compiler, "-O1", "-fPIC", "-c", str(source), "-o", str(object_file)], check=True)
    return str(object_file)


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
