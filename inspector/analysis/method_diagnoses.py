"""What can go wrong with a program under a method of privatization: each diagnosis with cause, evidence and cure.

Takes the facts of a program's file; says per method which diagnoses apply. Ids are stable, docs/diagnoses.md lists
them. It knows methods by name, as their users do: nothing else of the tools does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional, Union

from pieglobalsfind.dwarf.types import COMMON, FILE_STATIC, FUNCTION_STATIC, GLOBAL, MODULE, THREAD_LOCAL, Variable
from pieglobalsfind.elf.demangle import demangle
from pieglobalsfind.model import Absent, RankTable

if TYPE_CHECKING:  # pyelftools, which reads facts, takes long to import: a report needs the diagnoses alone
    from .program_facts import Facts

METHODS = (
    "pie",
    "hls",
    "pip",
    "pipthread",
    "pipprocess",
    "fs",
    "mmap",
    "tls",
    "tls-word",
    "swap",
    "struct",
    "tpsl",
    "none",
)
BYTE_COPIES = ("pie", "hls")
NAMESPACES = ("pip", "pipthread", "pipprocess")
DATA = (GLOBAL, FILE_STATIC, FUNCTION_STATIC, COMMON, MODULE)

# How bad it is
REFUSED = "refused"  # the program can't run so
LOST = "lost"  # variables stay shared, or results are wrong
RISK = "risk"  # under some runtimes or sizes
UNIQUE = "unique-symbols"
AT_START = ("too-many-namespaces",)  # it ends a job before its first rank runs
OF_AMPI = ("unaligned-writable-segment", "exceptions-in-byte-copy")  # the embedded runtime does otherwise
OF_SCAN = ("misaligned-pointer",)  # who goes by relocations meets these too
SURPLUS = 1664  # bytes of static TLS that glibc keeps for what is loaded later (rtld.optional_static_tls and rtld.nns)
NAMES = 5  # variables that a sentence names
MOST_NAMESPACES = 15  # that a process may make besides its own (glibc's DL_NNS is 16)

# The storage that each method makes private
PRIVATE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(BYTE_COPIES, DATA),
    **dict.fromkeys((*NAMESPACES, "fs", "tpsl"), (*DATA, THREAD_LOCAL)),
    **dict.fromkeys(("tls", "tls-word"), (THREAD_LOCAL,)),
    "swap": (GLOBAL, COMMON, MODULE),
    "mmap": DATA,
    "struct": (),
    "none": (),
}


@dataclass(frozen=True)
class Diagnosis:
    """`evidence` is from this program; `severity` one of REFUSED, LOST, RISK."""

    id: str
    severity: str
    cause: str
    evidence: str
    cure: str


@dataclass(frozen=True)
class Judgement:
    """One method for one program. `private` and `shared`: how many mutable variables, or why that is not known.

    `notes` are limits that only the number of ranks decides.
    """

    method: str
    private: Union[int, Absent]
    shared: Union[int, Absent]
    diagnoses: tuple[Diagnosis, ...]
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Union[str, Absent]:
        """Unknown variables may be shared ones: then only what is wrong without them is reported."""
        severities = {diagnosis.severity for diagnosis in self.diagnoses}
        for severity, text in ((REFUSED, "can't run"), (LOST, "not all private")):
            if severity in severities:
                return text
        if isinstance(self.shared, Absent):
            return self.shared
        return "private, at a risk" if RISK in severities else "private"


def judge(facts: Facts, method: str, ranks: int = 0) -> Judgement:
    """How the program fares under a method, with so many ranks in a process (0: not known)."""
    checked = (
        diagnosis
        for methods, check in CHECKS
        if method in methods
        for diagnosis in (check(facts),)
        if diagnosis is not None
    )
    of_program = (*checked, *limits(facts, method, ranks))
    notes = (NAMESPACE_NOTE,) if method in NAMESPACES and not ranks else ()
    variables = facts.variables
    if isinstance(variables, Absent):
        return Judgement(method, variables, variables, of_program, notes)
    one_instance = {address for _, address in facts.unique} if any(each.id == UNIQUE for each in of_program) else set()
    private = sum(
        variable.storage in PRIVATE[method] and variable.address not in one_instance for variable in variables
    )
    diagnoses = (*of_program, *shared_storage(variables, method))
    return Judgement(method, private, len(variables) - private, diagnoses, notes)


def applying(diagnoses: tuple[Diagnosis, ...], table: RankTable) -> tuple[Diagnosis, ...]:
    """Those that hold for a job that runs: its runtime is known, and how it looks for pointers."""
    of_runtime = OF_AMPI if table.runtime.startswith("embedded") else ()
    of_rewrite = OF_SCAN if table.rewrite_mode == "exact" else ()
    return tuple(diagnosis for diagnosis in diagnoses if diagnosis.id not in (*AT_START, *of_runtime, *of_rewrite))


def shared_storage(variables: tuple[Variable, ...], method: str) -> Iterator[Diagnosis]:
    """The variables that a method does not touch by its nature."""
    left = [variable for variable in variables if variable.storage not in PRIVATE[method]]
    if method in BYTE_COPIES:
        left = [variable for variable in left if variable.storage != THREAD_LOCAL]  # these are refused
    if left:
        yield Diagnosis(
            "storage-not-private",
            LOST,
            f"{method} makes {_private_text(method)} private",
            f"{len(left)} variables stay one for all ranks: {named([variable.name for variable in left])}",
            "tag them thread_local, or move them into what is private, or choose another method"
            if method in ("tls", "tls-word", "swap")
            else "choose a method that makes them private",
        )


def _private_text(method: str) -> str:
    *first, last = PRIVATE[method] or ("no",)
    kinds = f"{', '.join(first)} and {last}" if first else last
    return f"{kinds} variables alone" if PRIVATE[method] else "no variable"


def named(names: list[str]) -> str:
    """Return some of the names, and how many more there are."""
    more = len(names) - NAMES
    return ", ".join(names[:NAMES]) + (f" and {more} more" if more > 0 else "")


# ---- the checks: None where all is well ----

Check = Callable[["Facts"], Optional["Diagnosis"]]


def _unaligned_segment(facts: Facts) -> Optional[Diagnosis]:
    if facts.unaligned is None:
        return None
    return Diagnosis(
        "unaligned-writable-segment",
        RISK,
        "AMPI's PIEglobals looks for pointers at every eighth byte from the segment's start, so that it meets none",
        f"the writable PT_LOAD begins at {facts.unaligned.vaddr:#x}, no multiple of 8",
        "remove the small thread_local variable that comes first, or align it: _Alignas(8)",
    )


def exceptions(facts: Facts) -> Optional[Diagnosis]:
    """Report exceptions in a byte copy: no unwinder knows its frames."""
    if not facts.exception_tables:
        return None
    return Diagnosis(
        "exceptions-in-byte-copy",
        RISK,
        "AMPI's PIEglobals does not register its copies with the unwinder, so that no exception is caught in a rank",
        f".gcc_except_table has {facts.exception_tables} bytes",
        "use pip or fs there, or a runtime that registers the copies' frames, as the embedded one does",
    )


def unique(facts: Facts) -> Optional[Diagnosis]:
    """Report STB_GNU_UNIQUE variables: the loader keeps one instance of each."""
    if not facts.unique:
        return None
    mangled = (name for name, _ in facts.unique)
    names = sorted(map(demangle, mangled), key=lambda name: name.startswith("std::"))  # the program's own first
    return Diagnosis(
        UNIQUE,
        LOST,
        "the loader keeps one instance of a STB_GNU_UNIQUE symbol, however many copies of the file there are",
        f"{len(facts.unique)} such variables: {named(names)}",
        "compile with -fno-gnu-unique, as rankcxx --method fs does",
    )


def _direct_access(facts: Facts) -> Optional[Diagnosis]:
    if not facts.reads_word:
        return Diagnosis(
            "no-thread-pointer-word",
            REFUSED,
            "the method exchanges the word at the thread pointer, which code of this processor does not read",
            "the processor that the file is for",
            "use --method tls",
        )
    if not facts.direct:
        return None
    cause = "code that reaches a variable by %fs itself does not see the word at %fs:0 that the method exchanges"
    if isinstance(facts.direct, Absent):
        return Diagnosis(
            "direct-thread-local-access",
            RISK,
            cause,
            f"the code was not checked: {facts.direct.reason}",
            facts.direct.hint,
        )
    return Diagnosis(
        "direct-thread-local-access",
        LOST,
        cause,
        f"{len(facts.direct)} instructions, the first at {facts.direct[0]:#x}",
        "compile with -mno-tls-direct-seg-refs, as rankcc --method tls-word does",
    )


def _dynamic_tls(facts: Facts) -> Optional[Diagnosis]:
    if not facts.tls_size or facts.static_tls:
        return None
    return Diagnosis(
        "dynamic-thread-local-storage",
        REFUSED,
        "the loader may put the variables anywhere, not beside the thread pointer that a rank gets",
        f"{facts.tls_size} bytes of thread-local variables, and no DF_STATIC_TLS",
        "compile with -ftls-model=initial-exec, as rankcc --method tls does",
    )


def _no_slots(facts: Facts) -> Optional[Diagnosis]:
    variables = () if isinstance(facts.variables, Absent) else facts.variables
    exported = [variable for variable in variables if variable.storage in PRIVATE["swap"]]
    if facts.slots or not exported:
        return None
    return Diagnosis(
        "no-got-slots",
        REFUSED,
        "the linker has bound every access directly, so that there is no word to exchange",
        f"no GLOB_DAT relocation names one of the {len(exported)} variables with external linkage",
        "link as a shared object with the names left open, as rankcc --method swap does",
    )


def misaligned(facts: Facts) -> Optional[Diagnosis]:
    """Report pointers that a scan by words of 8 bytes misses."""
    if not facts.misaligned:
        return None
    return Diagnosis(
        "misaligned-pointer",
        RISK,
        "a scan for pointers looks at multiples of 8, so that this one goes on naming the original",
        f"{len(facts.misaligned)} relocations, the first at {facts.misaligned[0]:#x}",
        "unpack the struct, or use rankrun --rewrite=exact",
    )


def _thread_local_copies(facts: Facts) -> Optional[Diagnosis]:
    if not facts.tls_size:
        return None
    return Diagnosis(
        "thread-local-in-byte-copy",
        REFUSED,
        "a copy of code and data shares the kernel thread's block of thread-local variables",
        f"PT_TLS has {facts.tls_size} bytes",
        "remove thread_local, __thread or threadprivate, or use pip, fs or tls",
    )


# ---- what the number of ranks decides ----

NAMESPACE_NOTE = f"the loader has {MOST_NAMESPACES + 1} namespaces: at most {MOST_NAMESPACES} ranks in a process"


def limits(facts: Facts, method: str, ranks: int) -> Iterator[Diagnosis]:
    """What so many ranks in a process are too many for; of an unknown number, what two of them are."""
    if method in NAMESPACES and ranks > MOST_NAMESPACES:
        yield Diagnosis(
            "too-many-namespaces",
            REFUSED,
            f"the loader has {MOST_NAMESPACES + 1} namespaces, and each rank takes one",
            f"{ranks} ranks in a process",
            f"run at most {MOST_NAMESPACES} ranks in a process",
        )
    if method in (*NAMESPACES, "fs") and facts.static_tls and facts.tls_size * (ranks or 2) > SURPLUS:
        yield Diagnosis(
            "static-tls-budget",
            RISK,
            "every copy takes static TLS of the loader's reserve",
            f"{facts.tls_size} bytes each: {SURPLUS // facts.tls_size} copies fit into {SURPLUS} bytes",
            "set GLIBC_TUNABLES=glibc.rtld.optional_static_tls, or leave out -ftls-model=initial-exec",
        )


CHECKS: tuple[tuple[tuple[str, ...], Check], ...] = (
    (BYTE_COPIES, _thread_local_copies),
    (BYTE_COPIES, _unaligned_segment),
    (BYTE_COPIES, exceptions),
    (BYTE_COPIES, misaligned),
    (("fs",), unique),
    (("tls", "tls-word"), _dynamic_tls),
    (("tls-word",), _direct_access),
    (("swap",), _no_slots),
)
