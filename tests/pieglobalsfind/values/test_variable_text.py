"""Values decoded from a process's bytes are those that GDB prints of the same process."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from pieglobalsfind.dwarf.debug_info import DebugInfo
from pieglobalsfind.dwarf.types import Variable
from pieglobalsfind.errors import MemoryUnreadable
from pieglobalsfind.values.surroundings import Surroundings, VariableBytes
from pieglobalsfind.values.variable_text import decode
from tests.support.running import ROOT, StartJob

SOURCES = ROOT / "tests" / "inspector" / "sources"
COMPILERS = {".c": "gcc", ".cpp": "g++", ".f90": "gfortran"}
LANGUAGES = {".c": "c", ".cpp": "c++", ".f90": "fortran"}
NAMES = ("values.c", "values.cpp", "values.f90", "rare.c", "rare.cpp", "rare.f90")
LEVELS = ("-O0", "-O2", "-O0 -gdwarf-4 -fdebug-types-section")
# DWARF 2 has neither namespaces nor bounds that are computed
CASES = [*product(NAMES, LEVELS), *product(("values.c", "rare.c", "rare.cpp"), ["-O0 -gdwarf-2 -gstrict-dwarf"])]

ASK = """
import gdb, json
gdb.execute("set language " + LANGUAGE)
gdb.execute("set max-value-size unlimited")
answers = {}
for name in json.load(open("names.json")):
    try:
        answers[name] = gdb.parse_and_eval(name).format_string()
    except gdb.error as error:
        answers[name] = "UNKNOWN" if "has unknown type" in str(error) else str(error)
json.dump(answers, open("values.json", "w"))
"""


def values_by_gdb(gdb: Path, pid: int, folder: Path, language: str, names: list[str]) -> dict[str, str]:
    (folder / "ask.py").write_text(f"LANGUAGE = {language!r}\n{ASK}")
    (folder / "names.json").write_text(json.dumps(names))
    command = [str(gdb), "-nx", "-batch", "-p", str(pid), "-x", "ask.py"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert (folder / "values.json").exists(), run.stderr
    answers: dict[str, str] = json.loads((folder / "values.json").read_text())
    return answers


def reader(pid: int) -> Callable[[int, int], bytes]:
    def read(address: int, size: int) -> bytes:
        with open(f"/proc/{pid}/mem", "rb") as memory:
            memory.seek(address)
            try:
                data = memory.read(size)
            except OSError:
                data = b""
        if len(data) != size:
            raise MemoryUnreadable(address, size)
        return data

    return read


def load_bias(pid: int, binary: Path) -> int:
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        if line.endswith(str(binary)):
            return int(line.partition("-")[0], 16)
    raise AssertionError("the program is not mapped")


def comparable(text: str) -> str:
    """Without the symbols that GDB puts after addresses, and without the address of a string."""
    text = re.sub(r"0x[0-9a-f]+ (?=\")", "", text)
    text = re.sub(r"(0x[0-9a-f]+) <[^>]*>", r"\1", text)
    text = re.sub(r"\([^()]*\(app::Derived \* const\)\)|\(int app::Base::\*\) ?", "", text)
    return re.sub(r"_vptr\.\w+", "_vptr", text)


def is_raw(value: str) -> bool:
    """Bytes alone: what a debugger has no way to show."""
    return re.fullmatch(r"0x[0-9a-f]+|<[0-9]+ bytes: [0-9a-f ]+>", value) is not None


@pytest.mark.parametrize(("source", "level"), CASES)
def test_same_as_gdb(source: str, level: str, tmp_path: Path, gdb: Path, start_job: StartJob) -> None:
    binary = tmp_path / "values"
    kind = Path(source).suffix
    command = [COMPILERS[kind], "-g", *level.split(), "-fPIE", "-pie", str(SOURCES / source), "-o", str(binary)]
    subprocess.run(command, check=True, cwd=tmp_path, timeout=120)
    job = start_job(binary)
    job.wait_for("ready")
    information = DebugInfo.open(str(binary))
    bias, read = load_bias(job.pid, binary), reader(job.pid)

    def ours(variable: Variable) -> str:
        address = (variable.address or 0) + bias
        around = Surroundings(information.types, variable.language, read, hex)
        return decode(around, variable.type, VariableBytes(address, read(address, variable.size)))

    found = {variable.name: ours(variable) for variable in information.variables() if "::__" not in variable.name}
    expected = values_by_gdb(gdb, job.pid, tmp_path, LANGUAGES[kind], list(found))
    assert len(found) >= 5
    wrong = {
        name: (value, expected[name])
        for name, value in found.items()
        if (comparable(value) != comparable(expected[name]) if expected[name] != "UNKNOWN" else not is_raw(value))
    }
    assert not wrong, json.dumps(wrong, indent=1)
