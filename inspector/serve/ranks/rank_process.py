"""Show one rank as a process: registers, memory, program, libraries, thread-local storage.

Takes a process's view and a rank of it, both of one moment; answers what a debugger asks of a process. Nothing in it is
written to a target but by `memory`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Optional, Union

from pieglobalsfind.debugger.wording import state_text
from pieglobalsfind.elf.file import HEADER_SIZE, PT_DYNAMIC
from pieglobalsfind.elf.loaded import LoadedElf
from pieglobalsfind.errors import RanklensError, UsageError
from pieglobalsfind.machine.remote import RemoteLayout
from pieglobalsfind.machine.remote_lookup import layout_of
from pieglobalsfind.model import BLOCKED, READY, RUNNING, Absent, Object, Rank
from pieglobalsfind.ranks.variable_address import data_place, tls_block
from pieglobalsfind.session.process_view import ProcessView
from pieglobalsfind.stacks.no_stack import check_is_here
from pieglobalsfind.targets.core import CoreTarget
from pieglobalsfind.targets.frozen import FrozenTarget

from .kernel_thread_registers import of_thread
from .loaded_files import LoadedFile, LoadedFiles
from .rank_memory import ServedMemory
from .thread_control_block import ELSEWHERE, MadeUpMemory, identity_of

AT_PHDR, AT_PHENT, AT_PHNUM, AT_PAGESZ, AT_BASE, AT_ENTRY = 3, 4, 5, 6, 7, 9
PAGE = 4096
ENTRY_AT = 24  # e_entry in the ELF header
# GDB keeps breakpoints of its own in each inferior's copy of these, and sets all of them again at every library event.
WITH_HOOKS = ("libc.so", "libc-", "libstdc++", "libgcc_s")


@dataclass(frozen=True)
class Library:
    """A library of a rank. `identity` names it to debuggers, `has_thread_locals`: it is a module of such variables."""

    name: str
    bias: int
    dynamic: int
    identity: int
    has_thread_locals: bool


class RankProcess:
    """A rank, `rank` as users see it, at one moment."""

    def __init__(
        self, view: ProcessView, rank: Rank, files: LoadedFiles, registers: Optional[Mapping[int, int]] = None
    ) -> None:
        self.view = view
        self.rank = rank
        self.files = files
        self.memory = ServedMemory(view, rank)
        self._registers = registers

    def stepped(self) -> RankProcess:
        """The rank after its thread alone has executed some instructions on the rank's stack."""
        return RankProcess(self.view, self.rank, self.files, of_thread(self.rank.kernel_thread))

    @cached_property
    def state(self) -> str:
        """`blocked in MPI_Recv from 0, tag 99`."""
        return state_text(self.rank)

    def check(self) -> None:
        """Raise `RanklensError` with the reason if the rank can't be looked at as a process."""
        check_is_here(self.rank)
        if isinstance(self.registers, Absent):
            raise RanklensError(self.registers.reason, self.registers.hint)
        if not self.program_name:
            problems = "; ".join(self.files.problems)
            raise UsageError(f"the program of rank {self.rank.rank} can't be read", problems or "put its file back")

    @cached_property
    def registers(self) -> Union[Mapping[int, int], Absent]:
        """By DWARF number, as far as they are known."""
        if self._registers is not None:
            return self._registers
        try:
            rank = self.view.rank(self.rank.rank)
            if rank.state == RUNNING:
                registers = self.view.walker.registers_now(rank)
                is_held = isinstance(self.view.target, FrozenTarget)
                return {**of_thread(rank.kernel_thread), **registers} if is_held else registers
            return self.view.contexts.saved(rank)  # without what walks stacks, which takes long to load
        except RanklensError as error:
            return Absent(error.sentence, error.hint)

    @property
    def is_switching(self) -> bool:
        """Return whether it has neither its thread's registers nor saved ones, though it is here: it has them soon."""
        return self.rank.state in (READY, RUNNING, BLOCKED) and isinstance(self.registers, Absent)

    @property
    def register_layout(self) -> RemoteLayout:
        """Return how debuggers number the registers."""
        return layout_of(self.view.table.processor)

    @property
    def known_registers(self) -> Mapping[int, int]:
        """Return the registers, none if they are unknown; the thread's pointer leads to the rank's own variables."""
        if isinstance(self.registers, Absent):
            return {}
        pointer = self.register_layout.thread_pointer
        kept = {number: value for number, value in self.registers.items() if number != pointer}
        return {**kept, pointer: ELSEWHERE} if self._blocks and pointer >= 0 else kept

    @property
    def pc(self) -> int:
        """0 if it is not known."""
        return self.known_registers.get(self.view.table.processor.pc, 0)

    @property
    def signal(self) -> Optional[int]:
        """Linux's number of the signal that ended the process while the rank ran, None if none did."""
        target = self.view.target
        signal = target.signal if isinstance(target, CoreTarget) else None
        is_its = signal is not None and self.rank.state == RUNNING and signal.tid == self.rank.kernel_thread
        return signal.number if signal is not None and is_its else None

    # ---- program and libraries ----

    @cached_property
    def program(self) -> Object:
        """What a debugger takes for the rank's executable: the user's program."""
        objects = self.view.table.objects
        programs = [elf_object for elf_object in objects if elf_object.is_program]
        if not objects:
            raise RanklensError(f"the program of rank {self.rank.rank} is not known")
        return next((program for program in programs if program.privatized), (programs or objects)[0])

    @property
    def program_name(self) -> str:
        """Where its file can be opened, "" if that is not possible."""
        return self.files.of_object(self.program)

    def base_of(self, elf_object: Object) -> Optional[int]:
        """Where the rank's copy of an object begins, None if it has none."""
        place = data_place(self.rank, elf_object, elf_object.base)
        return place if isinstance(place, int) else None

    def libraries(self, every: bool) -> Iterator[Library]:
        """Those of the rank; `every`: also libraries with hooks in which its stack has no frame."""
        for elf_object in self.view.table.objects:
            base, name = self.base_of(elf_object), self.files.of_object(elf_object)
            if elf_object.index == self.program.index or base is None or not name:
                continue
            moved = base - elf_object.base
            dynamic = self._dynamic(elf_object)
            identity, has_thread_locals = identity_of(elf_object.base), self.files.has_thread_locals(elf_object)
            yield Library(name, elf_object.load_bias + moved, dynamic + moved, identity, has_thread_locals)
        for other in self.files.others:
            if every or not is_hooked(other) or other.path in self._touched:
                identity = identity_of(other.base)
                yield Library(other.name, other.bias, other.dynamic, identity, other.has_thread_locals)
        code = self.files.kernel_code(self.pc)  # also of a suspended rank: it may be there once it has run
        if code is not None:
            yield Library(code.name, code.bias, code.dynamic, identity_of(code.base), False)

    def _dynamic(self, elf_object: Object) -> int:
        if elf_object.dynamic:
            return elf_object.dynamic
        try:
            loaded = LoadedElf(self.view.target.read, elf_object.base)
        except RanklensError:
            return 0
        return next(
            (elf_object.load_bias + header.vaddr for header in loaded.program_headers if header.type == PT_DYNAMIC), 0
        )

    @cached_property
    def _touched(self) -> frozenset[str]:
        """The files that the rank's stack has frames in."""
        try:
            return frozenset(call.library for call in self.view.walker.stack(self.view.rank(self.rank.rank)).calls)
        except RanklensError:
            return frozenset()

    @cached_property
    def auxiliary_vector(self) -> bytes:
        """What the kernel would have given to the process: where its program and its loader are."""
        program, base = self.program, self.base_of(self.program)
        if base is None:
            return struct.pack("<QQ", 0, 0)
        header = self._header(program, base)
        bias = program.load_bias + base - program.base
        entries = [(AT_PAGESZ, PAGE)]
        if header is not None:
            (entry,) = struct.unpack_from("<Q", header, ENTRY_AT)
            offset, size, count = struct.unpack_from("<Q", header, 32) + struct.unpack_from("<HH", header, 54)
            entries += [(AT_PHDR, base + offset), (AT_PHENT, size), (AT_PHNUM, count), (AT_ENTRY, bias + entry)]
        loader = next((other.base for other in self.files.others if "/ld-" in other.path or "/ld.so" in other.path), 0)
        entries.append((AT_BASE, loader))
        return b"".join(struct.pack("<QQ", *pair) for pair in (*entries, (0, 0)))

    def _header(self, program: Object, base: int) -> Optional[bytes]:
        """The ELF header of the copy, or of the original where the copy's can't be read."""
        for address in (base, program.base):
            data = self.memory.read(address, HEADER_SIZE)
            if len(data) == HEADER_SIZE and data.startswith(b"\x7fELF"):
                return data
        return None

    # ---- thread-local storage ----

    def thread_local(self, identity: int, offset: int) -> int:
        """Where the rank has a thread-local variable of a library; raises `RanklensError` if that is not known."""
        block, size = self._blocks.get(identity, (0, 0))
        if not block or not 0 <= offset <= size:
            raise RanklensError(f"rank {self.rank.rank} has no such thread-local variable of its own")
        return block + offset

    @property
    def main_identity(self) -> int:
        """Names the program to debuggers."""
        return identity_of(self.program.base)

    @cached_property
    def _blocks(self) -> Mapping[int, tuple[int, int]]:
        """(address, size) of the rank's blocks of thread-local variables, by identity."""
        blocks = ((elf_object, tls_block(self.rank, elf_object)) for elf_object in self.view.table.objects)
        return {
            identity_of(elf_object.base): (block, elf_object.tls_size)
            for elf_object, block in blocks
            if block and elf_object.tls_size
        }

    def modules(self, libraries: Iterable[Library]) -> list[int]:
        """The identities of what has thread-local variables, the program first."""
        program = [self.main_identity] if self.files.has_thread_locals(self.program) else []
        return program + [library.identity for library in libraries if library.has_thread_locals]

    def memory_elsewhere(self, address: int, size: int, numbers: Mapping[int, int]) -> bytes:
        """What debuggers that find thread-local variables by themselves read; `numbers` are the modules'."""
        blocks = {identity: block for identity, (block, _) in self._blocks.items()}
        return MadeUpMemory(self.main_identity, blocks, numbers, self.files.loader_list).read(address, size)


def is_hooked(loaded_file: LoadedFile) -> bool:
    """Whether a debugger keeps breakpoints of its own in a library."""
    return loaded_file.path.rpartition("/")[2].startswith(WITH_HOOKS)
