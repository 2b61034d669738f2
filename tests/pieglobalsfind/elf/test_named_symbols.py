"""Variables by name in a file that a real linker has made, held against nm."""

from __future__ import annotations

import subprocess
from pathlib import Path

from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.elf.named_symbols import symbols

NAMES = ("root", "my_root", "not_my_root", "oot_alone")
SOURCE = "".join(f"static volatile long {name} = {at + 1};\n" for at, name in enumerate(NAMES))


def test_names_that_share_their_ends(tmp_path: Path) -> None:
    """The linker stores "not_my_root" alone; the others begin within it."""
    source, file = tmp_path / "names.c", tmp_path / "names.so"
    source.write_text(f"{SOURCE}long sum(void) {{ return {' + '.join(NAMES)}; }}\n")
    subprocess.run(["gcc", "-shared", "-fPIC", str(source), "-o", str(file)], check=True, timeout=60)
    said = subprocess.run(["nm", "-S", str(file)], capture_output=True, text=True, check=True, timeout=60).stdout
    rows = (line.split() for line in said.splitlines())
    expected = {row[3]: (0x1000 + int(row[0], 16), int(row[1], 16)) for row in rows if row[-1] in NAMES}
    with ElfFile(str(file)) as elf:
        assert symbols(elf, 0x1000, [*NAMES, "oot", "t_my_root"]) == expected
    assert len(expected) == len(NAMES) and file.read_bytes().count(b"root\0") == 1
