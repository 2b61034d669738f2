"""Makes GDB forget single libraries, though it only has a command that forgets all.

Takes the names of those that stay; GDB has these afterwards as before, without having read their files again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Optional

import gdb

from gdbext.gdb_api.breakpoint_locations import taken_out
from gdbext.gdb_api.run_commands import DebuggerError, execute, quoted
from gdbext.gdb_api.target import FROM_STUB, connection_kind, path_of
from pieglobalsfind.machine.processor import NOWHERE

KERNEL_LIBRARY = "system-supplied DSO at "  # what GDB calls it, and where it is
WITHOUT_SCRIPTS = "with auto-load python-scripts off -- with auto-load gdb-scripts off --"
# 0x00007ffff7d8d400  0x00007ffff7eef87d  Yes (*)     /lib/x86_64-linux-gnu/libc.so.6
READ = r"(?m)^0x\S+ +0x\S+ +(?:\S+ +)?Yes\b"  # from GDB 17 on a namespace may stand before it
APART = 1 << 40  # bytes; more than a library spans


def kept_names(stay: list[gdb.Objfile], originals: frozenset[str]) -> frozenset[str]:
    """The names of the libraries that stay; a view has its original's name, and is none."""
    without = {os.path.basename(path) for path in originals}
    return frozenset(os.path.basename(path_of(objfile)) for objfile in stay) - without


def library_files(loaded: list[gdb.Objfile]) -> tuple[str, ...]:
    """Those that GDB has as libraries, and only so (not what a user has added), but for what a stub has sent."""
    paths = [path for path in map(path_of, loaded) if not path.startswith(FROM_STUB)]
    listed = execute("info sharedlibrary").splitlines()
    return tuple(path for path in paths if paths.count(path) == 1 and any(line.endswith(f" {path}") for line in listed))


def is_any_read() -> bool:
    """Whether GDB has symbols of a library; after an exec GDB 15 lists those of the program before, without symbols."""
    return re.search(READ, execute("info sharedlibrary")) is not None


@contextmanager
def kept_in_memory(paths: tuple[str, ...]) -> Iterator[None]:
    """What GDB has read of files, and of their debug files, stays read inside, though it forgets their libraries.

    They are nowhere then. Of a path that it is given GDB follows symbolic links, and would not know the file again,
    unless the path is marked as the target's. Behind a stub such a path is left out: it can't be marked there, and a
    command of ours that fails would end the user's `continue`.
    """
    is_here = connection_kind(gdb.selected_inferior()) in ("native", "core")
    prefix, added = FROM_STUB if is_here else "", []
    try:
        for number, path in enumerate(path for path in paths if is_here or path == os.path.realpath(path)):
            with suppress(DebuggerError):  # it only takes longer then
                execute(f"{WITHOUT_SCRIPTS} add-symbol-file {quoted(prefix + path)} -o {NOWHERE + number * APART:#x}")
                added.append(path)
        yield
    finally:
        for path in added:
            with suppress(DebuggerError):
                execute(f"remove-symbol-file {quoted(path)}")


def forget_libraries(
    keep: frozenset[str],
    files: tuple[str, ...],
    kernel: str,
    inserted: bool,
    between: Optional[Callable[[], None]] = None,
) -> None:
    """Drop all libraries' symbols, then read those of `keep` and at `kernel` again: GDB has no command for one library.

    GDB does not read their `files` again. `between` is called while GDB has no library's symbols,
    and no scripts of libraries run then.

    Forgetting a library makes GDB believe that breakpoints in it are no longer in memory. Where they are (`inserted`:
    inside a breakpoint's stop method, for instance) they are taken out before.
    """
    pattern = r"\|".join("/" + re.sub(r"[^\w/-]", ".", name) + "$" for name in sorted(keep))
    with taken_out() if inserted else nullcontext():
        with kept_in_memory(files):
            execute("nosharedlibrary")
            if between is not None:
                between()
            if pattern:
                execute(f"{WITHOUT_SCRIPTS if between is not None else ''} sharedlibrary {pattern}")
        if kernel:
            with suppress(DebuggerError):  # GDB refuses where it has no program (GDB 18 reads libraries all the same)
                execute(f"add-symbol-file-from-memory {kernel}")


def kernel_library() -> str:
    """Where GDB found the library that the kernel maps (vdso(7)), in hexadecimal; "" if it did not, or forgot."""
    names = (path_of(objfile, "username").partition(KERNEL_LIBRARY) for objfile in gdb.objfiles())
    return next((address for before, name, address in names if name and not before), "")
