"""The facts about a target's ranks, as immutable values. See docs/architecture.md for the words.

Takes nothing; never reads a target, never formats. Addresses are ints, sizes and offsets are bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Optional, Union

from pieglobalsfind.machine.lookup import USUAL
from pieglobalsfind.machine.processor import Processor, RegisterRule

# rank.state, as the debug ABI names them
STARTING = "starting"
READY = "ready"
RUNNING = "running"
BLOCKED = "blocked"
MIGRATED_OUT = "migrated-out"
EXITED = "exited"
STATES = (STARTING, READY, RUNNING, BLOCKED, MIGRATED_OUT, EXITED)
REGISTRY, HOOK = "registry", "hook"  # tiers of evidence that registries give
SCAN = "scan"  # the tier of what memory alone tells
UNKNOWN_STATE = "unknown"  # of a rank of whose image alone anything is known; no runtime publishes it


UNKNOWN_ELEMENT = -1  # rank.processing_element of a rank that any of its process's may run


@dataclass(frozen=True)
class Absent:
    """A value that can't be had, and why. Never represented by None or 0."""

    reason: str
    hint: str = ""

    def __str__(self) -> str:
        return f"<{self.reason}>"


OWN_THREAD = Absent("it is a kernel thread of its own", "its registers are that thread's")  # Rank.context


@dataclass(frozen=True)
class Evidence:
    """How a fact was found.

    `tier` is "registry", "hook" (a registry that leads to a runtime's own data), "runtime" (such data alone) or "scan"
    (ELF headers in memory).
    """

    tier: str
    source: str


@dataclass(frozen=True)
class Segment:
    """A PT_LOAD: `offset` is from the object's base; `protection` is p_flags (1 execute, 2 write, 4 read)."""

    offset: int
    memory_size: int
    file_size: int
    protection: int

    @property
    def end(self) -> int:
        """Return the offset past the end."""
        return self.offset + self.memory_size

    @property
    def executable(self) -> bool:
        """Return whether the segment is executable (PF_X)."""
        return bool(self.protection & 1)

    @property
    def writable(self) -> bool:
        """Return whether the segment is writable (PF_W)."""
        return bool(self.protection & 2)


@dataclass(frozen=True)
class Object:
    """One loaded ELF file as the system's loader placed it: the original.

    `base` is the first byte of the lowest PT_LOAD rounded down to a page, `load_bias` what was added to p_vaddr's,
    `span` the bytes from base to the end of the highest PT_LOAD. `tls_offset` is the distance from its static TLS block
    to the thread pointer (negative where it lies above), 0 if it has none.
    """

    index: int
    path: str
    build_id: bytes
    base: int
    load_bias: int
    span: int
    segments: tuple[Segment, ...]
    privatized: bool
    is_program: bool
    dynamic: int = 0
    tls_module_id: int = 0
    tls_size: int = 0
    tls_align: int = 0
    tls_offset: int = 0

    @property
    def end(self) -> int:
        """Return the address past the end."""
        return self.base + self.span


@dataclass(frozen=True)
class Rebase:
    """[original, original+size) lives at `copy`. `object` is the index of the object, or None for replayed heap."""

    object: Optional[int]
    original: int
    size: int
    copy: int


@dataclass(frozen=True)
class Redirect:
    """One variable, or a region of them, lives at `storage`; `got_slot` (0: none) holds the address in use.

    `is_shared`: other ranks have the same storage. `is_failure`: the runtime meant each rank to have its own in its
    copy of the object, and the rank's code uses the original's all the same.
    """

    object: int
    original: int
    size: int
    storage: int
    got_slot: int
    is_shared: bool = False
    is_failure: bool = False


@dataclass(frozen=True)
class TlsBlock:
    """A block of thread-local storage. `object` None: every object with static TLS.

    With `is_thread_pointer`, `address` is a thread pointer (variable = address - tls_offset + st_value); else it is the
    block's first byte. `level`: 0 rank, 1 thread, 2 process.
    """

    object: Optional[int]
    address: int
    size: int
    is_thread_pointer: bool
    level: int


@dataclass(frozen=True)
class Alias:
    """[start, start+size) has the same addresses but other pages: read them through thread `address_space`."""

    start: int
    size: int
    address_space: int


@dataclass(frozen=True)
class Root:
    """All globals are members of one struct of type `type_name` (in the DWARF of `object`) at `address`."""

    object: int
    type_name: str
    address: int


@dataclass(frozen=True)
class Unplaced:
    """The rank has its own [original, original+size) of the object, and `reason` says why its place is not known."""

    object: int
    original: int
    size: int
    reason: str


Placement = Union[Rebase, Redirect, TlsBlock, Alias, Root, Unplaced]


@dataclass(frozen=True)
class Awaited:
    """A message that a rank waits for: its source, or, if it `is_sent`, the destination that has not asked for it.

    `peer` (a rank of MPI_COMM_WORLD), `tag`: -1 any, -2 none.
    """

    peer: int
    tag: int
    is_sent: bool


@dataclass(frozen=True)
class Waiting:
    """What a rank waits for: the outermost blocking call. `peer`, `tag`: -1 any, -2 none.

    Without a tag the call is collective, and `peer` the rank whose message it needs next. `peer` is a rank of
    MPI_COMM_WORLD if it is so `in_world`, else a number in the communicator. `unknown`: which of them the call has but
    can't be had, and why; they are -2 and 0 then. `is_sent` is as of `Awaited`; None: as the call's name says.
    `others` are what the call waits for besides: it needs all of them, or, if `needs_one`, any one.
    """

    call: str
    peer: int = -2
    tag: int = -2
    communicator: int = 0
    in_world: bool = False
    unknown: str = ""
    is_sent: Optional[bool] = None
    others: tuple[Awaited, ...] = ()
    needs_one: bool = False


@dataclass(frozen=True)
class Region:
    """A part of the rank's image that is not a copy of an object: [start, start+size)."""

    start: int
    size: int

    @property
    def end(self) -> int:
        """Return the address past the end."""
        return self.start + self.size

    def __contains__(self, address: object) -> bool:
        return isinstance(address, int) and self.start <= address < self.end


@dataclass(frozen=True)
class Rank:
    """One virtual rank. `context` is the address of its saved registers (Absent while it runs, or when unknown).

    `kernel_thread` is the tid that runs it or would, 0 if unknown. `placements` are in order, first match wins.
    `record` is where the runtime publishes the rank, so that what changes can be read again (0: nowhere). `process` is
    the index of the process where it is, or is on its way to, as far as this one knows (-1: unknown), `moves` how often
    it had moved when that was so. `thread` is the address of what its runtime has of it as a thread (0: not known or
    none), `context_at` that of the word that holds `context` (0: not known). `exit_status` is None before its
    main has returned, and where its runtime keeps none. `is_actor`: it is an actor of SimGrid's S4U, and no MPI rank.
    """

    rank: int
    state: str
    processing_element: int
    kernel_thread: int
    context: Union[int, Absent]
    stack: Union[Region, Absent]
    heap: Union[Region, Absent]
    heap_used: Union[int, Absent]
    range: Union[Region, Absent]
    waiting: Optional[Waiting]
    switches: Union[int, Absent]
    placements: tuple[Placement, ...]
    evidence: Evidence
    address_space: int = 0
    record: int = field(default=0, compare=False)
    process: int = -1
    moves: int = 0
    exit_status: Optional[int] = None
    thread: int = field(default=0, compare=False)
    context_at: int = field(default=0, compare=False)
    is_actor: bool = False

    @property
    def is_on_thread(self) -> bool:
        """Whether its registers are its kernel thread's: it runs, or is such a thread, which waits in the kernel."""
        return self.state == RUNNING or self.context == OWN_THREAD

    @property
    def pages_of(self) -> int:
        """The kernel thread through which the rank's memory is read, 0 if it has the same pages as all others.

        Tasks of PiP are processes (`address_space`) that have all their memory in common (clone(2), CLONE_VM).
        """
        return next((placement.address_space for placement in self.placements if isinstance(placement, Alias)), 0)


@dataclass(frozen=True)
class RankTable:
    """All that is known of a process's ranks at one moment; `ranks` are in ascending order.

    What has a default here comes from registries alone, or from some runtimes.
    `context_layout` serves every context. `entry_function` is where every rank's backtrace ends (0: unknown).
    `constructor_heap` is what the originals' constructors allocated from; `constructor_blocks` are its (address, size).
    `calls` are the names that records of ranks number, `byte_order` is struct's sign of the records' byte order, and
    `record_size` how many bytes of them this reader and the writer know. `currents` are the addresses of the words that
    hold the `thread` of the rank that a processing element runs: all of them, or () where they are not known.
    `processor` is the target's, whichever machine reads it.
    """

    method: str
    runtime: str
    rank_count: int
    objects: tuple[Object, ...]
    ranks: Sequence[Rank]
    evidence: Evidence
    rewrite_mode: str = ""
    job_id: str = ""
    node: str = ""
    process_id: int = 0
    process_index: int = 0
    process_count: int = 1
    generation: int = 0
    context_layout: tuple[RegisterRule, ...] = ()
    entry_function: int = 0
    entry_function_size: int = 0
    event_function: int = 0
    constructor_heap: Optional[Region] = None
    constructor_blocks: tuple[tuple[int, int], ...] = ()
    warnings: tuple[str, ...] = field(default=())
    calls: tuple[str, ...] = ()
    byte_order: str = field(default="<", compare=False)
    record_size: int = field(default=0, compare=False)
    currents: tuple[int, ...] = field(default=(), compare=False)
    processor: Processor = field(default=USUAL, repr=False)


@dataclass(frozen=True)
class Owner:
    """Whose an address is: what one sorted interval table over all images answers.

    `kind` is one of code, data, rodata, heap, stack, tls, range (reserved, not in use), original, shared (an original
    that ranks use because they have no copies), runtime, unmapped. `rank` is None for originals, the runtime and what
    belongs to no rank or to several. `original` is the address that debug information describes (equal to `address` for
    originals, 0 where there is none), `offset` the distance from the object's base; of stacks, heaps and ranges from
    their start, in TLS from the start of the object's block. `path`
    names the mapping of an original or of the runtime.
    """

    address: int
    kind: str
    rank: Optional[int] = None
    object: Optional[int] = None
    offset: int = 0
    original: int = 0
    reason: str = ""
    path: str = ""


@dataclass(frozen=True)
class Symbol:
    """A name for an address: `name` demangled, `offset` from its start; `file`/`line` from DWARF where there is any."""

    name: str
    linkage_name: str
    offset: int
    size: int
    file: str = ""
    line: int = 0
