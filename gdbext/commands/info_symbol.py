"""`info symbol` with the user's files in place of views: GDB names the file that it has read a symbol from.

Takes the address and GDB's sections and symbols; prints what GDB's own command prints (printcmd.c). It takes that
command's place once a view is in use: GDB keeps no other way to a command that another one replaces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import gdb

from gdbext.gdb_api.run_commands import execute, quoted, sentences, untraced
from gdbext.gdb_api.target import path_of
from gdbext.selection.debugger import ADDRESS, GdbDebugger

FILE = re.compile(r"^(?:Exec|Object|Core) file: `(.*)', file type .*\.$")
SECTION = re.compile(r"^ *\[\d+\] +0x([0-9a-f]+)->0x([0-9a-f]+) at 0x[0-9a-f]+: (\S+) ALLOC\b")
THREAD_LOCAL = (".tdata", ".tbss")  # at these addresses lies something else
# [20] T 0x5555555550c0 _ZN5space5tableE section .bss  space::table  FILE
SYMBOL = re.compile(r"^\[ *\d+\] [Ttidbr?DBRSu] 0x([0-9a-f]+) (.+?) section (\S+)(?:  (.*))?$")
THREAD_LOCAL = (".tdata", ".tbss")  # at these addresses lies something else


class InfoSymbol(gdb.Command):
    """Describe what symbol is at location ADDR.
    Usage: info symbol ADDR
    Only for symbols with fixed locations (global or static scope)."""

    def __init__(self, files_of_views: Callable[[], Mapping[str, str]]) -> None:
        super().__init__("info symbol", gdb.COMMAND_STATUS, gdb.COMPLETE_EXPRESSION)
        self._files_of_views = files_of_views

    def invoke(self, argument: str, from_tty: bool) -> None:
        """Print the symbol at an address, its section and its file."""
        with sentences(), untraced():
            if not argument.strip():
                raise gdb.GdbError("Argument required (address).")
            files = self._files_of_views()
            text = description(address_of(argument), lambda path: files.get(path, path))
            gdb.write(f"{text or f'No symbol matches {argument.strip()}.'}\n")


def address_of(expression: str) -> int:
    """Return the address that GDB takes an expression for: where an array or a function is, else its value."""
    value = gdb.parse_and_eval(expression)
    if value.type.strip_typedefs().code in (gdb.TYPE_CODE_ARRAY, gdb.TYPE_CODE_FUNC) and value.address is not None:
        value = value.address
    try:
        return int(value) % ADDRESS
    except gdb.MemoryError:
        raise
    except (gdb.error, TypeError) as error:
        raise gdb.GdbError("Value can't be converted to integer.") from error


def description(address: int, shown: Callable[[str], str]) -> str:
    """Return the symbol at an address with its section and file, or ""; `shown` gives the name of a file."""
    for path, section in sections_at(address) if has_symbol(address) else ():
        start, name = max(symbols_before(address, path, section), default=(0, ""), key=lambda symbol: symbol[0])
        if name:
            place = f"{name} + {address - start}" if address > start else name
            return f"{place} in section {section} of {shown(path)}"
    return ""


def has_symbol(address: int) -> bool:
    """Whether GDB knows a symbol that an address belongs to."""
    return " <" in execute(f"with print max-symbolic-offset unlimited -- output/a {address}")


def symbols_before(address: int, path: str, section: str) -> Iterator[tuple[int, str]]:
    """The addresses and names of a section's symbols up to an address; of equal ones the first is the one to show.

    They are the ELF symbols of the file and of its separate debug file.
    """
    for objfile in gdb.objfiles():
        if path in (path_of(objfile), path_of(objfile.owner) if objfile.owner is not None else ""):
            listed = execute(f"maint print msymbols -objfile {quoted(path_of(objfile))}")
            for line in reversed(listed.splitlines()):
                match = SYMBOL.match(line)
                if match is not None and match[3] == section and int(match[1], 16) <= address:
                    yield int(match[1], 16), shown_name(match[2], match[4] or "")


def shown_name(name: str, others: str) -> str:
    """Return what GDB shows of a symbol, whose demangled name and source file may follow in its list.

    GDB demangles `step.3`, as compilers call a function inside another, as well.
    """
    fields = others.split("  ")
    is_demangled = len(fields) > 1 or name.startswith(("_Z", f"{fields[0]}."))
    return fields[0] if is_demangled and fields[0] and gdb.parameter("print demangle") else name


def sections_at(address: int) -> Iterator[tuple[str, str]]:
    """The files and sections that an address lies in; those of separate debug files are their owners'."""
    separate = {path_of(objfile) for objfile in gdb.objfiles() if objfile.owner is not None}
    path = ""
    for line in execute("maint info sections -all-objects").splitlines():
        file, section = FILE.match(line), SECTION.match(line)
        if file is not None:
            path = file[1]
        elif section is None or path in separate or section[3] in THREAD_LOCAL:
            continue
        elif int(section[1], 16) <= address < int(section[2], 16):
            yield path, section[3]


def bind(debugger: GdbDebugger) -> None:
    """Take the place of GDB's own command once GDB has a rank's symbols, and not in sessions without ranks."""
    before = debugger.inferiors.on_move

    def moved() -> None:
        if debugger.state().focus.wanted.files_of_views:
            debugger.inferiors.on_move = before
            InfoSymbol(lambda: debugger.state().focus.wanted.files_of_views)
        before()

    debugger.inferiors.on_move = moved
