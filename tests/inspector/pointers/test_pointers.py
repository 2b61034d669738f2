"""The pointer audit against the truth: what the runtime itself logged, and what the programs planted."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection

from inspector.analysis.report import finding_as_json
from inspector.job.job import open_job
from inspector.pointers.check import audit_pointers
from inspector.pointers.findings import HEAP, Audit, PointerFinding
from inspector.pointers.stack_evidence import pieces
from pieglobalsfind.decoders import decode
from pieglobalsfind.dwarf.argument_locations import Step
from pieglobalsfind.dwarf.constants import DW_OP_fbreg, DW_OP_piece, DW_OP_reg0
from pieglobalsfind.model import Absent, Rebase
from pieglobalsfind.targets.live import LiveTarget
from tests.support.inspector.in_one_interpreter import in_one_interpreter
from tests.support.inspector.ranks import SOURCES, StartRanks
from tests.support.places import gcore
from tests.support.running import PROGRAMS, Job, StartJob
from tests.support.sharing import Shared

RANKS = 4
NODES = 64  # bytes of the two nodes that a constructor allocates
PLANTED = PROGRAMS / "planted"

# program, mode: verdict by variable (and member), for words that are not plainly right
EXPECTED = {
    ("planted.c", "scan"): {
        "planted_long": "false positive",
        "planted_double": "false positive",
        "planted_pair[0]": "false positive",
        "planted_chars[8]": "false positive",
        "planted_past_end_integer": "false positive",
        "planted_union.pointer": "ambiguous",
        "planted_uintptr": "ambiguous",
        "static_packet.where": "stale",
        "filled_packet.where": "stale",
        "late_stale": "stale",
    },
    ("planted.c", "exact"): {},
    ("planted_cxx.cpp", "exact"): {},
    ("planted_cxx.cpp", "scan"): {
        "app::planted_integer": "false positive",
        "app::raw[0]": "ambiguous",
        "app::raw[8]": "ambiguous",
        "app::packet.shape": "stale",
    },
}


RETURN, REGISTER = "return address of MPI_Recv", "in_register"

# Constructors compute numbers that look like addresses; what all ranks share is pointed to from everywhere.
LEVELS = """
#include <mpi.h>
#include <rank_program.h>
#include <stdio.h>
#include <stdlib.h>
RANK_LEVEL(process) int whole;
int mine, **held;
static int anchor[4];
long number;
int *to_whole;
__attribute__((constructor)) static void make(void) { number = (long)&anchor[1]; number = (long)&anchor[number & 1]; }
int main(int argc, char **argv) {
    int word, rank, *local = &whole, *other = &mine;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    number = rank;
    to_whole = &whole;
    held = malloc(2 * sizeof *held);
    held[0] = &whole;
    held[1] = &mine;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("ready");
    fflush(stdout);
    MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return *local + *other + *held[0];
}
"""


# One rank runs, with pointers into the original on its stack as the others have.
LOOPS = """
#include <mpi.h>
#include <stdio.h>
static long anchor[4];
struct __attribute__((packed)) packet { char kind; long *where; } escaped = {'e', &anchor[2]};
volatile int go;
int main(int argc, char **argv) {
    int word, rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    long *local = escaped.where;
    struct packet packed = escaped;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("ready");
    fflush(stdout);
    while (rank == 1 && !go)
        ;
    MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return (int)(*local + *packed.where);
}
"""


# An argument whose members are in two registers while MPI_Recv is called, which saves them.
PIECES = """
#include <mpi.h>
#include <stdio.h>
static long anchor[4];
struct __attribute__((packed)) packet { char kind; long *where; };
struct packet escaped = {'e', &anchor[2]};
struct span { long *first; long count; };
long total;
__attribute__((noipa)) static long use(struct span one, int rank) {
    int word;
    MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    total += one.count;
    return one.first[0] + one.count + word + rank;
}
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    struct span all = {escaped.where, argc};
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("ready");
    fflush(stdout);
    return (int)use(all, rank);
}
"""


def audit(job: Job) -> Audit:
    return audit_pointers(open_job(str(job.pid), None), everything=True)


def logged(path: Path) -> set[tuple[int, str, int, int, int, int]]:
    """What the runtime wrote of its own rewrites: (rank, object or "heap", offset, address, old, new)."""
    found = set()
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        place = entry["place"]
        found.add((entry["rank"], place["object"], place["offset"], entry["address"], entry["old"], entry["new"]))
    return found


def rewrites(found: Audit) -> set[tuple[int, str, int, int, int, int]]:
    return {
        (
            pointer_finding.rank,
            pointer_finding.object,
            pointer_finding.offset,
            pointer_finding.address,
            pointer_finding.old,
            pointer_finding.new,
        )
        for pointer_finding in found.findings
        if pointer_finding.rewritten
    }


@pytest.mark.parametrize("mode", ["scan", "exact"])
@pytest.mark.parametrize("program", ["planted.c", "planted_cxx.cpp"])
def test_every_rewrite_and_no_other(program: str, mode: str, tmp_path: Path, start_ranks: StartRanks) -> None:
    log = tmp_path / "rewrites"
    job = start_ranks(PLANTED / program, f"--rewrite={mode}", "--rewrite-log", str(log), ranks=RANKS)
    truth, found = logged(log), audit(job)
    assert len(truth) > 50
    seen = rewrites(found)
    assert seen <= truth, "rewrites that nobody made"
    target = LiveTarget(job.pid)
    for rank, place, offset, address, _, new in truth - seen:
        now = int.from_bytes(target.read(address, 8), "little")
        assert now != new, f"rank {rank}, {place}+{offset:#x}: still as it was rewritten, and not found"


@pytest.mark.parametrize(("program", "mode"), list(EXPECTED))
def test_verdicts(program: str, mode: str, start_ranks: StartRanks) -> None:
    found = audit(start_ranks(PLANTED / program, f"--rewrite={mode}", ranks=RANKS))
    expected = EXPECTED[program, mode]
    for rank in range(RANKS):
        verdicts = {
            pointer_finding.ground.symbol: pointer_finding.verdict
            for pointer_finding in found.findings
            if pointer_finding.rank == rank
            and not pointer_finding.healthy
            and pointer_finding.object != HEAP
            and pointer_finding.ground.symbol
        }
        assert {name: verdicts.get(name) for name in expected} == expected
        invented = {
            name
            for name, verdict in verdicts.items()
            if verdict in ("false positive", "stale") and name not in expected
        }
        assert invented == set()
    assert found.alarms == ()


def heap_start(job: Job) -> int:
    heap = decode(LiveTarget(job.pid)).constructor_heap
    assert heap is not None
    return heap.start


def finding(found: Audit, symbol: str, rank: int = 1) -> PointerFinding:
    (pointer_finding,) = [
        pointer_finding
        for pointer_finding in found.findings
        if pointer_finding.ground.symbol == symbol and pointer_finding.rank == rank
    ]
    return pointer_finding


def test_what_a_finding_says(start_ranks: StartRanks) -> None:
    found = audit(start_ranks(PLANTED / "planted.c", ranks=RANKS))
    integer = finding(found, "planted_long")
    assert (integer.ground.type, integer.right, integer.rewritten) == ("long int", integer.old, True)
    stale = finding(found, "static_packet.where")
    assert (stale.new, stale.rewritten) == (stale.old, False)
    assert not isinstance(stale.right, Absent)
    assert stale.right != stale.old
    assert finding(found, "past_end_pointer").past_end
    assert finding(found, "planted_past_end_integer").past_end
    assert not integer.past_end


def test_words_in_blocks_of_constructors(start_ranks: StartRanks) -> None:
    job = start_ranks(PLANTED / "planted.c", ranks=RANKS)
    found = audit(job)
    for rank in range(RANKS):
        block = finding(found, "nodes", rank).old
        heap = [
            pointer_finding
            for pointer_finding in found.findings
            if pointer_finding.object == HEAP
            and pointer_finding.rank == rank
            and block <= heap_start(job) + pointer_finding.offset < block + NODES
        ]
        # call and target of two nodes, next and a number that looks like a pointer of the first
        assert {
            pointer_finding.ground.symbol: pointer_finding.verdict
            for pointer_finding in heap
            if pointer_finding.rewritten
        } == {
            "nodes->call": "typed",
            "nodes->target": "typed",
            "nodes->next": "typed",
            "nodes->number": "false positive",
            "nodes->next->call": "typed",
            "nodes->next->target": "typed",
        }


def test_a_value_that_the_program_changed_is_no_rewrite(start_ranks: StartRanks) -> None:
    found = audit(start_ranks(PLANTED / "planted.c", ranks=RANKS))
    symbols = {pointer_finding.ground.symbol for pointer_finding in found.findings}
    assert "changed_long" not in symbols
    # rank 0 to 3 store &anchor[0] to &anchor[3], none of them &anchor[5]
    assert "changed_pointer" not in {
        pointer_finding.ground.symbol for pointer_finding in found.findings if pointer_finding.rewritten
    }


def test_alarm_when_a_copy_names_the_original(start_ranks: StartRanks) -> None:
    job = start_ranks(PLANTED / "planted.c", ranks=RANKS)
    table = decode(LiveTarget(job.pid))
    program = next(elf_object for elf_object in table.objects if elf_object.is_program)
    copy = next(
        placement.copy
        for placement in table.ranks[2].placements
        if isinstance(placement, Rebase) and placement.object == program.index
    )
    slots = [word for word in relocated_words(Path(program.path)) if word % 8 == 0]
    with open(f"/proc/{job.pid}/mem", "r+b", buffering=0) as memory:  # the test does what a failing runtime would
        for slot in slots:
            memory.seek(program.load_bias + slot)
            word = memory.read(8)
            memory.seek(copy + program.load_bias - program.base + slot)
            memory.write(word)
    (alarm,) = audit(job).alarms
    assert alarm.ranks == (2,)
    assert alarm.sentence.startswith(f"privatization of {program.path} failed in 1 of {RANKS} ranks")


def relocated_words(path: Path) -> list[int]:
    """Where dynamic relocations of the file store addresses, by pyelftools."""
    with path.open("rb") as stream:
        sections = [section for section in ELFFile(stream).iter_sections() if isinstance(section, RelocationSection)]
        return [
            entry["r_offset"] for section in sections if section["sh_flags"] & 2 for entry in section.iter_relocations()
        ]


# ---- what a rank has besides its copies ----

Plant = tuple[int, int, str, str]  # rank, address, verdict, name


def planted(job: Job) -> set[Plant]:
    """What the program says of its own plants."""
    words = [line.split() for line in job.lines if line.startswith("plant ")]
    return {(int(word[1]), int(word[2]), word[3].replace("-p", " p"), word[4]) for word in words}


def told(findings: Iterable[PointerFinding]) -> set[Plant]:
    """The same as the audit tells it; registers that setjmp has kept are what the compiler had in them."""
    return {
        (pointer_finding.rank, pointer_finding.address, pointer_finding.verdict, pointer_finding.ground.symbol or "-")
        for pointer_finding in findings
        if not pointer_finding.healthy
        and not (pointer_finding.verdict == "ambiguous" and "__jmpbuf[" in pointer_finding.ground.symbol)
    }


def without_calls(found: set[Plant]) -> set[Plant]:
    """Without what the program can't tell the place of: where the call of rank 3 returns to, and a register."""
    calls = {one for one in found if one[2] == "stale" and (one[3] == RETURN or one[3] == "in_register")}
    assert sorted((rank, name) for rank, _, _, name in calls) == [
        *((rank, "in_register") for rank in range(3)),
        (3, RETURN),
    ]
    return found - calls


@pytest.fixture(params=["-O0", "-O2"])
def own(
    request: pytest.FixtureRequest, tmp_path: Path, shared: Shared, rankrun: Path, rankcc: Path, start_job: StartJob
) -> Job:
    """The program that plants in its heap and on its stack, as the compiler's option makes it."""
    binary = shared.copied([rankcc, "-g", request.param, PLANTED / "planted_own.c"], tmp_path / "own.so")
    job = start_job(rankrun, "-n", RANKS, "--rewrite-log", tmp_path / "rewrites", binary)
    job.wait_for("ready")
    job.wait_until_still()
    return job


def test_none_missed_and_none_invented(own: Job, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """In copies, heaps, stacks and constructors' blocks: of the process, its core file and its snapshot."""
    truth, file, core = planted(own), tmp_path / "snapshot", gcore(own, tmp_path)
    assert {rank for rank, *_ in truth} == set(range(RANKS)) and len(truth) > 20 * RANKS
    assert in_one_interpreter([("snapshot", own.pid, "-o", file)])[0].returncode == 0
    found = audit(own)
    own.close()
    log = logged(tmp_path / "rewrites")
    assert rewrites(found) <= log
    corrupted = {
        (pointer_finding.rank, pointer_finding.address)
        for pointer_finding in found.findings
        if pointer_finding.verdict == "false positive"
    }
    assert corrupted <= {(rank, address) for rank, _, _, address, _, _ in log}
    seen = without_calls(told(found.findings))
    if request.node.callspec.params["own"] == "-O0":
        assert seen == truth
    else:  # what the compiler has made of variables may have no type any more: it is told, and no alarm
        assert {one[:2] for one in seen} == {one[:2] for one in truth}
        assert {one for one in seen if one[2] != "untyped"} <= truth
    live = [finding_as_json(pointer_finding) for pointer_finding in found.findings if not pointer_finding.healthy]
    for done in in_one_interpreter([("pointers", target, "--json") for target in (core, file)]):
        answer = json.loads(done.stdout)
        assert (answer["findings"], answer["unread"]) == (live, [])


def test_what_is_right_for_a_mangled_word(own: Job) -> None:
    found = audit(own)
    pointer_finding = finding(found, "mangled_word", 2)
    plain = finding(found, "late_call.call", 2)  # names the same function, as it is
    assert (pointer_finding.demangled, pointer_finding.old) == (plain.new, pointer_finding.new)
    guard = turned(pointer_finding.new) ^ plain.new
    assert not isinstance(pointer_finding.right, Absent) and turned(pointer_finding.right) ^ guard == plain.right


def turned(word: int) -> int:
    """Rotated right by 17 bits."""
    return (word >> 17 | word << 47) & (1 << 64) - 1


@pytest.mark.parametrize("method", ["fs", "hls", "pie"])
def test_nothing_is_invented_for_other_methods(
    method: str, tmp_path: Path, shared: Shared, rankrun: Path, rankcc: Path, start_job: StartJob
) -> None:
    """Of copies that a loader made, nobody has rewritten anything; a variable of all ranks is in its right place."""
    source = tmp_path / "levels.c"
    source.write_text(LEVELS)
    binary = shared.copied([rankcc, "-g", "--method", method, source], tmp_path / "levels.so")
    job = start_job(rankrun, "-n", RANKS, "--method", method, binary)
    job.wait_for("ready")
    job.wait_until_still()
    found = audit(job)
    assert {pointer_finding.verdict for pointer_finding in found.findings} == {"proven"}
    assert (found.alarms, found.unread) == ((), ())


def test_a_rank_that_runs(tmp_path: Path, start_ranks: StartRanks) -> None:
    """It has a stack where its thread's registers can be had; else it is said that it has none."""
    source = tmp_path / "loops.c"
    source.write_text(LOOPS)
    job = start_ranks(source, ranks=3, loops=True)
    core = gcore(job, tmp_path)
    asked = [("pointers", job.pid, "--json"), ("pointers", job.pid, "--freeze", "--json"), ("pointers", core, "--json")]
    live, frozen, dead = (json.loads(done.stdout) for done in in_one_interpreter(asked))
    stack = {(rank, name) for rank in range(3) for name in ("local", "packed.where")}
    assert on_stack(frozen) == on_stack(dead) == stack
    assert (frozen["unread"], dead["unread"]) == ([], [])
    assert on_stack(live) == {one for one in stack if one[0] != 1}
    (unread,) = live["unread"]
    assert unread["ranks"] == "1" and "its stack was not read, it is running" in unread["reason"]


def test_a_variable_in_pieces(tmp_path: Path, shared: Shared, rankrun: Path, rankcc: Path, start_job: StartJob) -> None:
    """What a register had that a frame further in has saved is a member: also in a core file."""
    source = tmp_path / "pieces.c"
    source.write_text(PIECES)
    job = start_job(rankrun, "-n", RANKS, shared.copied([rankcc, "-g", "-O2", source], tmp_path / "pieces.so"))
    job.wait_for("ready")
    job.wait_until_still()
    found = audit(job)
    for rank in range(RANKS):
        pointer_finding, escaped = finding(found, "one.first", rank), finding(found, "escaped.where", rank)
        assert (pointer_finding.object, pointer_finding.verdict, pointer_finding.ground.type) == (
            "stack",
            "stale",
            "long int *",
        )
        assert (pointer_finding.new, pointer_finding.right) == (escaped.new, escaped.right)
        assert int.from_bytes(LiveTarget(job.pid).read(pointer_finding.address, 8), "little") == pointer_finding.new
    assert not [pointer_finding for pointer_finding in found.findings if pointer_finding.verdict == "false positive"]
    core = gcore(job, tmp_path)
    (done,) = in_one_interpreter([("pointers", core, "--json")])
    assert json.loads(done.stdout)["findings"] == [
        finding_as_json(pointer_finding) for pointer_finding in found.findings if not pointer_finding.healthy
    ]


def test_pieces_of_a_location() -> None:
    """DWARF 5, 2.6.1.2: one behind the other in the variable; what is nowhere has no operation before it."""
    r3, r12, at = Step(DW_OP_reg0 + 3), Step(DW_OP_reg0 + 12), Step(DW_OP_fbreg, -24)
    found = pieces(
        (r12, Step(DW_OP_piece, 8), Step(DW_OP_piece, 4), r3, Step(DW_OP_piece, 4), at, Step(DW_OP_piece, 9))
    )
    assert list(found) == [((r12,), 0, 8), ((r3,), 12, 4), ((at,), 16, 9)]


def on_stack(answer: dict[str, Any]) -> set[tuple[int, str]]:
    found = [one for one in answer["findings"] if one["object"] == "stack"]
    assert {one["verdict"] for one in found} == {"stale"}
    return {(one["rank"], one["symbol"]) for one in found}


def test_virtual_base_classes(start_ranks: StartRanks) -> None:
    """Where they lie only an object says: none is shown from another place, nor are their pointers called padding."""
    job = start_ranks(SOURCES / "virtual.cpp", ranks=2)
    shown, audited = in_one_interpreter([("globals", job.pid, "both", "--json"), ("pointers", job.pid, "--json")])
    (both,) = json.loads(shown.stdout)["globals"]
    counts = [(one["ranks"], re.findall(r"count = (\d+)", one["value"])) for one in both["groups"]]
    assert (both["verdict"], counts) == ("differs", [("0", ["100"]), ("1", ["101"])])
    assert {one["verdict"] for one in json.loads(audited.stdout)["findings"]} == {"untyped"}


def test_base_classes_that_are_declared_alone(
    rankrun: Path, rankcxx: Path, start_job: StartJob, tmp_path: Path
) -> None:
    """What they hold has no type, so that it is not shown; but it is compared, and none of it is called padding."""
    source, program, hidden = SOURCES / "declared.cpp", tmp_path / "declared", tmp_path / "hidden.o"
    environment = os.environ | {"RANK_CXX": "clang++"}
    for words in (["-c", "-DHIDDEN", source, "-o", hidden], ["-g", source, hidden, "-o", program]):
        subprocess.run([str(rankcxx), *map(str, words)], check=True, timeout=60, env=environment)
    job = start_job(rankrun, "-n", 2, program)
    job.wait_for("ready")
    job.wait_until_still()
    shown, audited = in_one_interpreter([("globals", job.pid, "--json"), ("pointers", job.pid, "--json")])
    verdicts = {load["name"]: load["verdict"] for load in json.loads(shown.stdout)["globals"]}
    assert verdicts == {"different": "differs", "equal": "equal but for addresses", "target": "initial value"}
    assert {one["verdict"] for one in json.loads(audited.stdout)["findings"]} <= {"untyped"}
