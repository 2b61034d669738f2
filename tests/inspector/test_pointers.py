"""The pointer audit against the truth: what the runtime itself logged, and what the programs planted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection

from inspector.findings import HEAP, Audit, Finding
from inspector.job import open_job
from inspector.pointers import audit_pointers
from pieglobalsfind.decoders import decode
from pieglobalsfind.model import Absent, Rebase
from pieglobalsfind.targets.live import LiveTarget
from tests.conftest import PROGRAMS, Job
from tests.find.conftest import gcore
from tests.inspector.at_once import at_once
from tests.inspector.conftest import StartRanks

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
        (one.rank, one.object, one.offset, one.address, one.old, one.new) for one in found.findings if one.rewritten
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
            one.ground.symbol: one.verdict
            for one in found.findings
            if one.rank == rank and not one.healthy and one.object != HEAP and one.ground.symbol
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


def finding(found: Audit, symbol: str, rank: int = 1) -> Finding:
    (one,) = [one for one in found.findings if one.ground.symbol == symbol and one.rank == rank]
    return one


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
            one
            for one in found.findings
            if one.object == HEAP and one.rank == rank and block <= heap_start(job) + one.offset < block + NODES
        ]
        # call and target of two nodes, next and a number that looks like a pointer of the first
        assert {one.ground.symbol: one.verdict for one in heap if one.rewritten} == {
            "nodes->call": "typed",
            "nodes->target": "typed",
            "nodes->next": "typed",
            "nodes->number": "false positive",
            "nodes->next->call": "typed",
            "nodes->next->target": "typed",
        }


def test_a_value_that_the_program_changed_is_no_rewrite(start_ranks: StartRanks) -> None:
    found = audit(start_ranks(PLANTED / "planted.c", ranks=RANKS))
    symbols = {one.ground.symbol for one in found.findings}
    assert "changed_long" not in symbols
    # rank 0 to 3 store &anchor[0] to &anchor[3], none of them &anchor[5]
    assert "changed_pointer" not in {one.ground.symbol for one in found.findings if one.rewritten}


def test_alarm_when_a_copy_names_the_original(start_ranks: StartRanks) -> None:
    job = start_ranks(PLANTED / "planted.c", ranks=RANKS)
    table = decode(LiveTarget(job.pid))
    program = next(one for one in table.objects if one.is_program)
    copy = next(
        one.copy for one in table.ranks[2].placements if isinstance(one, Rebase) and one.object == program.index
    )
    slots = [one for one in relocated_words(Path(program.path)) if one % 8 == 0]
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
        sections = [one for one in ELFFile(stream).iter_sections() if isinstance(one, RelocationSection)]
        return [entry["r_offset"] for one in sections if one["sh_flags"] & 2 for entry in one.iter_relocations()]


# ---- what a rank has besides its copies ----


def planted(job: Job) -> set[tuple[int, int, str, str]]:
    """What the program says of its own plants: (rank, address, verdict, name)."""
    words = [line.split() for line in job.lines if line.startswith("plant ")]
    return {(int(one[1]), int(one[2]), one[3].replace("-p", " p"), one[4]) for one in words}


def told(findings: list[dict[str, Any]]) -> set[tuple[int, int, str, str]]:
    """The same as the audit tells it; registers that setjmp has kept are what the compiler had in them."""
    return {
        (one["rank"], int(one["address"], 16), one["verdict"], one["symbol"] or "-")
        for one in findings
        if not (one["verdict"] == "ambiguous" and "__jmpbuf[" in one["symbol"])
    }


def test_none_missed_and_none_invented(tmp_path: Path, start_ranks: StartRanks) -> None:
    """In copies, heaps and constructors' blocks, mangled words too: of the process, its core file and its snapshot."""
    log = tmp_path / "rewrites"
    job = start_ranks(PLANTED / "planted_own.c", "--rewrite-log", str(log), ranks=RANKS)
    truth = planted(job)
    assert {rank for rank, *_ in truth} == set(range(RANKS)) and len(truth) > 15 * RANKS
    file, core = tmp_path / "snapshot", gcore(job, tmp_path)
    assert at_once([("snapshot", job.pid, "-o", file)])[0].returncode == 0
    everything = audit(job)
    assert rewrites(everything) <= logged(log)
    corrupted = {(one.rank, one.address) for one in everything.findings if one.verdict == "false positive"}
    assert corrupted <= {(rank, address) for rank, _, _, address, _, _ in logged(log)}
    job.close()
    answers = [
        json.loads(done.stdout)
        for done in at_once([("pointers", target, "--json") for target in (core, file)])
    ]  # fmt: skip
    assert answers[0] == answers[1]
    assert told(answers[0]["findings"]) == truth
    assert {told_of(one) for one in everything.findings if not one.healthy} == {
        (one["rank"], int(one["address"], 16), one["verdict"], one["symbol"]) for one in answers[0]["findings"]
    }
    assert answers[0]["unread"] == []


def told_of(one: Finding) -> tuple[int, int, str, str]:
    return one.rank, one.address, one.verdict, one.ground.symbol


def test_what_is_right_for_a_mangled_word(start_ranks: StartRanks) -> None:
    found = audit(start_ranks(PLANTED / "planted_own.c", ranks=RANKS))
    one = finding(found, "mangled_word", 2)
    table_word = finding(found, "late_call.call", 2)  # names the same function, as it is
    assert (one.demangled, one.old) == (table_word.new, one.new)
    guard = turned(one.new) ^ table_word.new
    assert not isinstance(one.right, Absent) and turned(one.right) ^ guard == table_word.right


def turned(word: int) -> int:
    """Rotated right by 17 bits."""
    return (word >> 17 | word << 47) & (1 << 64) - 1
