"""Debug information in which one thing leads to the next without an end, or far away."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pieglobalsfind.dwarf import lines
from pieglobalsfind.dwarf import variables as dwarf_variables
from pieglobalsfind.dwarf.argument_locations import ArgumentReader
from pieglobalsfind.dwarf.cfi import CodeFile
from pieglobalsfind.dwarf.debug_info import DebugInfo
from pieglobalsfind.dwarf.libdw.bindings import LONGEST_STRING, Die
from pieglobalsfind.dwarf.libdw.die_reader import Reader
from pieglobalsfind.dwarf.nested_types import MOST_LEVELS
from pieglobalsfind.dwarf.type_names import type_name
from pieglobalsfind.dwarf.types import Base, Struct, TypeTable, Variable, Void, by_value
from tests.pieglobalsfind.dwarf.writer import C_PLUS_PLUS, At, Entry, To, entry, unit, written

UNITS = 60
DEEP = 90  # two such nests within one another are no deeper than what is walked


def test_functions_are_named_by_types_of_the_next_unit(tmp_path: Path) -> None:
    """They have no linkage names, as functions of local classes have none: parameters are part of their names."""
    units = [
        unit(
            entry("namespace", name="app", children=[entry("structure_type", f"s{number}", name=f"S{number}")]),
            entry(
                "subprogram",
                name=f"f{number}",
                children=[
                    entry("formal_parameter", type=To(f"s{(number + 1) % UNITS}")),
                    entry("variable", name="calls", type=To(f"s{number}"), location=At(8 * number)),
                ],
            ),
        )
        for number in range(UNITS)
    ]
    variables = DebugInfo.open(str(written(tmp_path, *units))).variables()
    assert [one.name for one in variables] == [
        f"f{number}(app::S{(number + 1) % UNITS})::calls" for number in range(UNITS)
    ]


def test_functions_within_one_another(tmp_path: Path) -> None:
    """Each is declared in the one that names it; nobody can tell which is the outermost."""
    functions = [
        entry(
            "subprogram",
            f"f{number}",
            specification=To(f"d{(number + 1) % UNITS}"),
            children=[
                entry("subprogram", f"d{number}", name=f"d{number}"),
                entry("variable", name=f"v{number}", location=At(8 * number)),
            ],
        )
        for number in range(UNITS)
    ]
    variables = DebugInfo.open(str(written(tmp_path, unit(*functions)))).variables()
    assert [one.name.rpartition("::")[2] for one in variables] == [f"v{number}" for number in range(UNITS)]
    assert all("...::" in one.name for one in variables)


def nested(tag: str, innermost: Entry) -> Entry:
    """Each entry says that its own first child follows it: going through all that follows never ends."""
    inner = Entry(innermost.tag, innermost.attributes, innermost.children, f"{tag}{DEEP}")
    for level in range(DEEP, 0, -1):
        inner = Entry(tag, (("sibling", "ref4", To(f"{tag}{level}")),), (inner,), f"{tag}{level - 1}")
    return inner


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[Die]:
    """Every DIE that is gone to, at most some thousand."""
    passed: list[Die] = []
    children = Reader.children

    def counted(self: Reader, die: Die) -> Iterator[Die]:
        for child in children(self, die):
            passed.append(child)
            assert len(passed) < 20 * DEEP, "the walk does not end"
            yield child

    monkeypatch.setattr(Reader, "children", counted)
    return passed


def test_what_follows_is_what_is_inside(tmp_path: Path, steps: list[Die]) -> None:
    place, size = ("low_pc", "addr", At()), ("high_pc", "udata", 64)
    variable = entry("variable", name="innermost", location=At(8))
    function = Entry("subprogram", (("name", "string", "work"), place, size), (nested("lexical_block", variable),))
    units = [
        Entry("compile_unit", (("language", "udata", C_PLUS_PLUS), place, size), (nested("namespace", function),)),
        unit(nested("structure_type", variable)),
    ]
    path = str(written(tmp_path, *units))
    information = DebugInfo.open(path)
    variables = information.variables()
    assert [one.name.rpartition("::")[2] for one in variables] == ["innermost"] * 2
    data = (variables[0].address or 0) - 8
    assert steps_of(steps) > 2 * DEEP
    assert information.function(data + 1) == "work"
    assert steps_of(steps) > DEEP
    assert information.root("struct missing") is None
    assert steps_of(steps) > DEEP
    assert ArgumentReader(CodeFile(path)).passed(data + 1) == {}
    assert steps_of(steps) > DEEP


def steps_of(passed: list[Die]) -> int:
    """How many steps the last question took."""
    count = len(passed)
    passed.clear()
    return count


INT = entry("base_type", "int", name="int", byte_size=4, encoding=5)


def variable(*parts: Entry, type_of: To, folder: Path) -> tuple[TypeTable, Variable]:
    """A variable of that type, in a unit of these parts."""
    path = written(folder, unit(INT, *parts, entry("variable", name="v", type=type_of, location=At(8))))
    information = DebugInfo.open(str(path))
    (found,) = information.variables()
    return information.types, found


def test_a_function_that_takes_two_of_its_own_type_has_a_name(tmp_path: Path) -> None:
    """Spelled out, there would be 2 ** 40 of them."""
    parameter = entry("formal_parameter", type=To("f"))
    function = entry("subroutine_type", "f", type=To("f"), children=[parameter, parameter])
    types, found = variable(function, entry("pointer_type", "p", type=To("f")), type_of=To("p"), folder=tmp_path)
    assert 100 < len(type_name(types, found.type)) < 100_000


def test_a_bit_field_of_a_type_that_names_itself(tmp_path: Path) -> None:
    member = entry("member", name="m", type=To("t"), bit_size=3, bit_offset=4)
    parts = entry("typedef", "t", name="t", type=To("t")), entry("structure_type", "s", byte_size=8, children=[member])
    types, found = variable(*parts, type_of=To("s"), folder=tmp_path)
    struct = types.strip(found.type)
    assert isinstance(struct, Struct)
    assert isinstance(types.strip(struct.members[0].type), Void)


@pytest.mark.parametrize(
    "outside",
    [
        entry("member", name="m", type=To("int"), data_member_location=-1),
        entry("member", name="m", type=To("int"), data_member_location=9),
        entry("member", name="m", type=To("int"), bit_size=9, data_bit_offset=56),
        entry("member", name="m", type=To("int"), bit_size=3, data_bit_offset=-3),
        entry("member", name="m", type=To("int"), bit_size=1 << 40, data_bit_offset=0),
    ],
)
def test_members_outside_of_what_holds_them(tmp_path: Path, outside: Entry) -> None:
    children = [outside, entry("member", name="sound", type=To("int"))]
    types, found = variable(
        entry("structure_type", "s", byte_size=8, children=children), type_of=To("s"), folder=tmp_path
    )
    struct = types.strip(found.type)
    assert isinstance(struct, Struct)
    assert [(member.name, member.offset, member.bit_size) for member in struct.members] == [
        ("m", 0, 0),
        ("sound", 0, 0),
    ]
    assert [types[member.type] for member in struct.members] == [
        Void(reason="it lies outside the type that contains it"),
        Base("int", 4, "signed"),
    ]


def test_a_type_in_the_header_of_a_unit(tmp_path: Path) -> None:
    types, found = variable(type_of=To("unit0", 6), folder=tmp_path)
    assert (types[found.type], found.size) == (Void(reason="its offset is outside the types"), 0)


def test_arrays_of_very_many_dimensions(tmp_path: Path) -> None:
    dimension = entry("subrange_type", upper_bound=1 << 62)
    array = entry("array_type", "a", type=To("int"), children=[dimension] * 1_000)
    types, found = variable(array, type_of=To("a"), folder=tmp_path)
    assert types[found.type] == Void(reason="it is an array of too many dimensions")


def test_no_array_has_fewer_elements_than_none(tmp_path: Path) -> None:
    array = entry("array_type", "a", type=To("int"), children=[entry("subrange_type", count=-5)])
    types, found = variable(array, type_of=To("a"), folder=tmp_path)
    assert (type_name(types, found.type), found.size) == ("int []", 0)


@pytest.mark.parametrize("tag", ["typedef", "structure_type"])
def test_types_deep_within_one_another(tmp_path: Path, tag: str) -> None:
    """Whoever goes through a type level by level, as all do, comes to its end."""
    deep = 2 * MOST_LEVELS + 50
    types = [INT]
    for number in range(1, deep):
        inner = To("int" if number == 1 else f"t{number - 1}")
        if tag == "typedef":
            types.append(entry(tag, f"t{number}", name="t", type=inner))
        else:
            member = entry("member", name="m", type=inner)
            types.append(entry(tag, f"t{number}", name="t", byte_size=4, children=[member]))
    variables = [
        entry("variable", name="v", type=To(f"t{number}"), location=At(8 * number)) for number in range(1, deep)
    ]
    information = DebugInfo.open(str(written(tmp_path, unit(*types, *variables))))
    found = information.variables()
    levels = [levels_of(information.types, one.type) for one in found]
    assert len(found) == deep - 1
    assert levels[:100] == list(range(2, 102))
    assert max(levels) <= MOST_LEVELS + 1


def levels_of(types: TypeTable, index: int) -> int:
    inside = by_value(types[index])
    return 1 + max((levels_of(types, inner) for inner in inside), default=0)


@pytest.mark.parametrize("option", ["", "--compress-debug-sections"])
def test_a_name_that_does_not_end(tmp_path: Path, option: str) -> None:
    """What lies behind the section is none of it, and may not even be there."""
    variables = [
        entry("variable", name=to, type=To(to), location=At(8 * at)) for at, to in enumerate(("whole", "open"))
    ]
    types = [
        Entry("base_type", (("byte_size", "udata", 4), ("name", "string", name)), (), label)
        for label, name in (("whole", b"int\0"), ("open", b"float"))
    ]
    path = written(tmp_path, unit(*variables), *types)
    if option:
        subprocess.run(["objcopy", option, path.name], check=True, cwd=tmp_path, timeout=60)
    information = DebugInfo.open(str(path))
    names = {one.name: type_name(information.types, one.type) for one in information.variables()}
    assert names == {"whole": "int", "open": "?"}


@pytest.mark.parametrize("most", [1 << 28, 100_000])
def test_names_of_very_much_around_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """A hundred long names around each of a hundred variables: a small file must not fill the memory."""
    monkeypatch.setattr(dwarf_variables, "MOST_TEXT", most)
    inner = [
        entry("namespace", name=f"n{number}", children=[entry("variable", name="v", location=At(8 * number))])
        for number in range(1, 101)
    ]
    for _ in range(100):
        inner = [entry("namespace", name="x" * LONGEST_STRING, children=inner)]
    outer = entry("namespace", name="app", children=[entry("variable", name="plain", location=At())])
    names = [one.name for one in DebugInfo.open(str(written(tmp_path, unit(outer, *inner)))).variables()]
    assert names[0] == ("app::plain" if most > 100_000 else "...::plain")
    assert all(name.endswith("::v") and "...::" in name for name in names[1:])
    assert sum(map(len, names)) < min(most, 100 * 3 * LONGEST_STRING)


def test_units_and_functions_that_all_have_the_same_long_list_of_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MOST_RANGES", 5_000)
    read: list[tuple[int, int]] = []
    ranges = Reader.ranges

    def counted(self: Reader, die: Die, limit: int = 100_000) -> Iterator[tuple[int, int]]:
        for one in ranges(self, die, limit):
            read.append(one)
            yield one

    monkeypatch.setattr(Reader, "ranges", counted)
    lists = ('.section .debug_ranges,"",@progbits', ".rept 1000", ".quad data + 8, data + 16", ".endr", ".quad 0, 0")
    same = ("ranges", "sec_offset", 0)
    units = [
        Entry("compile_unit", (same,), (Entry("subprogram", (("name", "string", f"f{number}"), same)),))
        for number in range(100)
    ]
    path = written(tmp_path, *units, unit(entry("variable", name="v", location=At())), more=lists)
    information = DebugInfo.open(str(path))
    (found,) = information.variables()
    information.function((found.address or 0) + 8)
    assert 5_000 < len(read) < 6_000
