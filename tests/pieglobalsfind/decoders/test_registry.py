"""Registries as a runtime writes them, and as no runtime would: torn, overwritten, of another version or byte order."""

from __future__ import annotations

import contextlib
import pickle
import random
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from dataclasses import replace as replace_fact

import pytest

from pieglobalsfind import model
from pieglobalsfind.decoders import decode
from pieglobalsfind.decoders.lazy_ranks import NOWHERE, RanksOnDemand, columns_of, with_changes
from pieglobalsfind.decoders.registry import decode as rank_debug
from pieglobalsfind.decoders.registry import layout as layout
from pieglobalsfind.decoders.registry.live_state import while_suspended
from pieglobalsfind.decoders.registry.read_consistent import MOST_TRIES
from pieglobalsfind.errors import MemoryUnreadable, NotVirtualizedError, RanklensError, RegistryError
from pieglobalsfind.machine.processor import RegisterRule
from pieglobalsfind.model import Absent, RankTable, Region
from pieglobalsfind.ranks.variable_address import data_place
from pieglobalsfind.target import KernelThread
from tests.support.fabricate.memory import Mapped, MemoryTarget
from tests.support.fabricate.registry import HEADER_SIZE, NONE, Object, Rank, Registry
from tests.support.steps import steps_of

ADDRESS = 0x7E0000000000
FIRST = 0x200000000000
RANGE = 1 << 30
NAME = "/memfd:rank_debug_registry (deleted)"
PROGRAM = Object(
    "/home/me/solver",
    0x7F0000000000,
    0x6000,
    ((0, 0x800, 0x800, 4), (0x1000, 0x1800, 0x1800, 5), (0x4000, 0x2000, 0x100, 6)),
)
LIBRARY = Object(
    "/lib/libf.so", 0x7F0000100000, 0x2000, ((0, 0x1000, 0x1000, 5),), flags=1, tls_size=64, tls_offset=128
)


def rank(number: int, **fields: object) -> Rank:
    start = FIRST + number * RANGE
    made = Rank(
        number,
        context=start + 0x7000,
        range=(start, RANGE),
        stack=(start + 0x1000, 0x8000),
        heap=(start + 0x100000, 0x10000),
        heap_used=77,
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def copies(count: int) -> tuple[tuple[int, int, int], ...]:
    bases = ((0, 0x10000), (1, 0x20000))
    return tuple((number, index, FIRST + number * RANGE + at) for number in range(count) for index, at in bases)


def registry(count: int = 3) -> Registry:
    return Registry(
        ADDRESS,
        (PROGRAM, LIBRARY),
        tuple(rank(number) for number in range(count)),
        copies(count),
        calls=("", "MPI_Recv", "MPI_Barrier"),
        registers=((16, 1, 56), (7, 2, 64)),
    )


def target_of(written: Registry, name: str = NAME, **fields: object) -> MemoryTarget:
    mapped = Mapped(written.address, written.size, written.encode(), name)
    return replace(MemoryTarget([mapped]), **fields)  # type: ignore[arg-type]


def table_of(written: Registry) -> RankTable:
    return decode(target_of(written))


def with_images(written: Registry, heads: dict[int, bytes]) -> RankTable:
    """The table of a registry in a target where ELF headers lie at some addresses, one page each."""
    mapped = [Mapped(at, 4096, head, "") for at, head in sorted(heads.items())]
    registry_itself = Mapped(written.address, written.size, written.encode(), NAME)
    return decode(MemoryTarget([*mapped, registry_itself]))


def elf_head(align: int) -> bytes:
    """An ELF header with one program header, whose alignment tells it from others."""
    identity = b"\x7fELF\2\1\1".ljust(16, b"\0")
    header = struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    return identity + header + struct.pack("<IIQQQQQQ", 1, 4, 0, 0, 0, 0x800, 0x800, align)


HEAD = elf_head(4096)


def places(table: RankTable, offset: int = 0x4010) -> list[object]:
    """Where each rank has a variable of the program."""
    return [data_place(rank, table.objects[0], PROGRAM.base + offset) for rank in table.ranks]


def test_a_rank_without_its_copy_has_no_values() -> None:
    """Not the original's, which no rank uses."""
    written = registry().changed(copies=tuple(copy for copy in copies(3) if copy[:2] != (1, 0)))
    first, second, third = places(table_of(written))
    assert (first, third) == (FIRST + 0x14010, FIRST + 2 * RANGE + 0x14010)
    assert isinstance(second, Absent) and second.reason == "the registry has no copy of it for the rank"


def test_two_copies_of_one_object_are_none() -> None:
    written = registry().changed(copies=(*copies(3), (1, 0, FIRST + RANGE + 0x40000)))
    second = places(table_of(written))[1]
    assert isinstance(second, Absent) and second.reason == "the registry has 2 copies of it for the rank"


def test_exchanged_copies_are_none() -> None:
    """Rank 0 would show the values of rank 1."""
    bases = {0: FIRST + RANGE + 0x10000, 1: FIRST + 0x10000}
    swapped = tuple((rank, number, bases.get(rank, base) if number == 0 else base) for rank, number, base in copies(3))
    first, second, third = places(table_of(registry().changed(copies=swapped)))
    assert isinstance(first, Absent) and first.reason == "the registry has its copy in the memory of rank 1"
    assert isinstance(second, Absent) and isinstance(third, int)


@pytest.mark.parametrize("shift", [1, 8, 0x1000, -0x1000])
def test_a_copy_begins_with_the_objects_header(shift: int) -> None:
    """A base that is shifted would show other variables' bytes."""
    shifted = tuple((rank, number, base + shift * (rank == 2 and number == 0)) for rank, number, base in copies(3))
    heads = {PROGRAM.base: HEAD, **{FIRST + number * RANGE + 0x10000: HEAD for number in range(3)}}
    heads[FIRST + 2 * RANGE + 0x10000 - 0x1000] = heads[FIRST + 2 * RANGE + 0x11000] = b""
    assert not any(isinstance(place, Absent) for place in places(with_images(registry(), heads)))
    assert isinstance(places(with_images(registry().changed(copies=shifted), heads))[2], Absent)


def test_a_copy_of_another_program_is_none() -> None:
    heads = {PROGRAM.base: HEAD, FIRST + 0x10000: HEAD, FIRST + RANGE + 0x10000: elf_head(65536)}
    first, second, third = places(with_images(registry(), heads))
    assert isinstance(first, int) and isinstance(second, Absent)
    assert isinstance(third, int), "what can't be read is not judged"


def test_everything_comes_back() -> None:
    written = registry().changed(
        ranks=(
            rank(0, state=2, thread=4712),
            rank(1, state=3, call=1, peer=2, tag=-1),
            rank(2, state=1, switches=9),
        ),
        constructor_heap=(0x300000000000, 0x4000),
        blocks=((0x300000000100, 32),),
        tls_blocks=((1, NONE, 1, 0, 0x7E1000, 4096), (1, 1, 2, 1, 0x7E3000, 64)),
        redirections=((2, 0, 0x7F0000004010, 8, 0x7E5000, 0x7E6000),),
        roots=((0, 0, 0, 0, 0x7E7000),),
    )
    table = table_of(written)
    assert (table.method, table.runtime, table.rewrite_mode, table.job_id, table.node) == (
        "pie", "fabricated 1", "scan", "job", "node",
    )  # fmt: skip
    assert (table.process_id, table.process_index, table.process_count, table.rank_count) == (4711, 0, 1, 3)
    assert (table.event_function, table.entry_function, table.entry_function_size) == (0x401000, 0x402000, 64)
    assert table.context_layout == (RegisterRule(16, True, 56), RegisterRule(7, False, 64))
    assert table.constructor_heap == Region(0x300000000000, 0x4000)
    assert table.constructor_blocks == ((0x300000000100, 32),)
    assert [elf_object.path for elf_object in table.objects] == ["/home/me/solver", "/lib/libf.so"]
    assert [(elf_object.is_program, elf_object.privatized) for elf_object in table.objects] == [
        (True, True),
        (False, True),
    ]
    assert table.objects[0].segments[2] == model.Segment(0x4000, 0x2000, 0x100, 6)
    running, blocked, ready = table.ranks
    assert (running.state, running.kernel_thread, running.waiting) == (model.RUNNING, 4712, None)
    assert isinstance(running.context, Absent)
    assert (blocked.state, blocked.context) == (model.BLOCKED, FIRST + RANGE + 0x7000)
    assert blocked.waiting == model.Waiting("MPI_Recv", 2, -1, 1)
    assert blocked.stack == Region(FIRST + RANGE + 0x1000, 0x8000)
    assert (ready.state, ready.switches, ready.heap_used) == (model.READY, 9, 77)
    assert blocked.placements == (
        model.Rebase(0, PROGRAM.base, PROGRAM.span, FIRST + RANGE + 0x10000),
        model.Rebase(1, LIBRARY.base, LIBRARY.span, FIRST + RANGE + 0x20000),
        model.Rebase(None, 0x300000000000, 0x4000, FIRST + RANGE + 0x100000),
        model.TlsBlock(None, 0x7E1000, 4096, True, 0),
        model.TlsBlock(1, 0x7E3000, 64, False, 1),
    )
    assert ready.placements[0] == model.Redirect(0, 0x7F0000004010, 8, 0x7E5000, 0x7E6000)
    assert model.Root(0, "", 0x7E7000) in running.placements
    assert {one.evidence.tier for one in table.ranks} == {"registry"}
    assert table.warnings == ()


def test_states_without_context() -> None:
    written = registry(4).changed(ranks=tuple(rank(i, state=state) for i, state in enumerate((0, 2, 4, 5))))
    table = table_of(written)
    assert all(isinstance(one.context, Absent) for one in table.ranks)
    gone = table.ranks[2]
    assert (gone.state, gone.placements) == (model.MIGRATED_OUT, ())
    assert isinstance(gone.stack, Absent) and isinstance(gone.heap, Absent) and isinstance(gone.range, Region)


def test_either_byte_order() -> None:
    little, big = table_of(registry()), table_of(registry().changed(order=">"))
    assert little == big


def test_a_newer_writer() -> None:
    """Appended fields are skipped, in the header and in every record."""
    assert table_of(registry().changed(extra=24)) == table_of(registry())


@pytest.mark.parametrize("name", [NAME, ""])
def test_found_by_name_or_by_magic(name: str) -> None:
    table = decode(target_of(registry(), name))
    assert [one.rank for one in table.ranks] == [0, 1, 2]
    assert ("magic" in table.evidence.source) == (name == "")


def test_no_registry_at_all() -> None:
    with pytest.raises(NotVirtualizedError, match="has no virtual ranks"):
        decode(MemoryTarget([Mapped(0x1000, 0x1000, b"nothing")]))


def test_a_thread_on_a_ranks_stack_runs_it() -> None:
    """A target stopped in a switch: the registry still says blocked."""
    thread = KernelThread(4713, {7: FIRST + 0x8FF8, 16: 0x401000})
    table = decode(target_of(registry(), kernel_threads=(thread, KernelThread(1, Absent("unknown")))))
    assert (table.ranks[0].state, table.ranks[0].kernel_thread) == (model.RUNNING, 4713)
    assert isinstance(table.ranks[0].context, Absent)
    assert table.ranks[1].state == model.BLOCKED


DAMAGE: Sequence[tuple[str, Registry]] = [
    ("version 2 of the debug ABI", registry().changed(abi_version=2)),
    ("its header claims", registry().changed(header_size=480, extra=1 << 16)),
    ("it claims a mapping of", registry().changed(mapping_size=1 << 40)),
    ("do not lie within its mapping", registry().changed(mapping_size=HEADER_SIZE)),
    ("a rank has two records", registry().changed(ranks=(rank(0), rank(0)), copies=(), rank_count=2)),
    ("it has a rank 3 in a job of 3", registry().changed(ranks=(rank(3),), copies=(), rank_count=3)),
    ("it has a rank -1", registry().changed(ranks=(rank(0, rank=-1),), copies=())),
    ("is in state 6", registry().changed(ranks=(rank(0, state=6),), copies=())),
    ("waits in call 3", registry().changed(ranks=(rank(0, call=3),), copies=())),
    ("leaves its address range", registry().changed(ranks=(rank(0, stack=(FIRST - 1, 16)),), copies=())),
    ("leaves its address range", registry().changed(ranks=(rank(0, heap=(FIRST, RANGE + 1)),), copies=())),
    ("after the last address", registry().changed(ranks=(rank(0, range=((1 << 64) - 1, 2)),), copies=())),
    ("overlap", registry().changed(ranks=(rank(0), rank(1, range=(0, 0), stack=(FIRST + 0x2000, 16))), copies=())),
    ("overlap", registry().changed(copies=((0, 0, FIRST + 0x10000), (0, 1, FIRST + 0x11000)))),
    ("overlap", registry().changed(objects=(PROGRAM, PROGRAM))),
    ("a copy of object 2 for rank 0", registry().changed(copies=((0, 2, FIRST),))),
    ("for rank 7", registry().changed(copies=((7, 0, FIRST),))),
    ("after the last address", registry().changed(copies=((0, 0, (1 << 64) - 16),))),
    ("has 0 bytes at", registry().changed(objects=(replace(PROGRAM, span=0), LIBRARY))),
    ("does not lie within it", registry().changed(objects=(replace(PROGRAM, segments=((0, 0x7000, 0, 4),)), LIBRARY))),
    ("does not lie within it", registry().changed(objects=(replace(PROGRAM, segments=((0, 8, 9, 4),)), LIBRARY))),
    ("thread-local storage", registry().changed(tls_blocks=((0, 2, 1, 0, 0x1000, 8),))),
    ("of kind 9", registry().changed(tls_blocks=((0, 1, 9, 0, 0x1000, 8),))),
    ("a redirection in object 5", registry().changed(redirections=((0, 5, 0, 8, 0, 0),))),
    ("a struct of globals", registry().changed(roots=((0, 0, 1 << 20, 0, 0),))),
    ("by rule 3", registry().changed(registers=((7, 3, 0),))),
    ("register 7", registry().changed(registers=((7, 1, -(1 << 40)),))),
    ("hold 300 registers", registry().changed(registers=((7, 1, 0),) * 300)),
    ("does not lie in their heap", registry().changed(constructor_heap=(0x1000, 16), blocks=((0x1000, 17),))),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "written"), DAMAGE, ids=[f"{i}-{one[0][:24]}" for i, one in enumerate(DAMAGE)])
def test_damage_is_refused(sentence: str, written: Registry) -> None:
    with pytest.raises(RegistryError, match=sentence):
        table_of(written)


def test_no_magic_at_the_named_mapping() -> None:
    with pytest.raises(RegistryError, match="instead of its magic"):
        decode(MemoryTarget([Mapped(ADDRESS, 4096, b"x" * 4096, NAME)]))


def test_memory_that_a_core_file_has_not() -> None:
    class Core(MemoryTarget):
        def read(self, address: int, size: int) -> bytes:
            raise MemoryUnreadable(address, size, "not in the file")

    with pytest.raises(RegistryError, match="fabricated target has not the memory of its registry"):
        decode(Core([Mapped(ADDRESS, 4096, b"", NAME)]))


def test_mapping_cut_short() -> None:
    """A core file may hold less of the mapping than there was."""
    data = registry().encode()
    with pytest.raises(RegistryError):
        decode(MemoryTarget([Mapped(ADDRESS, 256, data[:256], NAME)]))


def test_interrupted_writer_in_a_stopped_target() -> None:
    table = table_of(registry().changed(generation=3))
    assert table.warnings == (rank_debug.TORN,)
    assert len(table.ranks) == 3


class Changing(MemoryTarget):
    """A running target whose writer does something at every `step`th read of the generation."""

    def __init__(self, written: Registry, changes: Sequence[Registry]) -> None:
        super().__init__([Mapped(written.address, written.size, written.encode(), NAME)], is_live=True)
        self._changes = list(changes)

    @property
    def has_changes(self) -> bool:
        """Whether the writer is not done yet."""
        return bool(self._changes)

    def read(self, address: int, size: int) -> bytes:
        data = super().read(address, size)
        if self._changes and size == 8 and address == ADDRESS + 16:
            self.mapped[0].data = self._changes.pop(0).encode()
        return data


def test_read_again_until_it_stands_still() -> None:
    """The first look meets a change in the making, the second one is overtaken, the third is whole."""
    one, two = registry(1), registry(2).changed(rank_count=3)
    changes = [
        one.changed(generation=3, rank_count=3),
        one.changed(generation=4, rank_count=3),
        two.changed(generation=6),
        two.changed(generation=6),
    ]
    table = decode(Changing(one.changed(generation=3), changes))
    assert (len(table.ranks), table.generation, table.warnings) == (2, 6, ())


def test_records_torn_by_a_change_are_not_reported_as_damage() -> None:
    """What looks damaged while the generation moves is read again."""
    torn, whole = registry().changed(mapping_size=HEADER_SIZE, generation=3), registry().changed(generation=4)
    table = decode(Changing(registry(), [torn, whole, whole]))
    assert table.generation == 4


def test_a_writer_that_died_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    """The generation stays odd for good: say what can be read, with a warning, after a bounded time."""
    monkeypatch.setattr("pieglobalsfind.decoders.registry.read_consistent.DEADLINE", 0.05)
    table = decode(target_of(registry().changed(generation=5), is_live=True))
    assert table.warnings == (rank_debug.TORN,)


def test_a_writer_that_never_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pieglobalsfind.decoders.registry.read_consistent.DEADLINE", 0.05)
    restless = Changing(registry(), [registry().changed(generation=2 * i) for i in range(2, MOST_TRIES)])
    with pytest.raises(RegistryError, match="changes too fast"):
        decode(restless)
    assert restless.has_changes, "it is not read until the writer rests"


def test_while_a_thread_writes() -> None:
    """A real writer, at full speed: every table that comes out is one that was written, never a mixture."""
    written = [registry(count).changed(rank_count=9, generation=0, calls=("", f"of {count}")) for count in (1, 9)]
    buffers = [bytearray(one.encode().ljust(written[1].size, b"\0")) for one in written]
    shared = bytearray(buffers[0])
    target = target_of(written[1], is_live=True)
    target.mapped[0].data = shared  # type: ignore[assignment]
    done = threading.Event()

    def write() -> None:
        generation = 0
        while not done.is_set():
            struct.pack_into("<Q", shared, 16, generation + 1)
            shared[24:] = buffers[generation // 2 % 2][24:]
            struct.pack_into("<Q", shared, 16, generation + 2)
            generation += 2
            time.sleep(0)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(200):
            table = decode(target)
            assert table.calls[1] == f"of {len(table.ranks)}" and len(table.ranks) in (1, 9)
    finally:
        done.set()
        writer.join()


class Switching(MemoryTarget):
    """A running target whose rank 1 is switched after every read of its record, as often as `left` says."""

    left = 1
    done = 1

    def read(self, address: int, size: int) -> bytes:
        data = super().read(address, size)
        if size in (3 * 128, 128, 112) and self.left:
            self.left -= 1
            self.done += 1
            ranks = (
                rank(0),
                rank(1, context=FIRST + RANGE + 0x7000 + 16 * (self.done % 2), switches=self.done),
                rank(2),
            )
            self.mapped[0].data = registry().changed(ranks=ranks).encode()
        return data


def switching(left: int) -> Switching:
    target = Switching(target_of(registry()).mapped, is_live=True)
    target.left = left
    return target


def test_a_rank_that_is_switched_meanwhile_is_read_until_it_stands_still() -> None:
    table = decode(switching(5))
    assert [one.switches for one in table.ranks] == [1, 6, 1]
    assert table.ranks[1].context == FIRST + RANGE + 0x7000


def test_a_rank_that_is_switched_all_the_time_has_no_context() -> None:
    table = decode(switching(1_000_000))
    assert [isinstance(one.context, Absent) for one in table.ranks] == [False, True, False]


def test_what_is_read_of_a_rank_is_of_one_moment() -> None:
    target = switching(0)
    table = decode(target)
    target.left = 7
    now, seen = while_suspended(target, table, table.ranks[1], lambda one: one.context)
    assert now.switches == target.done and now.context == seen and target.left == 0
    target.left = 1_000_000
    with pytest.raises(RanklensError, match="switched too often"):
        while_suspended(target, table, table.ranks[1], lambda one: one.context)


class Arriving(MemoryTarget):
    """A running target in which rank 1 comes back from another process before the read number `at`."""

    def __init__(self, at: int, kept: tuple[tuple[int, int, int, int, int], ...] = ()) -> None:
        self._at = at
        away = (rank(0), rank(1, state=4, moves=1), rank(2))
        here = (rank(0), rank(1, moves=2, switches=5, context=FIRST + RANGE + 0x7010), rank(2))
        gone = tuple(copy for copy in copies(3) if copy[0] != 1)
        self._later = registry().changed(ranks=here, generation=4, kept=kept).encode()
        before = registry().changed(ranks=away, copies=gone, kept=kept)
        super().__init__([Mapped(ADDRESS, 2 * before.size, before.encode(), NAME)], is_live=True)

    @property
    def has_arrived(self) -> bool:
        return self.mapped[0].data == self._later

    def read(self, address: int, size: int) -> bytes:
        if len(self.reads) == self._at:
            self.mapped[0].data = self._later
        return super().read(address, size)


@pytest.mark.parametrize("kept", [(), ((1, 0, ADDRESS, 0, 0),)], ids=["published", "kept"])
def test_no_rank_is_newer_than_its_placements(kept: tuple[tuple[int, int, int, int, int], ...]) -> None:
    """Wherever in the reading it arrives: it is told as away, or as here with both of its copies."""
    away, here = (model.MIGRATED_OUT, 1, 0), (model.BLOCKED, 2, 2)
    seen = []
    for at in range(200):
        table = decode(target := Arriving(at, kept))
        one = table.ranks[1]
        seen.append((one.state, one.moves, len(one.placements)))
        assert seen[-1] in (away, here) and (table.generation == 4) == (seen[-1] == here)
        if not target.has_arrived:
            break
    assert not target.has_arrived and len(seen) > 10 and {*seen} == {away, here}


WORD = ADDRESS + 8  # of the runtime's own


class Creating(MemoryTarget):
    """A running target that creates a rank whenever its runtime's own word is read."""

    def read(self, address: int, size: int) -> bytes:
        if address == WORD:
            self.mapped[0].data = bytes(self.mapped[0].data[:16]) + struct.pack("<Q", 2 * len(self.reads)) + self._rest
        return super().read(address, size)

    @property
    def _rest(self) -> bytes:
        return bytes(self.mapped[0].data[24:])


def test_a_runtime_that_creates_ranks_all_the_time() -> None:
    """What it keeps of them itself never fits to a record; the reader says so, after a bounded time."""
    ready = tuple(rank(number, state=1) for number in range(3))
    written = registry().changed(ranks=ready, kept=((1, 0, 0, 0, 0),))
    elements = written.changed(processing_elements=((0, 1, WORD),))
    target = Creating(target_of(elements).mapped, is_live=True)
    with pytest.raises(RegistryError, match="changes too fast"):
        decode(target)
    assert len(target.reads) < 1000


def test_ranks_on_demand_are_a_tuple_to_everybody() -> None:
    ranks = table_of(registry(5)).ranks
    assert isinstance(ranks, RanksOnDemand)
    third = table_of(registry(5)).ranks[2]
    whole = tuple(table_of(registry(5)).ranks)
    assert third == ranks[2] == whole[2] and ranks[2] is ranks[2]
    assert ranks == whole and whole == ranks and hash(ranks) == hash(whole) and repr(ranks) == repr(whole)
    assert ranks != whole[:4] and ranks[1:4] == whole[1:4] and ranks[-1] == whole[-1] and len(ranks) == 5
    with pytest.raises(IndexError):
        ranks[5]
    assert pickle.loads(pickle.dumps(ranks)) == whole
    other = replace_fact(third, state=model.RUNNING)
    changed = with_changes(ranks, {2: other})
    assert tuple(changed) == with_changes(whole, {2: other}) == (*whole[:2], other, *whole[3:])
    assert ranks[2] == third, "what was handed out does not change"


def test_columns_are_what_the_ranks_say() -> None:
    """Of ranks that have migrated, without a stack, with memory that constructors left, too."""
    written = registry(5).changed(
        ranks=(rank(3, state=4), rank(0), rank(2, stack=(0, 0)), rank(1, heap=(FIRST + RANGE + 0x100000, 0)), rank(4)),
        constructor_heap=(0x1000, 0x100),
        blocks=((0x1010, 16),),
    )
    ranks = table_of(written).ranks
    assert columns_of(ranks) == columns_of(tuple(ranks))
    assert columns_of(ranks).stacks[3] == NOWHERE != columns_of(ranks).stacks[0]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("seed", range(20))
def test_flipped_bits(seed: int) -> None:
    """Nothing but `RanklensError` comes out of a damaged registry, in bounded time."""
    chance = random.Random(seed)
    data = registry(8).encode()
    for _ in range(100):
        damaged = bytearray(data)
        for _ in range(chance.randrange(1, 8)):
            place = chance.choice([chance.randrange(8, HEADER_SIZE), chance.randrange(len(data))])
            damaged[place] ^= 1 << chance.randrange(8)
        with contextlib.suppress(RanklensError):
            decode(MemoryTarget([Mapped(ADDRESS, registry(8).size, bytes(damaged), NAME)]))


def test_every_length() -> None:
    data = registry().encode()
    for length in range(0, len(data), 5):
        with contextlib.suppress(RanklensError):
            decode(MemoryTarget([Mapped(ADDRESS, 4096, data[:length], NAME)]))


def test_a_rank_more_costs_what_each_did() -> None:
    """And no reading of memory: all records are read at once."""
    table_of(registry())  # what is only done once
    few, many = target_of(registry(500)), target_of(registry(1500))
    assert steps_of(lambda: decode(many)) < 3.1 * steps_of(lambda: decode(few))
    assert len(many.reads) == len(few.reads)


def test_ten_thousand_ranks_at_once() -> None:
    target = target_of(registry(10_000))
    table = decode(target)
    assert [one.rank for one in table.ranks] == list(range(10_000)) and len(target.reads) < 20


@pytest.mark.parametrize(
    ("stride", "process", "moves", "status", "members"),
    [
        (112, layout.NONE, 0, 0, 0),
        (119, layout.NONE, 0, 0, 0),
        (120, 5, 6, 0, 0),
        (128, 5, 6, 8, 0),
        (136, 5, 6, 8, 10),
        (200, 5, 6, 8, 10),
    ],
)
def test_records_of_every_writer(stride: int, process: int, moves: int, status: int, members: int) -> None:
    """Each is read as far as it goes, and what is not known of it is skipped."""
    whole = struct.pack("<iIIIQQQQQQQQIIiiQQIIIIQ", *range(1, 18), 4, 5, 6, 8, 9, 10).ljust(stride, b"x")[:stride]
    for record in layout.parse_records(layout.RankRecord, whole * 2, stride, "<"):
        assert (record.rank, record.switches) == (1, 4)
        assert (record.process, record.moves, record.exit_status) == (process, moves, status)
        assert record.wait_members == members
