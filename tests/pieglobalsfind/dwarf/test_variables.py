"""The same variables, places, lines and sizes as an independent walk by pyelftools finds, on real object files."""

from __future__ import annotations

import gzip
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from pieglobalsfind.debugger import patched_variable_locations
from pieglobalsfind.dwarf import constants as dw
from pieglobalsfind.dwarf import variable_cache
from pieglobalsfind.dwarf.debug_info import DebugInfo
from pieglobalsfind.dwarf.libdw import private_copy
from pieglobalsfind.dwarf.type_names import type_name
from pieglobalsfind.dwarf.types import TypeTable, Variable, Variables, Void
from pieglobalsfind.dwarf.variables import VariableReader
from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.errors import ObjectFileError
from pieglobalsfind.model import BLOCKED, Absent, Evidence, Object, Rank
from tests.pieglobalsfind.dwarf.walker import Found, walk
from tests.pieglobalsfind.dwarf.writer import At, Entry, To, entry, unit, written
from tests.support.running import ROOT
from tests.support.shapes import Build

SOURCES = ("shapes.c", "shapes.cpp", "shapes.f90")
BUILDS = [
    *((source, "", level, version) for source in SOURCES for level in ("-O0", "-O2") for version in ("4", "5")),
    *(("shapes.c", "clang", level, "5") for level in ("-O0", "-O2")),
    *(("shapes.cpp", "clang++", level, "5") for level in ("-O0", "-O2")),
]


def ours(path: Path) -> set[Found]:
    return {
        Found(
            variable.name.rpartition("::")[2],
            variable.tls_offset if variable.tls_offset is not None else variable.address or 0,
            variable.tls_offset is not None,
            variable.line,
            variable.size,
        )
        for variable in DebugInfo.open(str(path)).variables()
    }


@pytest.mark.parametrize(("source", "compiler", "level", "version"), BUILDS)
def test_same_as_an_independent_walk(build: Build, source: str, compiler: str, level: str, version: str) -> None:
    path = build(source, level, f"-gdwarf-{version}", compiler=compiler)
    expected = walk(path)
    assert len(expected) > 10
    assert ours(path) == expected


@pytest.mark.parametrize("option", ["-gz", "-fdebug-types-section", "-gsplit-dwarf"])
@pytest.mark.parametrize("source", ["shapes.c", "shapes.cpp"])
def test_forms_of_debug_information(build: Build, source: str, option: str) -> None:
    plain = DebugInfo.open(str(build(source, "-O0", name="plain.so")))
    special = DebugInfo.open(str(build(source, "-O0", option, name="special.so")))
    named = [
        [(one.name, one.storage, one.size, one.line, type_name(info.types, one.type, one.language))
         for one in sorted(info.variables(), key=lambda one: (one.name, one.line))]
        for info in (plain, special)
    ]  # fmt: skip
    assert named[0] == named[1]


EXPECTED = {
    "shapes.c": {
        "counter": ("global", "int"),
        "kept": ("file static", "short"),
        "grid": ("global", "double [3][4]"),
        "head": ("global", "struct node *"),
        "chosen": ("global", "operation"),
        "names": ("global", "const char * const[2]"),
        "per_thread": ("thread-local", "int"),
        "hidden_per_thread": ("thread-local", "long"),
        "row": ("global", "int (*)[4]"),
        "step::calls": ("function static", "int"),
        "with_a_long_name::again": ("function static", "int"),
        "with_a_long_name::accumulated_so_far": ("function static", "int"),
        "brief::accumulated_so_far": ("function static", "int"),
    },
    "shapes.cpp": {
        "app::total": ("global", "int"),
        "app::(anonymous namespace)::hidden": ("file static", "double"),
        "app::v2::versioned": ("global", "long"),
        "app::Derived::made": ("global", "int"),
        "app::Derived::inlined": ("global", "long"),
        "app::Holder<int>::held": ("global", "int"),
        "app::work(int)::calls": ("function static", "int"),
        "app::work(int)::Local::deep(int)::deepest": ("function static", "int"),
        "app::Derived::count(int)::hits": ("function static", "int"),
        "shared_counter()::counted": ("function static", "int"),
        "per_thread": ("thread-local", "int"),
        "function": ("global", "int (*)(int)"),
        "app::pointer": ("global", "app::Derived *"),
    },
    "shapes.f90": {
        "simdata::nsteps": ("module", "integer(kind=4)"),
        "simdata::field": ("module", "real(kind=8), allocatable (:,:)"),
        "simdata::cells": ("module", "Type cell (3)"),
        "simdata::shifted": ("module", "integer(kind=4) (-2:2,0:1)"),
        "simdata::bump::counter": ("function static", "integer(kind=4)"),
        "first": ("common", "integer(kind=4)"),
        "third": ("common", "real(kind=8)"),
        "work::calls": ("function static", "integer(kind=4)"),
    },
}


@pytest.mark.parametrize(
    ("source", "compiler", "option"),
    [
        *((source, "", option) for source in SOURCES for option in ("-gdwarf-2", "-g")),
        *((one, "", "-flto") for one in ("shapes.c", "shapes.cpp")),  # gfortran loses common blocks then
        ("shapes.cpp", "clang++", "-g"),
    ],
)
def test_names_storage_and_types(build: Build, source: str, compiler: str, option: str) -> None:
    information = DebugInfo.open(str(build(source, "-O0", option, compiler=compiler)))
    found = {
        variable.name: (
            variable.storage,
            type_name(information.types, variable.type, variable.language)
            .replace("long int", "long")
            .replace("short int", "short"),
        )
        for variable in information.variables()
    }
    for name, (storage, declared) in EXPECTED[source].items():
        assert (name, found[name]) == (name, (storage, declared))


def test_members_and_bit_fields(build: Build) -> None:
    information = DebugInfo.open(str(build("shapes.c", "-O0")))
    types = information.types
    flags = next(variable for variable in information.variables() if variable.name == "flags")
    members = types.strip(flags.type)
    assert [(member.name, member.bit_offset, member.bit_size) for member in members.members] == [  # type: ignore[union-attr]
        ("low", 0, 3),
        ("middle", 3, 7),
        ("high", 10, 40),
    ]


def described(variables: Variables) -> list[tuple[Variable, list[object]]]:
    """Every variable, and its type without the indices, which are counted differently by every reader."""
    return [(variable._replace(type=0), spelled(variables.types, variable.type)) for variable in variables]


def spelled(types: TypeTable, index: int, around: tuple[int, ...] = ()) -> list[object]:
    """A type with all that it holds, and what its pointers point to as far as that is not a loop."""
    if index in around or len(around) > 20:
        return ["again"]
    found, inside = types[index], (*around, index)
    told: list[object] = [type(found).__name__]
    for name, value in vars(found).items():
        if name in ("target", "element", "container", "result"):
            told.append(spelled(types, value, inside))
        elif name == "members":
            told += [(replace(one, type=0), spelled(types, one.type, inside)) for one in value]
        else:
            told.append(len(value) if name == "parameters" else value)
    return told


def build_id_of(path: str) -> bytes:
    with ElfFile(path) as elf:
        return elf.build_id


@pytest.mark.parametrize("digits", ["1234567890", "12345678abcdef"])
def test_a_build_id_of_any_length(digits: str, tmp_path: Path) -> None:
    """Linkers take any; libdw reads no notes that are not a multiple of 4 bytes long."""
    source, program = tmp_path / "short.c", str(tmp_path / "short")
    source.write_text("int answer = 42;\nint main(void) { return answer; }\n")
    subprocess.run(["gcc", "-g", f"-Wl,--build-id=0x{digits}", "-o", program, source], check=True, timeout=60)
    assert build_id_of(program).hex() == digits
    variables = variable_cache.declared(program, build_id_of(program)).variables
    assert [variable.name for variable in variables] == ["answer"]
    with pytest.raises(ObjectFileError, match="is not the file with build-id"):
        variable_cache.declared(program, b"\x12")


@pytest.mark.parametrize("option", ["-gdwarf-2", "-gdwarf-4", "-gdwarf-5", "-gz", "-fdebug-types-section"])
@pytest.mark.parametrize("source", SOURCES)
def test_the_cache_gives_the_same_answer(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, option: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = str(build(source, "-O0", option))
    cold = described(variable_cache.declared(path, build_id_of(path)))
    assert [path.suffix for path in (tmp_path / "cache").rglob("*.*")] == [f".{variable_cache.KIND}"]
    with monkeypatch.context() as patched:
        patched.setattr(VariableReader, "read", None)  # nothing is walked through again
        warm = described(variable_cache.declared(path, build_id_of(path)))
    assert len(cold) > 10 and warm == cold


@pytest.mark.parametrize("compiler", ["", "clang++"])
def test_what_is_in_a_block_is_in_no_class_before_it(build: Build, compiler: str) -> None:
    names = {
        variable.name for variable in DebugInfo.open(str(build("scopes.cpp", "-O0", compiler=compiler))).variables()
    }
    assert names == {
        "outside",
        "one(int)::plain",
        "one(int)::Local::own()::deep",
        "one(int)::in_block",
        "one(int)::further_in",
        "one(int)::Inner::get()::of_inner",
        "one(int)::behind_inner",
        "spaces::in_space",
        "spaces::Whole::get()::of_whole",
        "spaces::Whole::shared",
        "behind_all",
    }


def test_more_kinds_of_entries_than_one_byte_counts(tmp_path: Path) -> None:
    """Half of the variables are thread-local, of kinds that others have too, and some names are written out."""
    count, thread_local = 300, bytes((dw.DW_OP_const1u, 8, dw.DW_OP_form_tls_address))
    variables = [
        Entry(
            "variable",
            (
                ("name", "string", f"v{number}"),
                ("location", "exprloc", At(8 * number + 8) if number % 2 else thread_local),
                *[("decl_column", "data1", 0)] * (number // 2),
            ),
        )
        for number in range(count)
    ]
    path = str(written(tmp_path, unit(*variables)))
    shown = {(variable.name, variable.address, variable.tls_offset) for variable in DebugInfo.open(path).variables()}
    with open(path, "rb") as stream:
        table = ELFFile(stream).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        data = next(symbol["st_value"] for symbol in table.iter_symbols() if symbol.name == "data")
    in_memory = {(f"v{number}", data + 8 * number + 8, None) for number in range(1, count, 2)}
    assert shown == in_memory | {(f"v{number}", None, 8) for number in range(0, count, 2)}


@pytest.mark.parametrize("kept", range(0, 100, 7))
def test_a_damaged_cache_is_none(build: Build, kept: int) -> None:
    path, stored = stored_of(build)
    with pytest.raises(ValueError):
        variable_cache.decode(stored[: len(stored) * kept // 100], path, b"")


def stored_of(build: Build) -> tuple[str, bytes]:
    path = str(build("shapes.c", "-O0", name="shapes.c.so"))
    information = DebugInfo.open(path)
    stored = variable_cache.encode(information.declared, information.reader)
    assert stored is not None
    return path, stored


def reasons(variables: Variables) -> set[str]:
    """Why nothing is known of variables' types; every one says so."""
    types = [variables.types[variable.type] for variable in variables]
    assert len(types) > 10 and all(isinstance(one, Void) and one.reason for one in types)
    return {one.reason for one in types if isinstance(one, Void)}


def test_kept_variables_have_no_types_of_another_file(build: Build) -> None:
    """By the build-id; and a file without one must at least have types where they are said to be."""
    path, stored = stored_of(build)
    other, nameless = (str(build("shapes.f90", "-O0", option, name=f"{option}.so")) for option in ("-O1", "-s"))
    expected = f"{other} is not the file with build-id {build_id_of(path).hex()} any more"
    assert reasons(variable_cache.decode(stored, other, build_id_of(path))) == {expected}
    assert reasons(variable_cache.decode(stored, nameless, b"")) == {
        f"{nameless} is not the file whose variables were kept"
    }
    gone = variable_cache.decode(stored, path + ".gone", build_id_of(path))
    assert reasons(gone) == {f"cannot open {path}.gone, no such file or directory"}


def test_a_program_that_is_built_anew_under_its_name(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked before holds, what is asked of kept variables says why it has no answer, and nothing is mixed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = str(build("shapes.c", "-O0"))
    before = build_id_of(path)
    cold, expected = variable_cache.declared(path, before), described(DebugInfo.open(path).declared)
    warm = variable_cache.declared(path, before)
    build("shapes.f90", "-O0")
    refusal = f"{path} is not the file with build-id {before.hex()} any more"
    assert described(cold) == expected
    assert reasons(warm) == {refusal}
    after = described(variable_cache.declared(path, build_id_of(path)))
    assert after == described(DebugInfo.open(path).declared) != expected
    for one in (tmp_path / "cache").rglob(f"{before.hex()}*"):
        one.unlink()
    with pytest.raises(ObjectFileError, match="any more"):
        variable_cache.declared(path, before)
    assert not list((tmp_path / "cache").rglob(f"{before.hex()}*")), "one file was kept for another"


CUT = """
import sys
from pathlib import Path
from pieglobalsfind.dwarf.debug_info import DebugInfo
from pieglobalsfind.dwarf.type_names import type_name
path, *cut = sys.argv[1:]
information = DebugInfo.open(path)
assert information.root("nothing") is None
for one in cut:
    Path(one).write_bytes(b"")
names = [type_name(information.types, one.type, one.language) for one in information.variables()]
print(len(names), information.line(0x1200), *sorted(names))
"""


def itself(build: Build) -> tuple[Path, list[Path]]:
    path = build("shapes.c", "-O0")
    return path, [path]


def separate(build: Build) -> tuple[Path, list[Path]]:
    path, _ = itself(build)
    debug = path.with_name("built.debug")
    for words in (f"--only-keep-debug {path} {debug}", f"--add-gnu-debuglink={debug} -g {path}"):
        subprocess.run(["objcopy", *words.split()], check=True, timeout=60)
    return path, [path, debug]


def split(build: Build, *options: str) -> tuple[Path, list[Path]]:
    path = build("shapes.c", "-O0", "-gsplit-dwarf", *options)
    return path, [path, *path.parent.rglob("*.dwo")]


def supplementary(build: Build) -> tuple[Path, list[Path]]:
    """As dwz leaves a file: the name of its type is in another one."""
    folder = build("shapes.c").parent
    strings = ['.section .debug_str,"MS",@progbits,1', '.asciz "other", "double [3][4]"']
    other = written(folder, unit(), more=strings, name="other.debug")
    link = f'.asciz "other.debug"\n.byte {", ".join(map(str, build_id_of(str(other))))}'
    told = (("name", "GNU_strp_alt", 6), ("byte_size", "data1", 4), ("encoding", "data1", 5))
    units = unit(entry("variable", name="told", location=At(), type=To("t")), Entry("base_type", told, label="t"))
    path = written(folder, units, more=['.section .gnu_debugaltlink,"",@progbits', link])
    return path, [path, other]


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(itself, id="itself"),
        pytest.param(separate, id="separate"),
        pytest.param(supplementary, id="supplementary"),
        pytest.param(split, id="split"),
        pytest.param(lambda build: split(build, "-gdwarf-4"), id="split-4"),
        pytest.param(lambda build: split(build, "-gz"), id="split-packed"),
        pytest.param(lambda build: split(build, "-dumpdir", f"{build('small.cpp').parent}/"), id="split-absolute"),
    ],
)
def test_a_file_that_is_cut_short_while_it_is_read(
    build: Build, made: Callable[[Build], tuple[Path, list[Path]]]
) -> None:
    """What is mapped of it would be gone, and the process that reads it."""
    path, files = made(build)
    answers = []
    for cut in ([], files):
        command = [sys.executable, "-c", CUT, str(path), *map(str, cut)]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert (run.returncode, run.stderr) == (0, "")
        answers.append(run.stdout)
    assert answers[0] == answers[1] and "double [3][4]" in answers[0]
    assert "split" not in made.__qualname__ or len(files) > 1


def test_split_units_that_are_not_there(build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said which file lacks, and nothing is kept: what it declares comes back with it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path, (_, beside) = split(build)
    content = beside.read_bytes()
    beside.write_bytes(content[:100])
    why = variable_cache.declared_or_why(str(path), build_id_of(str(path)))
    assert isinstance(why, Absent)
    assert why.reason == f"debug information of {path} is in {beside.name}, which can't be read"
    beside.write_bytes(content)
    assert len(variable_cache.declared(str(path), build_id_of(str(path))).variables) > 5


def test_large_files_are_copied_to_the_disk(build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    path, expected = str(build("shapes.c")), described(DebugInfo.open(str(build("shapes.c"))).declared)
    monkeypatch.setattr(private_copy, "LARGEST_IN_MEMORY", 1000)
    copy = private_copy.opened(path)
    assert str(Path(f"/proc/self/fd/{copy}").readlink()).startswith(f"{tmp_path}/")
    os.close(copy)
    assert described(DebugInfo.open(path).declared) == expected


def test_a_file_that_changes_while_it_is_copied(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    path = build("shapes.c")
    send = os.sendfile

    def cut(to: int, source: int, at: int, size: int) -> int:
        path.write_bytes(path.read_bytes()[:5000])
        return send(to, source, at, size)

    monkeypatch.setattr(os, "sendfile", cut)
    with pytest.raises(ObjectFileError, match=r"built\.so is being changed: try again when it is whole"):
        DebugInfo.open(str(path))


def test_addresses_are_found_piece_by_piece(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in one piece, wherever it ends; and none is written to a file that was built anew since."""
    path = str(build("shapes.cpp", "-O0"))
    variables = DebugInfo.open(path).variables()
    expected = set(patched_variable_locations.locations(path, variables))
    assert {location.thread_local for location in expected} == {True, False}
    for piece in (16, 24, 1000):
        monkeypatch.setattr(patched_variable_locations, "PIECE", piece)
        locations = list(patched_variable_locations.locations(path, variables))
        assert len(locations) == len(set(locations)) and set(locations) == expected
    made = patched_variable_locations.PatchedFiles()
    why = Absent("not in this test")
    rank = Rank(0, BLOCKED, 0, 0, why, why, why, why, why, None, why, (), Evidence("registry", "a test"))
    instance = patched_variable_locations.Instance(rank, Object(0, path, b"", 0, 0, 0, (), True, True))
    assert Path(made.view(path, variables, instance, 0)).stat().st_size == Path(path).stat().st_size
    build("shapes.c", "-O0")
    with pytest.raises(OSError, match="has been built again"):
        made.view(path, variables, instance, 0)


@pytest.mark.parametrize("what", ["a pipe", "no program", "a packed one"])
def test_what_is_no_program_is_not_read(tmp_path: Path, what: str) -> None:
    path = tmp_path / "file"
    if what == "a pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(gzip.compress(Path(sys.executable).read_bytes()[:4096]) if what == "a packed one" else b"#!")
    with pytest.raises(ObjectFileError, match="is not a regular file" if what == "a pipe" else "is not an ELF file"):
        DebugInfo.open(str(path))


def test_a_file_without_debug_information_declares_nothing(build: Build) -> None:
    information = DebugInfo.open(str(build("shapes.c", "-s")))
    assert not information.is_there
    assert information.variables() == ()
    assert information.line(0x1000) is None


@pytest.mark.parametrize(
    ("operations", "added"),
    [
        (b"", 0),
        (b"\x23\x04", 4),  # plus_uconst 4
        (b"\x08\x04\x22", 4),  # const1u 4, plus
        (b"\x9f", None),  # stack_value: the address is the value
        (b"\x06", None),  # deref
        (b"\x06\x23\x04\x9f", None),
        (b"\x08\x04\x1c", None),  # const1u 4, minus
        (b"\x93\x04", None),  # piece of 4 bytes
        (b"\x9e\x01\x05", None),  # implicit_value, a byte
        (b"\xa0\0\0\0\0\0", None),  # implicit_pointer
    ],
)
def test_only_what_has_storage_is_a_variable(operations: bytes, added: int | None, tmp_path: Path) -> None:
    """What is computed from an address lies nowhere, and can't be read, compared or audited."""
    probe = written(tmp_path, unit(entry("variable", name="probe", location=At())), name="probe.so")
    (known,) = DebugInfo.open(str(probe)).variables()
    location = b"\x03" + struct.pack("<Q", known.address or 0) + operations
    path = written(tmp_path, unit(entry("variable", name="v", location=location)))
    found = [variable.address for variable in DebugInfo.open(str(path)).variables()]
    assert found == ([] if added is None else [(known.address or 0) + added])
