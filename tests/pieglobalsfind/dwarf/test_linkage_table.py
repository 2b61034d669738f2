"""The caller of a frame in a procedure linkage table, which linkers describe by one expression for all entries."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

import pytest

from pieglobalsfind.dwarf.cfi import code_file

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the expression is of x86-64")

SOURCE = "int first(void); int second(void); int both(void) { return first() + second(); }"
RSP, WORD = 7, 8


def test_every_instruction(tmp_path: Path) -> None:
    """By the instructions: each `push` before an address has moved the stack pointer by one word."""
    library = tmp_path / "lazy.so"
    command = ["gcc", "-shared", "-fPIC", "-fcf-protection=none", "-Wl,-z,lazy", "-x", "c", "-", "-o", str(library)]
    subprocess.run(command, input=SOURCE, text=True, check=True, timeout=60)
    shown = subprocess.run(["objdump", "-d", "-j", ".plt", str(library)], capture_output=True, text=True, check=True)
    file = code_file(str(library))
    checked, pushed, is_entry = 0, 0, False
    for line in shown.stdout.splitlines():
        if line.endswith("@plt>:"):
            pushed, is_entry = 0, True
        code = re.match(r"\s*([0-9a-f]+):\t[0-9a-f ]+\t(\w+)", line)
        if code is None or not is_entry:
            continue
        rules = file.rules(int(code[1], 16))
        assert rules is not None and (rules.cfa_register, rules.cfa_offset) == (RSP, WORD + pushed * WORD), line
        checked += 1
        pushed += code[2] == "push"
    assert checked >= 6  # jump, push, jump of each entry
