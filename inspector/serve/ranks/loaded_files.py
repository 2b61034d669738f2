"""List the files that a rank has loaded, and their addresses, as a process's loader would.

Takes a process's view; gives the files that can be opened as the very ones that are loaded. A file that was replaced
meanwhile is left out, with the reason: a debugger would read other code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Optional

from pieglobalsfind.decoders.lazy_ranks import columns_of
from pieglobalsfind.elf.file import PT_DYNAMIC, PT_TLS, memory_file
from pieglobalsfind.elf.loaded import LoadedElf
from pieglobalsfind.elf.locate import identity_by_headers, identity_of, object_path
from pieglobalsfind.errors import RanklensError
from pieglobalsfind.memory_map import named, of_files
from pieglobalsfind.model import Absent, Object
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.target import MemoryMapping

from .thread_control_block import LIST_SIZE

DT_DEBUG = 21
VDSO = "[vdso]"
LARGEST_VDSO = 1 << 16  # bytes; it has a few pages


@dataclass(frozen=True)
class LoadedFile:
    """A program or library as the system's loader placed it. `name` is where it can be opened.

    `path` is the target's name for it, `base` the address of its first byte, `bias` its load bias, `dynamic` the
    address of its dynamic section; `has_thread_locals`: it has a segment of thread-local variables.
    """

    name: str
    path: str
    base: int
    bias: int
    dynamic: int
    has_thread_locals: bool = False


class LoadedFiles:
    """The files of one process at one moment; `problems` are sentences about those that are left out."""

    def __init__(self, view: ProcessView) -> None:
        self._view = view
        self.problems: list[str] = []
        self._kernel_code: dict[int, Optional[LoadedFile]] = {}
        self._names: dict[int, str] = {}
        self.others = tuple(self._listed())

    def _listed(self) -> Iterator[LoadedFile]:
        """Those that are neither an object of the rank table nor a rank's copy that the loader has made.

        There is one for all ranks, as there is of libc where it is not copied.
        """
        table = self._view.table
        bases = {elf_object.base for elf_object in table.objects}.union(columns_of(table.ranks).copies)
        for mapping in of_files(self._view.target.maps(), "/"):
            if mapping.offset or not mapping.readable or mapping.start in bases:
                continue
            try:
                loaded = LoadedElf(self._view.target.read, mapping.start)
                dynamic = next((header.vaddr for header in loaded.program_headers if header.type == PT_DYNAMIC), None)
            except RanklensError:
                continue
            if loaded.header.machine != table.processor.elf_machine:  # the emulator's own
                continue
            if dynamic is None or not loaded.segments or not loaded.is_laid_out(mapping.end - mapping.start):
                continue
            name = self._name(mapping.path, loaded.build_id, loaded)
            if name:
                bias, has_thread_locals = loaded.load_bias, has_segment(loaded, PT_TLS)
                yield LoadedFile(name, mapping.path, mapping.start, bias, bias + dynamic, has_thread_locals)

    def kernel_code(self, pc: int) -> Optional[LoadedFile]:
        """What the kernel has put into the process (vdso(7)), in a file of ours that has no name.

        Core files don't say where it is: there it is the small ELF file in anonymous memory that a rank with that `pc`
        is in.
        """
        mapping = self._vdso or self._view.translator.mapping(pc)
        if mapping is None or mapping.path not in ("", VDSO) or mapping.end - mapping.start > LARGEST_VDSO:
            return None
        if mapping.start not in self._kernel_code:
            self._kernel_code[mapping.start] = self._made(mapping)
        return self._kernel_code[mapping.start]

    @cached_property
    def _vdso(self) -> Optional[MemoryMapping]:
        return next(iter(named(self._view.target.maps(), VDSO)), None)

    @property
    def made_names(self) -> frozenset[str]:
        """Where what this process has made files of can be opened."""
        return frozenset(loaded_file.name for loaded_file in self._kernel_code.values() if loaded_file is not None)

    def _made(self, mapping: MemoryMapping) -> Optional[LoadedFile]:
        is_kernels = mapping.path == VDSO
        if not mapping.executable or not (is_kernels or self._view.translator.owner(mapping.start).rank is None):
            return None
        try:
            content = self._view.target.read(mapping.start, mapping.end - mapping.start)
            loaded = LoadedElf(self._view.target.read, mapping.start)
        except RanklensError:
            return None
        dynamic = next((header.vaddr for header in loaded.program_headers if header.type == PT_DYNAMIC), None)
        machine = self._view.table.processor.elf_machine
        if dynamic is None or not loaded.segments or loaded.header.machine != machine:
            return None
        bias = loaded.load_bias
        return LoadedFile(memory_file(content), VDSO, mapping.start, bias, bias + dynamic)

    def _name(self, path: str, build_id: bytes, loaded: LoadedElf) -> str:
        path_here = object_path(self._view.target, identity_by_headers(path, build_id, loaded.program_headers))
        return self._checked(path_here)

    def of_object(self, elf_object: Object) -> str:
        """Where an object's file can be opened, "" if it is not there any more."""
        if elf_object.index not in self._names:
            self._names[elf_object.index] = self._checked(object_path(self._view.target, identity_of(elf_object)))
        return self._names[elf_object.index]

    def has_thread_locals(self, elf_object: Object) -> bool:
        """Whether an object's file has thread-local variables, also where the runtime says nothing of them."""
        if elf_object.tls_size:
            return True
        try:
            return has_segment(LoadedElf(self._view.target.read, elf_object.base), PT_TLS)
        except RanklensError:
            return False

    @cached_property
    def loader_list(self) -> bytes:
        """The `struct r_debug` of the process's loader, b"" if there is none."""
        for other in self.others:
            with suppress(RanklensError):
                address = LoadedElf(self._view.target.read, other.base).dynamic.get(DT_DEBUG)
                if address:
                    return self._view.target.read(address, LIST_SIZE)
        return b""

    def _checked(self, path: object) -> str:
        if isinstance(path, Absent):
            self.problems.append(f"{path.reason}: {path.hint}" if path.hint else path.reason)
            return ""
        return str(path)


def has_segment(loaded: LoadedElf, kind: int) -> bool:
    """Whether a file has a segment of a kind that takes memory."""
    return any(header.type == kind and header.memory_size for header in loaded.program_headers)
