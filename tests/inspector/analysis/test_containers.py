"""C++'s containers on several ranks: GDB's own printers, in a native run, say what they hold; damage does no harm."""

from __future__ import annotations

import json
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pieglobalsfind.dwarf import variable_cache
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.targets.core import CoreTarget
from pieglobalsfind.values.containers.bounded_contents import MOST_COMPARED, MOST_SHOWN, Contents
from pieglobalsfind.values.containers.recognize import holds_containers
from pieglobalsfind.values.surroundings import Surroundings, VariableBytes
from pieglobalsfind.values.variable_text import decode
from tests.support.inspector.ranks import SOURCES, StartRanks
from tests.support.running import BIN
from tests.support.sharing import Shared

SOURCE = SOURCES / "containers.cpp"
NATIVE = 1  # the rank whose values a native run has
# The same contents on all ranks, in heaps that are laid out differently
SAME = (
    "empty_text",
    "wide_text",
    "no_numbers",
    "tags",
    "none",
    "some_text",
    "unowned",
    "unshared",
    "nothing",
    "same",
    "same_elements",
)
IN_ANY_ORDER = ("same_elements",)  # of which each rank's memory has another
SMART = {"owned": "*owned", "shared": "*shared"}  # by the expression that shows what they lead to
# Those that hold more than is shown, and differ beyond it
BEYOND = {"large": ["0", "1", "2"], "large_map": ["0", "1", "2"], "last_differs": ["0-1", "2"]}


def variables() -> list[str]:
    """The names that the program declares at its top."""
    text = SOURCE.read_text().partition("static void fill")[0].rpartition("enum class Kind")[2]
    declarations = re.findall(r"^(?:std::.*?|\} )(\w+(?:\[2\])?(?:, \w+)*);$", text, re.M)
    return [name.partition("[")[0] for declaration in declarations for name in declaration.split(", ")]


@pytest.fixture
def answer(start_ranks: StartRanks) -> dict[str, Any]:
    job = start_ranks(SOURCE, ranks=3)
    command = [str(BIN / "inspector"), "globals", str(job.pid), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return {load["name"]: load for load in json.loads(done.stdout)["globals"]}


def printed(shared: Shared, folder: Path, gdb: Path, expressions: list[str]) -> list[str]:
    """What GDB prints of them in a native run."""
    program = shared.copied(["g++", "-g", "-std=c++17", "-DNATIVE", SOURCE], folder / "native")
    words = [gdb, "-nx", "-q", "-batch", "-ex", "set width 0", "-ex", "break filled", "-ex", "run"]
    words += [word for expression in expressions for word in ("-ex", f"print {expression}")]
    done = subprocess.run(
        [str(one) for one in (*words, program)], capture_output=True, text=True, timeout=120, check=False
    )
    lines = re.findall(r"^\$\d+ = (.*)$", done.stdout, re.M)
    assert len(lines) == len(expressions), done.stdout + done.stderr
    return lines


def comparable(text: str) -> str:
    """Without capacities, which are no value, and without the numbers of a tuple's elements: GDB's begin at 0 or 1."""
    text = re.sub(r", capacity \d+", "", text)
    return re.sub(r"\[\d\] = ", "", text) if text.startswith("std::tuple") else text


def test_values_are_those_that_gdb_prints(answer: dict[str, Any], shared: Shared, tmp_path: Path, gdb: Path) -> None:
    names = [name for name in variables() if name not in (*SMART, *IN_ANY_ORDER, "unowned", "unshared")]
    assert len(names) > 42
    expected = dict(zip([*names, *SMART], printed(shared, tmp_path, gdb, [*names, *SMART.values()])))
    found = {
        name: group["value"].partition(" (differs from rank ")[0]
        for name, one in answer.items()
        for group in one["groups"]
        if NATIVE in ranks_of(group["ranks"])
    }
    assert {name: found[name] for name in names} == {name: comparable(expected[name]) for name in names} | {
        "mixed": found["mixed"]
    }
    assert comparable(found["mixed"]) == comparable(expected["mixed"])
    for name in SMART:
        assert found[name].endswith(f" = {{*get() = {expected[name]}}}")


def test_what_has_no_order_is_compared_without(
    answer: dict[str, Any], shared: Shared, tmp_path: Path, gdb: Path
) -> None:
    """The same elements, inserted in another order; GDB shows those of one rank as its memory has them."""
    (group,) = answer["same_elements"]["groups"]
    (native,) = printed(shared, tmp_path, gdb, ["same_elements"])
    found, expected = (re.findall(r"\[\d+\] = (\d+)", text) for text in (group["value"], native))
    assert sorted(map(int, found)) == sorted(map(int, expected)) == [7 * number for number in range(20)]
    assert found != expected  # the value shown is that of rank 0
    assert group["ranks"] == "0-2"


def ranks_of(text: str) -> list[int]:
    spans = [one.split("-") for one in text.split(",")]
    return [rank for span in spans for rank in range(int(span[0]), int(span[-1]) + 1)]


def test_contents_are_compared_wherever_they_lie(answer: dict[str, Any]) -> None:
    for name in variables():
        groups = [one["ranks"] for one in answer[name]["groups"]]
        assert groups == (["0-2"] if name in SAME else BEYOND.get(name, groups)), name
        assert answer[name]["differs"] == (name not in SAME), name
        assert answer[name]["uncompared"] == "", name


def test_the_pause_copies_what_containers_lead_to(start_ranks: StartRanks) -> None:
    """Where the ranks' heap is libc's, no plan has it: a second stop copies what the first one lacked."""
    job = start_ranks(SOURCE, "--method", "fs", ranks=3)
    command = [str(BIN / "inspector"), "globals", str(job.pid), "by_*"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "(2 stops): all figures are of one moment" in " ".join(done.stdout.split())
    assert "std::map with 5 elements" in " ".join(done.stdout.split())
    assert "was not copied" not in done.stdout


@pytest.mark.parametrize("seed", range(4))
def test_damaged_memory_gives_a_text_in_bounded_work(seed: int, shared: Shared, tmp_path: Path, rankcxx: Path) -> None:
    """Every byte of the object and of the heap may be anything."""
    program = shared.copied([rankcxx, "-g", SOURCE], tmp_path / "containers.so")
    declared = variable_cache.declared(str(program), b"")
    chance = random.Random(seed)
    print("seed", seed)
    for one in declared:
        if not holds_containers(declared.types, one.type):
            continue
        reads = 0

        def read(address: int, size: int) -> bytes:
            nonlocal reads
            reads += 1
            assert size <= 1 << 20
            if chance.random() < 0.05:
                raise MemoryUnreadable(address, size)
            small = chance.random() < 0.5
            return b"".join(
                (chance.randrange(40 if small else 1 << 64)).to_bytes(8, "little") for _ in range(size // 8 + 1)
            )[:size]

        data = chance.randbytes(one.size) if seed else b"\xff" * one.size
        contents = Contents()
        around = Surroundings(declared.types, one.language, read, hex, contents)
        text = decode(around, one.type, VariableBytes(0x1000, data))
        assert isinstance(text, str) and text
        assert reads < 40 * (MOST_COMPARED + MOST_SHOWN), one.name


def test_a_loop_of_nodes_ends(shared: Shared, tmp_path: Path, rankcxx: Path) -> None:
    program = shared.copied([rankcxx, "-g", SOURCE], tmp_path / "containers.so")
    declared = variable_cache.declared(str(program), b"")
    (ring,) = [variable for variable in declared if variable.name == "ring"]
    node = 0x5000
    around = Surroundings(declared.types, ring.language, lambda at, size: node.to_bytes(8, "little") * 3, hex)
    text = decode(around, ring.type, VariableBytes(0x1000, node.to_bytes(8, "little") * 3))
    assert text == "<not readable as std::__cxx11::list: its chain of nodes has a loop>"


def test_fortran_pointers_and_derived_types(start_ranks: StartRanks) -> None:
    """One level deep: what they lead to is shown and compared."""
    job = start_ranks(SOURCES / "derived.f90", ranks=2)
    command = [str(BIN / "inspector"), "globals", str(job.pid), "--json"]
    done = subprocess.run(command, capture_output=True, timeout=120, check=True)
    found = {load["name"]: load for load in json.loads(done.stdout)["globals"]}

    def of(name: str) -> list[str]:
        return [re.sub(r"<heap\+0x[0-9a-f]+>", "<heap>", one["value"]) for one in found[f"state::{name}"]["groups"]]

    assert of("number") == ["<heap> -> 0", "<heap> -> 1"]
    assert of("scalar") == ["<heap> -> 7", "<heap> -> 8"]
    rest = "values = <not allocated>, label = 0x0, next = 0x0, _label_length = 0 )"
    assert of("chosen") == [f"<heap> -> ( id = 100, {rest}", f"<heap> -> ( id = 101, {rest}"]
    assert of("first") == [
        f"( id = {rank}, values = ({rank}.5, {rank}.5), label = 'label', next = 0x0, _label_length = 5 )"
        for rank in (0, 1)
    ]
    assert of("title") == ["'title of some length'"]
    assert found["state::title"]["uncompared"] == ""
    first, second = of("heading")
    assert (first, second) == ("'heading of rank 0'", "'heading of rank 1, which is longer'")


def with_libcxx() -> list[Path]:
    """The compilers that have a libc++ of their own version beside them."""
    return [one for one in Path("/usr/lib").glob("llvm-*/bin/clang++") if (one.parents[1] / "include/c++/v1").exists()]


def of_libcxx(compiler: Path, folder: Path, shared: Shared, gdb: Path) -> dict[str, str]:
    """Our text of each variable of a native run with LLVM's libc++, from a core file."""
    words = [compiler, "-g", "-std=c++17", "-stdlib=libc++", "-DNATIVE", SOURCE]
    program, core = shared.copied(words, folder / "with-libcxx"), folder / "core"
    commands = ["-ex", "break filled", "-ex", "run", "-ex", f"gcore {core}"]
    subprocess.run([gdb, "-nx", "-q", "-batch", *commands, program], capture_output=True, timeout=120, check=True)
    target, declared = CoreTarget(str(core)), variable_cache.declared(str(program), b"")
    base = min(mapping.start for mapping in target.maps() if mapping.path == str(program) and mapping.offset == 0)
    found = {}
    for variable in declared:
        if variable.address is not None and variable.file.endswith(SOURCE.name):
            around = Surroundings(declared.types, variable.language, target.read, hex)
            place = base + variable.address
            found[variable.name] = decode(
                around, variable.type, VariableBytes(place, target.read(place, variable.size))
            )
    return found


def without_versions(name: str, text: str) -> str:
    """Names of members and of inline namespaces are each library's own, as is the order of a hash table."""
    text = re.sub(r"std::(__cxx11|__1)::", "std::", comparable(text)).replace("__elems_", "_M_elems")
    if name in ("weights", "tags", "hashed_aligned", "hashed_packed"):
        parts = re.findall(r'"tag \d"|\[\d\] = (?:[\d.]+|\{.*?\})', text)
        return " ".join([text.partition("{")[0], *sorted(parts)])
    return text


@pytest.mark.skipif(not with_libcxx(), reason="no clang with a libc++ is installed")
@pytest.mark.parametrize("compiler", with_libcxx(), ids=lambda compiler: compiler.parents[1].name)
def test_libcxx_holds_what_libstdcxx_does(compiler: Path, shared: Shared, tmp_path: Path, gdb: Path) -> None:
    names = [name for name in variables() if name not in (*SMART, *IN_ANY_ORDER, "unowned", "unshared", "z")]
    expected = dict(zip([*names, *SMART], printed(shared, tmp_path, gdb, [*names, *SMART.values()])))
    found = of_libcxx(compiler, tmp_path, shared, gdb)
    assert {name: without_versions(name, found[name]) for name in names} == {
        name: without_versions(name, expected[name]) for name in names
    }
    for name in SMART:
        assert found[name].endswith(f" = {{*get() = {expected[name]}}}")
