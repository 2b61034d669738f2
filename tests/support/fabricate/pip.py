"""Writes the memory of a job of Process-in-Process as measured on a real one: a root and tasks in linker namespaces.

Takes the version, the mode and what is damaged; gives a `MemoryTarget` and the truth. The decoder's code is not used,
and private offsets of libc are others than any real libc's: only what it describes for libthread_db can tell them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from pieglobalsfind.target import KernelThread
from tests.support.fabricate.elf_file import Symbol, program_header, shared_object
from tests.support.fabricate.memory import Mapped, MemoryTarget

HEAP, AREA, ROOT_PROGRAM = 0x555600000000, 0x555700000000, 0x555500000000
DATA, DYNAMIC, HASH, SYMBOLS, STRINGS = 0x2000, 0x2400, 0x2500, 0x2600, 0x2800  # vaddrs
PROGRAM, LIBPIP, LIBC, LIBPTHREAD = 0, 0x100000, 0x200000, 0x300000  # of a namespace's objects
STACK_SIZE, BLOCK_AT = 0x10000, 0xF000
TID_AT, VECTOR_AT, MODULE_AT = 0x1D0, 0x48, 0x90  # no real libc's
DESCRIBED = {
    "_thread_db_pthread_tid": (32, TID_AT),
    "_thread_db_pthread_dtvp": (64, VECTOR_AT),
    "_thread_db_dtv_dtv": (128, 0),
    "_thread_db_dtv_t_pointer_val": (64, 0),
    "_thread_db_link_map_l_tls_modid": (64, MODULE_AT),
}
# What leads to the threads where they don't name themselves: heads of lists in the loader, nodes in threads
NODE_AT, USED_AT, USER_AT = 0x160, 0x30, 0x50
DESCRIBED_LISTS = {
    "_thread_db_rtld_global__dl_stack_used": (128, USED_AT),
    "_thread_db_rtld_global__dl_stack_user": (128, USER_AT),
    "_thread_db_pthread_list": (128, NODE_AT),
    "_thread_db_list_t_next": (64, 0),
}
SYSTEM_LOADER = 0x7F8000000000
LISTS = SYSTEM_LOADER + DATA + 0x800  # _rtld_global
MODULE = 3
TLS_SIZE = 0x40


@dataclass
class Job:
    """`present` are the tasks whose namespaces are there, of `count`."""

    version: int = 3
    count: int = 4
    present: tuple[int, ...] = (0, 1, 2)
    is_process_mode: bool = False
    looks_from: int = -1  # process mode: the task whose process is looked at, -1 the root
    ended: tuple[int, ...] = ()  # tasks whose thread has ended: the kernel has cleared its id, nothing else
    names_starter: bool = False  # records lead to the root's thread as well, and by a shorter way
    twice: tuple[int, ...] = ()  # another namespace claims to be this task
    off_record: tuple[int, ...] = ()  # its pip_task is not a record's beginning
    stride: int = 0  # another than the version's
    magic: bytes = b"PrcInPrc"
    started: bool = True
    loading: str = ""  # a libpip: "mapped" as a whole file, before its segments; "unzeroed": the bytes behind its data
    # are the file's still, and addresses of its dynamic section those of the file
    loaded_by: int = -1  # the task whose libpip that is
    names_root: bool = True  # the root's libpip's variables: v2 writes pip_task first, v3 pip_root
    names_task: bool = True
    ending: str = ""  # "cleared", then "freed": what PiP shares, whose pointers stay until then
    state: int = 0  # that the loader gives its list of the last namespace: 1 while it adds objects, 2 while it removes
    stripped: bool = False
    namespaces_listed: bool = True  # glibc 2.35 and newer
    undescribed: bool = False  # libpthread without `.symtab`
    is_aarch64: bool = False
    unlisted: tuple[int, ...] = ()  # AArch64: tasks whose thread is not in libc's lists
    own_glibc: bool = False  # PiP's, of 2.28: each program knows its list, and libpthread's .symtab what libc describes

    def namespace(self, task: int) -> int:
        """Where a task's objects are; the root's for -1."""
        return 0x7F0000000000 + 0x1000000 * (task + 1)

    def stack(self, task: int) -> int:
        return 0x7E0000000000 + 0x1000000 * task

    def block(self, task: int) -> int:
        """The control block of the task's thread."""
        return self.stack(task) + BLOCK_AT

    def thread_locals(self, task: int) -> int:
        return self.block(task) - 0x100

    def tid(self, task: int) -> int:
        """The root's for -1."""
        return 5000 + task

    def program(self, task: int) -> int:
        return self.namespace(task) + PROGRAM

    # ---- PiP's own area ----

    @property
    def root_size(self) -> int:
        return 664 if self.version == 2 else 0x438

    @property
    def record_size(self) -> int:
        return self.stride or (824 if self.version == 2 else 0x80)

    def record(self, task: int) -> int:
        at = AREA + self.root_size + (824 if self.version == 2 else 0x80) * task
        return at + 8 if task in self.off_record else at

    def _area(self) -> bytes:
        """v2: a record has its thread; v3: it leads to an annex, that to a third part, which has it."""
        records = self.record(self.count + 1) - AREA
        data = bytearray(records + (0x80 + 0x2F0) * (self.count + 1))
        data[:8] = self.magic
        struct.pack_into("<IxxxxQQQ", data, 8, 0x4100, len(data), self.root_size, self.record_size)
        for task in range(self.count):
            at = AREA + self.root_size + (824 if self.version == 2 else 0x80) * task - AREA
            pointer = self.block(task) if task in self.present else 0
            struct.pack_into("<Q", data, at + 8, self.block(-1) if self.names_starter else 0)
            if self.version == 2:
                struct.pack_into("<ii", data, at, task, 1)
                struct.pack_into("<Q", data, at + 16, pointer)
            else:
                annex, misc = records + 0x80 * task, records + 0x80 * (self.count + 1) + 0x2F0 * task
                struct.pack_into("<Q", data, at + 0x78, AREA + annex)
                struct.pack_into("<QQ", data, annex + 0x70, AREA, AREA + misc)
                struct.pack_into("<Q", data, misc, pointer)
        return bytes(data)

    # ---- objects ----

    def target(self, folder: Path) -> MemoryTarget:
        """The job; its files are written into `folder`."""
        area = bytes(0x4000) if self.ending == "cleared" else self._area()
        mapped = [Mapped(AREA, 0x4000, area)] if self.ending != "freed" else []
        mapped += [Mapped(HEAP, 0x20000, self._lists(), "[heap]")]
        mapped += self._object(folder, "root", ROOT_PROGRAM, b"\x01" * 20, debug=HEAP)
        for task in (-1, *self.present, *(-2 - one for one in self.twice)):
            own = -2 - task if task < -1 else task
            base = self.namespace(task) if task >= -1 else self.namespace(20 + own)
            if task != -1:
                debug = HEAP + 0x40 * self._number(base + PROGRAM) if self.own_glibc else 0
                mapped += self._object(folder, "task", base + PROGRAM, b"\x02" * 20, debug, tls=True)
            mapped += self._libpip(folder, base + LIBPIP, self.count if own == -1 else own)
            mapped += self._object(folder, "libc.so.6", base + LIBC, b"\x04" * 20, describes=not self.own_glibc)
            if self.own_glibc:
                mapped += self._libpthread(folder, base + LIBPTHREAD)
        for task in (-1, *self.present):
            mapped.append(Mapped(self.stack(task), STACK_SIZE, self._stack(task)))
        if self.is_aarch64:
            mapped += self._system_loader(folder)
        return _Target(mapped, kernel_threads=tuple(self._threads()))

    def _threads(self) -> Sequence[KernelThread]:
        alive = [one for one in self.present if one not in self.ended]
        if self.is_process_mode:
            alive = [one for one in alive if one == self.looks_from]
        pointer, pc = (31, 32) if self.is_aarch64 else (7, 16)
        threads = [
            KernelThread(self.tid(one), {pointer: self.block(one) - 0x800, pc: self.program(one) + 0x1010})
            for one in alive
        ]
        first = KernelThread(self.tid(-1), {pointer: self.block(-1) - 0x800, pc: 0})
        return threads if self.is_process_mode and alive else [first, *threads]

    def _object(
        self,
        folder: Path,
        name: str,
        base: int,
        build_id: bytes,
        debug: int = 0,
        tls: bool = False,
        describes: bool = False,
    ) -> list[Mapped]:
        described = {**DESCRIBED, **(DESCRIBED_LISTS if self.is_aarch64 else {})} if describes else {}
        values = {
            name: (0x40 + 16 * at, struct.pack("<III", bits, 1, offset))
            for at, (name, (bits, offset)) in enumerate(described.items())
        }
        return self._exporting(folder, name, base, build_id, values, debug, tls)

    def _exporting(
        self,
        folder: Path,
        name: str,
        base: int,
        build_id: bytes,
        exports: Mapping[str, tuple[int, bytes]],
        debug: int = 0,
        tls: bool = False,
    ) -> list[Mapped]:
        """An object whose data has `exports`, by name (offset, bytes)."""
        names = list(exports)
        data = bytearray(0x1000)
        tags = [(4, base + HASH), (5, base + STRINGS), (6, base + SYMBOLS), (21, debug), (0, 0)]
        for at, tag in enumerate(tags):
            struct.pack_into("<QQ", data, DYNAMIC - DATA + 16 * at, *tag)
        struct.pack_into(
            f"<{3 + len(names) + 1}I", data, HASH - DATA, 1, len(names) + 1, min(len(names), 1), *range(len(names) + 1)
        )
        chain = [0, *range(2, len(names) + 1), 0][: len(names) + 1]
        struct.pack_into(f"<{len(chain)}I", data, HASH - DATA + 12, *chain)
        texts = b"\0"
        for at, one in enumerate(names):
            place, content = exports[one]
            symbol = (len(texts), 0x11, 0, 1, DATA + place, len(content))
            struct.pack_into("<IBBHQQ", data, SYMBOLS - DATA + 24 * (at + 1), *symbol)
            data[place : place + len(content)] = content
            texts += one.encode() + b"\0"
        data[STRINGS - DATA : STRINGS - DATA + len(texts)] = texts
        return self._mapped(folder, name, base, self._file((), build_id, tls), bytes(data))

    def _libpip(self, folder: Path, base: int, number: int) -> list[Mapped]:
        names = (
            () if self.stripped else (Symbol("pip_root", DATA, 8, 0x01, 2), Symbol("pip_task", DATA + 8, 8, 0x01, 2))
        )
        data = bytearray(0x1000)
        is_first = base == self.namespace(-1) + LIBPIP
        if self.started:
            root = AREA if self.names_root or not is_first else 0
            struct.pack_into("<QQ", data, 0, root, self.record(number) if self.names_task or not is_first else 0)
        entry = self._entry(base)
        struct.pack_into("<QQ", data, 0x20, 0, 0 if self.namespaces_listed or self.own_glibc else entry)
        loading = self.loading if base == self.namespace(self.loaded_by) + LIBPIP else ""
        bias = 0 if loading else base
        tags = (3, bias + DATA + 0x20, 5, bias + STRINGS, 0, 0)
        struct.pack_into("<6Q", data, DYNAMIC - DATA, *tags)
        if loading:
            struct.pack_into("<QQ", data, 0, 0x6362696C2E6F732E, 0x36)  # what the file has there: text
        image = self._file(names, b"\x03" * 20, False)
        mapped = self._mapped(folder, "libpip.so.0", base, image, bytes(data))
        if loading == "mapped":
            whole = image[:0x2000].ljust(0x2000, b"\0") + bytes(data)
            return [Mapped(base, len(whole), whole, str(folder / "libpip.so.0"), "r--")]
        return mapped

    def _libpthread(self, folder: Path, base: int) -> list[Mapped]:
        places = {name: DATA + 0x40 + 16 * at for at, name in enumerate(DESCRIBED)}
        data = bytearray(0x1000)
        for name, place in places.items():
            bits, offset = DESCRIBED[name]
            struct.pack_into("<III", data, place - DATA, bits, 1, offset)
        names = tuple(Symbol(name, place, 12, 0x01, 2) for name, place in places.items() if not self.undescribed)
        return self._mapped(folder, "libpthread-2.28.so", base, self._file(names, b"\x05" * 20, False), bytes(data))

    def _file(self, symbols: tuple[Symbol, ...], build_id: bytes, tls: bool) -> bytes:
        data = bytearray(shared_object(symbols, build_id))
        struct.pack_into("<H", data, 56, 6 if tls else 5)
        data[64 + 4 * 56 : 64 + 5 * 56] = program_header(2, 6, DYNAMIC, DYNAMIC, 0x100, 0x100)
        if self.is_aarch64:
            struct.pack_into("<H", data, 18, 183)
        if tls:
            data[64 + 5 * 56 : 64 + 6 * 56] = program_header(7, 4, 0x2000, 0x2000, TLS_SIZE, TLS_SIZE)
        return bytes(data)

    def _mapped(self, folder: Path, name: str, base: int, image: bytes, data: bytes) -> list[Mapped]:
        path = folder / name
        path.write_bytes(image)
        return [
            Mapped(base, 0x1000, image[:0x1000], str(path), "r--"),
            Mapped(base + 0x1000, 0x1000, image[0x1000:0x2000], str(path), "r-x", 0x1000),
            Mapped(base + 0x2000, 0x1000, data, str(path), "rw-", 0x2000),
        ]

    # ---- the loader's lists ----

    def _bases(self) -> list[list[int]]:
        """Of each namespace the objects' biases, in the loader's order."""
        own = self.namespace(-1)
        found = [[ROOT_PROGRAM, own + LIBPIP, own + LIBC]]
        bases = [*map(self.namespace, self.present), *(self.namespace(20 + one) for one in self.twice)]
        return [*found, *([base + PROGRAM, base + LIBPIP, base + LIBC] for base in bases)]

    def _number(self, bias: int) -> int:
        """Of the namespace that an object is in."""
        return next(number for number, biases in enumerate(self._bases()) if bias in biases)

    def _entry(self, bias: int) -> int:
        number = self._number(bias)
        return HEAP + 0x1000 + 0x400 * number + 0x100 * self._bases()[number].index(bias)

    def _lists(self) -> bytes:
        """struct r_debug_extended of each namespace, and link_maps {addr, name, ld, next, prev, ...}."""
        data = bytearray(0x20000)
        spaces = self._bases()
        for number, biases in enumerate(spaces):
            entries = [self._entry(biase) for biase in biases]
            following = HEAP + 0x40 * (number + 1) if number + 1 < len(spaces) else 0
            version = 2 if self.namespaces_listed else 1
            state = self.state if number + 1 == len(spaces) else 0
            struct.pack_into("<iiQQiiQQ", data, 0x40 * number, version, 0, entries[0], 0, state, 0, 0, following)
            for at, (bias, entry) in enumerate(zip(biases, entries)):
                after = entries[at + 1] if at + 1 < len(entries) else 0
                before = entries[at - 1] if at else 0
                struct.pack_into("<5Q", data, entry - HEAP, bias, 0, bias + DYNAMIC, after, before)
                if at == 0 and number:
                    struct.pack_into("<Q", data, entry - HEAP + MODULE_AT, MODULE)
        return bytes(data)

    def _system_loader(self, folder: Path) -> list[Mapped]:
        """It has lists of threads: those that libc made, and the first."""
        heads = bytearray(0x80)
        for at, nodes in ((USED_AT, self._nodes(True)), (USER_AT, self._nodes(False))):
            ring = [LISTS + at, *nodes]
            struct.pack_into("<QQ", heads, at, ring[1 % len(ring)], ring[-1])
        exports = {"_rtld_global": (LISTS - SYSTEM_LOADER - DATA, bytes(heads))}
        return self._exporting(folder, "ld-linux-aarch64.so.1", SYSTEM_LOADER, b"\x06" * 20, exports)

    def _nodes(self, is_made: bool) -> list[int]:
        tasks = [one for one in self.present if one not in self.unlisted] if is_made else [-1]
        return [self.block(one) + NODE_AT for one in tasks]

    def _stack(self, task: int) -> bytes:
        data = bytearray(STACK_SIZE)
        block = self.block(task)
        if self.is_aarch64:
            self._write_node(data, task)
        else:
            struct.pack_into("<QQQ", data, BLOCK_AT, block, 0, block)
        tid = 0 if task in self.ended else self.tid(task)
        struct.pack_into("<i", data, BLOCK_AT + TID_AT, tid)
        struct.pack_into("<Q", data, BLOCK_AT + VECTOR_AT, block - 0x400)
        struct.pack_into("<QQ", data, BLOCK_AT - 0x400 + 16 * MODULE, self.thread_locals(task), 0)
        return bytes(data)

    def _write_node(self, data: bytearray, task: int) -> None:
        ring = [LISTS + (USER_AT if task < 0 else USED_AT), *self._nodes(task >= 0)]
        node = self.block(task) + NODE_AT
        if node in ring:
            at = ring.index(node)
            struct.pack_into("<QQ", data, BLOCK_AT + NODE_AT, ring[(at + 1) % len(ring)], ring[at - 1])


class _Target(MemoryTarget):
    def open_path(self, path: str) -> Optional[str]:
        return path
