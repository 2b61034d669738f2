"""Addresses, sizes, types and lines as GDB gives them for the same files; and GDB lists no variable that we miss."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from pieglobalsfind.dwarf.debug_info import DebugInfo
from pieglobalsfind.dwarf.type_names import type_name
from pieglobalsfind.dwarf.types import Variable
from tests.support.shapes import Build

LANGUAGES = {"shapes.c": "c", "shapes.cpp": "c++", "shapes.f90": "fortran"}
SOURCES = tuple(LANGUAGES)
COMPILERS = [
    ("shapes.c", "gcc"),
    ("shapes.c", "clang"),
    ("shapes.cpp", "g++"),
    ("shapes.cpp", "clang++"),
    ("shapes.f90", "gfortran"),
]

ASK = """
import gdb, json
gdb.execute("set language " + LANGUAGE)
questions = json.load(open("questions.json"))
answers = []
for expression in questions["expressions"]:
    try:
        value = gdb.parse_and_eval(expression)
        answers.append([int(value.address), value.type.sizeof, str(value.type)])
    except (gdb.error, TypeError) as error:
        answers.append(str(error))
lines = []
for address in questions["addresses"]:
    place = gdb.find_pc_line(address)
    block = gdb.block_for_pc(address)
    functions = []  # from the inlined ones to the one that holds the code
    while block is not None and not block.is_static and not block.is_global:
        functions += [block.function.name] if block.function else []
        block = block.superblock
    lines.append([place.symtab.filename if place.symtab else None, place.line, functions])
json.dump({"expressions": answers, "lines": lines}, open("answers.json", "w"))
"""


Places = list[tuple[str, int, list[str]]]


def ask(
    gdb: Path, binary: Path, expressions: list[str], addresses: list[int], language: str = "auto"
) -> tuple[list[object], Places]:
    """What GDB says of C expressions and of code addresses, through a file."""
    folder = binary.parent
    (folder / "ask.py").write_text(f"LANGUAGE = {language!r}" + ASK)
    (folder / "questions.json").write_text(json.dumps({"expressions": expressions, "addresses": addresses}))
    command = [str(gdb), "-nx", "-batch", binary.name, "-x", "ask.py"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    answers = json.loads((folder / "answers.json").read_text())
    return answers["expressions"], answers["lines"]


def expression(variable: Variable) -> str:
    """The variable in GDB's own syntax."""
    name = variable.name
    return f"'{name}'" if "(anonymous" in name else name


def comparable(variable: Variable) -> bool:
    """GDB needs a process for thread-locals, and a stopped frame for common blocks and for one of two equal names."""
    hidden = "step::" in variable.name or "::Local::" in variable.name
    return variable.address is not None and variable.storage != "common" and not hidden


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("version", ["4", "5"])
@pytest.mark.parametrize("source", SOURCES)
def test_same_address_size_and_type(build: Build, gdb: Path, source: str, version: str, level: str) -> None:
    binary = build(source, level, f"-gdwarf-{version}")
    information = DebugInfo.open(str(binary))
    variables = [variable for variable in information.variables() if comparable(variable)]
    answers, _ = ask(gdb, binary, [expression(variable) for variable in variables], [], LANGUAGES[source])
    compared = 0
    for variable, answer in zip(variables, answers):
        if "__def_init" in variable.name or "__vtab" in variable.name:
            continue
        if level == "-O2" and variable.storage == "function static" and not isinstance(answer, list):
            continue  # the function is inlined everywhere: GDB has nothing to qualify the name with
        assert isinstance(answer, list), f"GDB on {variable.name}: {answer}"
        if variable.name in ("simdata::field", "simdata::view", "reference"):
            continue  # GDB follows descriptors and references; tests on processes compare those
        name = type_name(information.types, variable.type, variable.language)
        nameless = "{...}" in name
        assert (variable.name, *answer[:2]) == (variable.name, variable.address, variable.size)
        assert nameless or spelled(name) == spelled(str(answer[2]))
        compared += 1
    assert compared >= 9


@pytest.mark.parametrize("source", SOURCES)
def test_gdb_lists_no_variable_that_is_missing(build: Build, gdb: Path, source: str) -> None:
    binary = build(source, "-O0")
    command = [str(gdb), "-nx", "-batch", binary.name, "-ex", "info variables -n"]
    listing = subprocess.run(command, cwd=binary.parent, check=True, capture_output=True, text=True, timeout=120)
    listed = {int(number) for number in re.findall(r"^(\d+):\t", listing.stdout, re.MULTILINE)}
    found = {variable.line for variable in DebugInfo.open(str(binary)).variables()}
    assert len(listed) >= 9
    assert listed <= found


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize(("source", "compiler"), COMPILERS)
def test_same_line_and_function(build: Build, gdb: Path, source: str, level: str, compiler: str) -> None:
    binary = build(source, level, compiler=compiler)
    information = DebugInfo.open(str(binary))
    addresses = code_addresses(binary)
    _, answers = ask(gdb, binary, [], addresses)
    wrong: list[object] = []
    named = 0
    for address, (file, line, functions) in zip(addresses, answers):
        source_line = information.line(address)
        place = (Path(source_line.file).name, source_line.line) if source_line is not None else ("None", 0)
        if place != (Path(str(file)).name, line):
            wrong.append((hex(address), place, file, line))
        function = information.function(address)
        if function is not None and functions:
            assert plain(function) in [plain(function) for function in functions]
            named += 1
    assert named > 20
    # of rows of several files at one address GDB takes the one whose file it met first
    assert len(wrong) <= (len(addresses) // 50 if level == "-O2" and source == "shapes.cpp" else 0), wrong


def plain(function: str) -> str:
    """Without parameters, return type and template arguments, which demanglers and GDB write differently."""
    words = function.replace("(anonymous namespace)::", "")
    while "<" in words and ">" in words:
        words, before = re.sub(r"<[^<>]*>", "", words), words
        if words == before:
            break
    return re.sub(r"\(.*|\[.*", "", words).split(" ")[-1].rpartition("::")[2]


def spelled(name: str) -> str:
    """GDB says `long` and `short` where compilers say `long int` and `short int`; library types differ in detail."""
    return re.sub(r"std::.*", "std", name.replace("long int", "long").replace("short int", "short"))


def code_addresses(binary: Path) -> list[int]:
    """Addresses of instructions in the program's own functions, as objdump lists them."""
    command = ["objdump", "-d", "--no-show-raw-insn", "-j", ".text", binary.name]
    listing = subprocess.run(command, cwd=binary.parent, check=True, capture_output=True, text=True, timeout=120)
    found = [int(one, 16) for one in re.findall(r"^\s+([0-9a-f]+):\t", listing.stdout, re.MULTILINE)]
    return found[:: max(1, len(found) // 300)]
