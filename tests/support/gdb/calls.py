"""Whether GDB can call functions on this machine, in an ordinary process and without the extension.

GDB 13 can't on processors whose register state is larger than it knows (AMX): it reads registers and fails to write
them, so that calls fail, and a checkpoint, which is a call of fork, ends GDB by an internal error.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.sharing import Shared

SOURCE = "int next_of(int number) { return number + 1; }\nint main(void) { return next_of(1) - 2; }\n"
REFUSAL = "Couldn't write extended state status"


def skip_without_calls(gdb: Path, shared: Shared) -> None:
    """Skip the test if plain GDB can't call a function in a process that it has started."""
    said = shared.made("calls", lambda folder: ask(gdb, folder)) / "said"
    if REFUSAL in said.read_text():
        pytest.skip(f"plain GDB calls no functions here: {REFUSAL}")


def ask(gdb: Path, folder: Path) -> None:
    """Write what plain GDB says of a call."""
    source, program = folder / "calls.c", folder / "calls"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O0", str(source), "-o", str(program)], check=True, timeout=60)
    commands = [word for command in ("break main", "run", "print next_of(40)") for word in ("-ex", command)]
    done = subprocess.run([str(gdb), "-nx", "-q", "-batch", *commands, str(program)], capture_output=True, timeout=120)
    (folder / "said").write_bytes(done.stdout + done.stderr)
