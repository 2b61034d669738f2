"""Debug information in which one thing leads to the next without an end, and sound one that leads far."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pieglobalsfind.dwarf import DebugInfo
from pieglobalsfind.dwarf_arguments import ArgumentReader
from pieglobalsfind.dwarf_frames import CodeFile
from pieglobalsfind.dwarf_libdw import Die, Reader
from pieglobalsfind.dwarf_variables import VariableReader
from tests.dwarf.writer import C_PLUS_PLUS, At, Entry, To, entry, unit, written

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
    found = DebugInfo.open(str(written(tmp_path, *units))).variables()
    assert [one.name for one in found] == [f"f{number}(app::S{(number + 1) % UNITS})::calls" for number in range(UNITS)]


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
    found = DebugInfo.open(str(written(tmp_path, unit(*functions)))).variables()
    assert [one.name.rpartition("::")[2] for one in found] == [f"v{number}" for number in range(UNITS)]
    assert all("...::" in one.name for one in found)


def nested(tag: str, innermost: Entry) -> Entry:
    """Each entry says that its own first child follows it: going through all that follows never ends."""
    inner = Entry(innermost.tag, innermost.attributes, innermost.children, f"{tag}{DEEP}")
    for level in range(DEEP, 0, -1):
        inner = Entry(tag, (("sibling", "ref4", To(f"{tag}{level}")),), (inner,), f"{tag}{level - 1}")
    return inner


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[Die]:
    """Every DIE that is gone to, at most some thousand; and none is read as bytes."""
    passed: list[Die] = []
    children = Reader.children

    def counted(self: Reader, die: Die) -> Iterator[Die]:
        for one in children(self, die):
            passed.append(one)
            assert len(passed) < 20 * DEEP, "the walk does not end"
            yield one

    monkeypatch.setattr(Reader, "children", counted)
    monkeypatch.setattr(VariableReader, "bytes_of", lambda self, unit: None)
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
    found = information.variables()
    assert [one.name.rpartition("::")[2] for one in found] == ["innermost"] * 2
    data = (found[0].address or 0) - 8
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
