"""GDB's inferior as a target: bytes through GDB, everything else from where it is known best.

Takes the selected inferior; gives a `Target`. A core file is read by the core's own reader (GDB lists 15 of the 25
mappings of one made by gcore); of a live process on this machine the kernel tells mappings and files, and GDB the
bytes, because GDB takes its own breakpoints out of them. Nothing is ever written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Optional, Union

import gdb

from gdbext.gdb_api.processor import processor
from gdbext.gdb_api.run_before_users_commands import UsersCommands
from gdbext.gdb_api.run_commands import DebuggerError, execute, gdb_errors, quoted, told
from pieglobalsfind.errors import MemoryUnreadable, TargetError
from pieglobalsfind.model import Absent
from pieglobalsfind.target import KernelThread, MemoryMapping, Target
from pieglobalsfind.targets.procfs import Process, is_file

FROM_STUB = "target:"  # GDB's prefix of paths that the stub sends

# Patterns are text: `re` compiles them when they are first used, and sourcing the extension must be quick.
_CORE = r"(?m)^Local core dump file:\n\s*`(.*)', file type "
_MAPPING = (
    r"(?m)^\s*0x([0-9a-f]+)\s+0x([0-9a-f]+)\s+0x[0-9a-f]+\s+0x([0-9a-f]+)"
    r"(?:\s+([-rwx]{3})([-ps]))?(?:[ \t]+(\S.*))?$"
)


def open_inferior() -> Target:
    """The selected inferior; raises `TargetError` if there is nothing in it to look at."""
    inferior = gdb.selected_inferior()
    if not inferior.pid:
        raise TargetError("there is no process and no core file", "run the program, attach to it, or open a core file")
    kind = connection_kind(inferior)
    if not kind:
        raise TargetError("the process is gone")
    if kind == "core":
        from pieglobalsfind.targets.core import CoreTarget

        return CoreTarget(_core_path(), path_of(inferior.progspace) or None)
    if kind == "native":
        return LocalInferior(inferior)
    return RemoteInferior(inferior)


def connection_kind(inferior: gdb.Inferior) -> str:
    """ "native", "core", "remote" and the like, as GDB names its targets; "" without one."""
    return kind_of_connection(inferior.connection_num) if inferior.connection_num is not None else ""


def is_core() -> bool:
    """Whether the selected inferior is a core file."""
    return connection_kind(gdb.selected_inferior()) == "core"


@cache
def kind_of_connection(number: int) -> str:
    """GDB gives no number twice. Not by `inferior.connection`: GDB 13 aborts if such an object outlives its Python."""
    rows = (line.lstrip("* ").split() for line in execute(f"info connections {number}").splitlines())
    return next((row[1] for row in rows if row[:1] == [str(number)]), "")


def _core_path() -> str:
    match = re.search(_CORE, execute("info files"))
    if match is None:
        raise TargetError("GDB does not report the core file's path", "open it with `core-file PATH`")
    return match.group(1)


def thread_registers(names: Optional[Mapping[int, str]] = None) -> Mapping[int, int]:
    """General registers of the selected thread itself by DWARF number, whichever of its frames is selected.

    `gdb.newest_frame()` makes GDB look for that frame's caller, and read the call frame information of every file for
    it: only where the innermost frame is not the selected one. `names` are those that are wanted.
    """
    names = names if names is not None else dict(enumerate(processor().register_names))
    if is_innermost_selected():
        values = {number: gdb.parse_and_eval(f"${name}") for number, name in names.items()}
    else:
        frame = gdb.newest_frame()
        values = {number: frame.read_register(name) for number, name in names.items()}
    word = _unsigned_word()
    return {number: int(value.cast(word)) for number, value in values.items() if not value.is_optimized_out}


def is_innermost_selected() -> bool:
    """Whether the selected frame is the innermost; GDB tells it without looking for callers only where it prints it.

    Without `with print ...` before it: GDB would tell front ends of every such change, at every stop. Inside a
    breakpoint's `stop` the thread counts as running still, and a command that asks for its frame ends the stop.
    """
    thread = gdb.selected_thread()
    if thread is None or thread.is_running():
        return False
    return gdb.selected_frame().level() == 0 if UsersCommands.wait else execute("frame").startswith("#0 ")


def _unsigned_word() -> gdb.Type:
    return gdb.selected_inferior().architecture().integer_type(64, False)


class Inferior:
    """What all live inferiors have in common."""

    def __init__(self, inferior: gdb.Inferior) -> None:
        self._inferior = inferior

    @property
    def description(self) -> str:
        """Return what messages call the target."""
        return f"process {self._inferior.pid}"

    @property
    def is_live(self) -> bool:
        """False: while a command runs, GDB holds every thread."""
        return False

    def read(self, address: int, size: int) -> bytes:
        """Read memory; raises `MemoryUnreadable`."""
        if size == 0:
            return b""
        try:
            with self._selected():
                return bytes(self._inferior.read_memory(address, size))
        except (gdb.error, OverflowError) as error:
            self.check_is_alive()
            raise MemoryUnreadable(address, size) from error

    def check_is_alive(self) -> None:
        """Raises `TargetEndedError` if the process has ended and GDB does not know it yet, as far as is known."""

    @contextmanager
    def _selected(self) -> Iterator[None]:
        """GDB reads the memory of the selected inferior, whichever is asked."""
        before = gdb.selected_thread()
        if gdb.selected_inferior().num == self._inferior.num:
            yield
            return
        threads = self._inferior.threads()
        if not threads:
            raise gdb.error(f"inferior {self._inferior.num} has no threads")
        threads[0].switch()
        try:
            yield
        finally:
            if before is not None and before.is_valid():
                before.switch()

    def threads(self) -> Sequence[KernelThread]:
        """Return the kernel threads with their registers; GDB's selection stays."""
        selected = gdb.selected_thread()
        try:
            return tuple(self._thread(thread) for thread in self._inferior.threads())
        finally:
            if selected is not None and selected.is_valid() and not is_selected(selected):
                selected.switch()

    def _thread(self, thread: gdb.InferiorThread) -> KernelThread:
        registers: Union[Mapping[int, int], Absent]
        try:
            if not is_selected(thread):  # after a switch GDB looks for the frame again, also if there was none
                thread.switch()
            registers = thread_registers()
        except gdb.error as error:
            registers = Absent(str(error))
        return KernelThread(thread.ptid[1] or thread.ptid[2], registers)


class LocalInferior(Inferior):
    """A process of this machine."""

    def __init__(self, inferior: gdb.Inferior) -> None:
        super().__init__(inferior)
        self._kernel = Process(inferior.pid)
        self._maps: Optional[Sequence[MemoryMapping]] = None

    def check_is_alive(self) -> None:
        """Raise `TargetEndedError` if the process has ended."""
        self._kernel.check_is_alive()

    def maps(self) -> Sequence[MemoryMapping]:
        """As they were when they were first asked for: the process stands still as long as this object is in use."""
        if self._maps is None:
            self._maps = self._kernel.standing_maps()
        return self._maps

    def populated(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Without the pages that the process never touched."""
        return self._kernel.populated(start, end)

    def open_path(self, path: str) -> Optional[str]:
        """Return a path by which this process can open the target's file, or None."""
        return self._kernel.open_path(path)

    def file_identity(self, path: str) -> Optional[bytes]:
        """Return the build-id in memory of a mapped file, or None."""
        from pieglobalsfind.elf.loaded import build_id_in_maps  # late: GDB starts the sooner

        return build_id_in_maps(self.maps(), path, self.read)


class RemoteInferior(Inferior):
    """A process behind a stub: nothing is taken from this machine's kernel."""

    def maps(self) -> Sequence[MemoryMapping]:
        """What the stub tells; GDB 12 does not say the protections, everything is readable then."""
        return tuple(parse_mappings(execute("info proc mappings")))

    def open_path(self, path: str) -> Optional[str]:
        """The file below `set sysroot` if that is a folder of this machine, else what the stub sends of it."""
        root = str(gdb.parameter("sysroot") or "")
        if not root.startswith(FROM_STUB):
            return root + path if is_file(root + path) else None
        return fetched(path, self._inferior.connection_num)

    def file_identity(self, path: str) -> Optional[bytes]:
        """Return the build-id that GDB read of a mapped file, or None."""
        with gdb_errors():
            for objfile in self._inferior.progspace.objfiles():
                if path == path_in_target(objfile) and objfile.build_id:
                    return bytes.fromhex(objfile.build_id)
        return None


def is_selected(thread: gdb.InferiorThread) -> bool:
    """Return whether GDB has this thread selected."""
    selected = gdb.selected_thread()
    return selected is not None and selected.global_num == thread.global_num


def path_in_target(objfile: gdb.Objfile) -> str:
    """An object file's path as the process itself knows it; GDB marks files that a stub sent.

    A library that was loaded by a relative name is known by that name to the loader, and so to GDB.
    """
    path = path_of(objfile).removeprefix(FROM_STUB)
    return os.path.normpath(os.path.join(folder_of_process(), path)) if path.startswith(("./", "../")) else path


def folder_of_process() -> str:
    """The selected inferior's working directory; GDB's own where it has none, or where it is on another machine."""
    try:
        return os.readlink(f"/proc/{gdb.selected_inferior().pid}/cwd")
    except OSError:
        return os.getcwd()


def path_of(holder: Union[gdb.Objfile, gdb.Progspace, gdb.Symtab], kind: str = "filename") -> str:
    """A file's path as GDB has it, or as the user has given it ("username"); "" if there is none."""
    return told(lambda: getattr(holder, kind)) or ""


def program_path() -> str:
    """The file that GDB has loaded as the program, "" if there is none."""
    space = gdb.current_progspace()
    return path_of(space) if space is not None else ""


def path_here(objfile: gdb.Objfile) -> str:
    """Where an object file can be opened by us, "" if nowhere."""
    name = path_of(objfile)
    if not name.startswith(FROM_STUB):
        return name
    return fetched(path_in_target(objfile), gdb.selected_inferior().connection_num) or ""


@cache
def fetched(path: str, connection: Optional[int]) -> Optional[str]:
    """A file of a stub's machine, brought here once, and removed when GDB ends; None if there is none."""
    folder = os.path.join(received(), f"{len(os.listdir(received()))}")
    os.mkdir(folder)
    place = os.path.join(folder, os.path.basename(path))
    try:
        execute(f"remote get {quoted(path)} {quoted(place)}")
    except DebuggerError:
        return None
    return place


@cache
def received() -> str:
    """A private folder for files of stubs' machines."""
    import atexit
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="ranklens-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def parse_mappings(text: str) -> list[MemoryMapping]:
    """The table of `info proc mappings`."""
    mappings = []
    for start, end, offset, protection, sharing, path in re.findall(_MAPPING, text):
        able = protection or "r--"
        mapping = MemoryMapping(
            int(start, 16), int(end, 16), "r" in able, "w" in able, "x" in able, int(offset, 16), path, sharing == "s"
        )
        mappings.append(mapping)
    return mappings
