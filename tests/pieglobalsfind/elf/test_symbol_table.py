"""Names of addresses against binutils: every symbol of system libraries and of the runtime, and chosen small files."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from pieglobalsfind.dwarf.cfi import without_parameters
from pieglobalsfind.elf.demangle import demangle
from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.elf.symbol_table import FileSymbol, Symbols, SymbolTable, read_symbols
from tests.support.elf_files import library
from tests.support.fabricate.elf_file import Symbol, shared_object
from tests.support.running import ROOT
from tests.support.steps import steps_of

LOCAL, GLOBAL, WEAK = 0, 16, 32
NOTYPE, OBJECT, FUNC, TLS = 0, 1, 2, 6


def table_of(tmp_path: Path, *symbols: Symbol) -> SymbolTable:
    path = tmp_path / "fabricated"
    path.write_bytes(shared_object(symbols))
    with ElfFile(str(path)) as elf:
        return read_symbols(elf).addresses


def name_at(table: SymbolTable, place: int) -> str:
    file_symbol = table.at(place)
    return file_symbol.name if file_symbol is not None else ""


def nm(path: Path, *options: str) -> list[tuple[int, int, str, str]]:
    """(start, size, kind, name) of what is defined and has a size, as binutils' nm lists it."""
    command = ["nm", "-S", "--defined-only", *options, str(path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    rows = (line.split(maxsplit=3) for line in output.splitlines())
    return [(int(row[0], 16), int(row[1], 16), row[2], row[3].partition("@")[0]) for row in rows if len(row) == 4]


def tls_names(path: Path) -> set[str]:
    command = ["readelf", "-sW", str(path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    rows = (line.split() for line in output.splitlines())
    return {row[7].partition("@")[0] for row in rows if len(row) > 7 and row[3] == "TLS"}


@pytest.mark.parametrize("name", ["libc.so.6", "libstdc++.so.6", "libm.so.6", "libgfortran.so.5", "librankmpi.so"])
def test_every_symbol_as_nm_has_it(name: str) -> None:
    """At the first byte, in the middle, at the last byte and behind the end of every symbol."""
    path = ROOT / "build/runtime/lib" / name if name == "librankmpi.so" else library(name)
    with ElfFile(str(path)) as elf:
        options = [] if elf.section(".symtab") else ["-D"]
        symbols = read_symbols(elf)
    thread_local = tls_names(path)
    rows = sorted(row for row in nm(path, *options) if row[3] not in thread_local and row[2] not in "A")
    assert len(rows) > 200
    by_start = Covering(rows)
    for start, size, _, _ in rows:
        for place in {start, start + size // 2, start + size - 1, start + size} if size else {start}:
            expected = by_start.names(place)
            found = name_at(symbols.addresses, place)
            assert found in expected if expected else found == "" or has_no_size(symbols, place), hex(place)


def has_no_size(symbols: Symbols, place: int) -> bool:
    file_symbol = symbols.addresses.at(place)
    return file_symbol is not None and file_symbol.size == 0


class Covering:
    """The names of the innermost symbols over a place, found the slow and simple way in a window of neighbours."""

    def __init__(self, rows: Sequence[tuple[int, int, str, str]]) -> None:
        self._rows = rows
        self._largest = max(size for _, size, _, _ in rows)

    def names(self, place: int) -> set[str]:
        from bisect import bisect_left, bisect_right

        low = bisect_left(self._rows, (place - self._largest,))
        high = bisect_right(self._rows, (place + 1,))
        over = [row for row in self._rows[low:high] if row[0] <= place < row[0] + row[1]]
        innermost = max((row[0] for row in over), default=0)
        return {row[3] for row in over if row[0] == innermost}


def test_lookups_are_quick() -> None:
    """By the instructions that they take: some hundreds for each symbol that is read, a few for a lookup."""
    symbolses: list[Symbols] = []
    with ElfFile(str(library("libstdc++.so.6"))) as elf:
        count = len(nm(library("libstdc++.so.6"), "-D"))
        assert count > 5000
        assert steps_of(lambda: symbolses.append(read_symbols(elf))) < 1000 * count
    table, places = symbolses[0].addresses, range(0x90000, 0x90000 + 10_000)
    assert steps_of(lambda: [table.at(place) for place in places]) < 100 * len(places)


def test_best_of_one_place(tmp_path: Path) -> None:
    """Global before local before weak; a type before none; a size before none."""
    names = [
        Symbol("weak", 0x1000, 32, WEAK | FUNC),
        Symbol("local", 0x1000, 32, LOCAL | FUNC),
        Symbol("best", 0x1000, 32, GLOBAL | FUNC),
        Symbol("untyped", 0x1000, 32, GLOBAL | NOTYPE),
        Symbol("unsized", 0x1000, 0, GLOBAL | FUNC),
    ]
    for order in (names, names[::-1]):
        assert name_at(table_of(tmp_path, *order), 0x1008) == "best"
    assert name_at(table_of(tmp_path, *names[:2]), 0x1000) == "local"


def test_a_size_is_respected(tmp_path: Path) -> None:
    table = table_of(tmp_path, Symbol("f", 0x1000, 16), Symbol("g", 0x1100, 16))
    assert [name_at(table, place) for place in (0xFFF, 0x1000, 0x100F, 0x1010, 0x1100, 0x1110)] == [
        "", "f", "f", "", "g", "",
    ]  # fmt: skip


def test_nested_symbols(tmp_path: Path) -> None:
    """Behind a part, the whole goes on; a name without size within a function is not an end of it."""
    table = table_of(
        tmp_path,
        Symbol("whole", 0x1000, 0x100),
        Symbol("part", 0x1010, 0x10),
        Symbol("label", 0x1030, 0, LOCAL | NOTYPE),
    )
    assert [name_at(table, place) for place in (0x1008, 0x1018, 0x1020, 0x1030, 0x10FF, 0x1100)] == [
        "whole", "part", "whole", "whole", "whole", "",
    ]  # fmt: skip


def test_no_size_reaches_to_the_next_or_the_section_end(tmp_path: Path) -> None:
    table = table_of(
        tmp_path, Symbol("a", 0x1000, 0), Symbol("b", 0x1100, 0), Symbol("data", 0x2000, 8, GLOBAL | OBJECT, 2)
    )
    assert [name_at(table, place) for place in (0x1000, 0x10FF, 0x1100, 0x1FFF, 0x2007, 0x2008)] == [
        "a", "a", "b", "b", "data", "",
    ]  # fmt: skip


def test_linkers_marks_name_nothing(tmp_path: Path) -> None:
    table = table_of(
        tmp_path, Symbol("__bss_start", 0x2000, 0, GLOBAL | NOTYPE, 2), Symbol("_end", 0x2010, 0, GLOBAL, 2)
    )
    assert name_at(table, 0x2004) == ""


def test_thread_local_ones_are_apart(tmp_path: Path) -> None:
    path = tmp_path / "fabricated"
    path.write_bytes(shared_object((Symbol("inside", 0x1000, 8, GLOBAL | TLS), Symbol("f", 0x1000, 8))))
    with ElfFile(str(path)) as elf:
        symbols = read_symbols(elf)
    assert symbols.tls.at(0x1004) == FileSymbol("inside", 0x1000, 8)
    assert name_at(symbols.addresses, 0x1004) == "f"


def test_kept_as_bytes(tmp_path: Path) -> None:
    with ElfFile(str(library("libstdc++.so.6"))) as elf:
        symbols = read_symbols(elf)
    again = Symbols.decode(symbols.encode())
    for place in range(0x90000, 0x1A0000, 61):
        assert again.addresses.at(place) == symbols.addresses.at(place)
    encoded = symbols.encode()
    for damaged in (b"", encoded[:7], encoded[:100], encoded[:-1], encoded + b"x", b"\xff" * 64):
        with pytest.raises(ValueError, match="no symbols"):
            Symbols.decode(damaged)


def test_demangled_as_cxxfilt_does() -> None:
    with ElfFile(str(library("libstdc++.so.6"))) as elf:
        names = [row[3] for row in nm(Path(elf.path), "-D") if row[3].startswith("_Z")]
    output = subprocess.run(
        ["c++filt", "--no-verbose"], input="\n".join(names), capture_output=True, text=True, check=True, timeout=60
    )
    assert len(names) > 2000
    # both demanglers are GNU's, of different ages: allow for the few names that newer ones write otherwise
    differ = [
        (name, ours, theirs)
        for name, theirs in zip(names, output.stdout.splitlines())
        if (ours := demangle(name)) != theirs
    ]
    assert len(differ) <= len(names) // 500, differ[:5]


@pytest.mark.parametrize(
    ("linkage", "written"),
    [
        ("main", "main"),
        ("solve_", "solve_"),
        ("__fields_MOD_step", "fields::step"),
        ("_ZN3app3runEi", "app::run(int)"),
        ("_Znonsense", "_Znonsense"),
        ("_Z" + "N" * 100_000, "_Z" + "N" * 100_000),
        ("", ""),
    ],
)
def test_names_as_written(linkage: str, written: str) -> None:
    assert demangle(linkage) == written


@pytest.mark.parametrize(
    ("demangled", "name"),
    [
        ("double app::check<double>(double, int)", "app::check<double>"),
        ("void (anonymous namespace)::f<std::vector<int> >(int)", "(anonymous namespace)::f<std::vector<int> >"),
        ("std::enable_if<(3) > (2), int>::type h<3>(int)", "h<3>"),
        ("std::vector<int>::push_back(int&&)", "std::vector<int>::push_back"),
        ("A<int>::operator bool() const", "A<int>::operator bool"),
        ("A::operator()(int)", "A::operator()"),
    ],
)
def test_functions_are_named_as_gdb_does(demangled: str, name: str) -> None:
    """Without parameters, and without the result's type, which linkage names of templates' instances begin with."""
    assert without_parameters(demangled) == name
