"""Functions that are kept of a file: the same answers at the second look, and never those of another content."""

from __future__ import annotations

import subprocess
from pathlib import Path

from pieglobalsfind.dwarf.cfi import CodeFile
from pieglobalsfind.dwarf.lines import KIND

SOURCE = """
namespace outer {
struct Box { int value; int twice() const; };
int Box::twice() const { return 2 * value; }
int NAME(int given) { Box box{given}; return box.twice() + 1; }
}
template <class T> __attribute__((noinline)) T thrice(T given) { return given + given + given; }
int main(int count, char **) { return outer::NAME(count) + thrice(count) + (int)thrice(1.5); }
"""


def built(program: Path, name: str) -> Path:
    source = program.with_suffix(".cpp")
    source.write_text(SOURCE)
    subprocess.run(["g++", "-g", "-O0", f"-DNAME={name}", source, "-o", program], check=True, timeout=120)
    return program


def symbols(program: Path) -> dict[int, str]:
    """The functions of the program's own source by address, as nm has them, without parameters."""
    listed = subprocess.run(["nm", "-C", program], capture_output=True, text=True, check=True, timeout=60).stdout
    rows = [line.split(" ", 2) for line in listed.splitlines() if line[17:19] in ("T ", "t ", "W ")]
    names = ("outer::", "main", "thrice", "int thrice", "double thrice")
    return {int(at, 16): name for at, _, name in rows if name.startswith(names)}


def functions(program: Path) -> dict[int, str]:
    """The same by debug information."""
    code = CodeFile(str(program))
    return {at: calls[-1].function for at in symbols(program) if (calls := code.calls(at))}


def kept(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if f".{KIND}" in path.name)


def test_the_second_look_gives_what_the_first_gave(tmp_path: Path) -> None:
    program = built(tmp_path / "program", "first")
    cache = tmp_path / "cache"
    assert kept(cache) == []
    names = functions(program)
    assert len(names) == 5 and {"main", "outer::Box::twice", "outer::first"} <= set(names.values())
    for at, symbol in symbols(program).items():
        assert names[at].partition("<")[0] in symbol
    (entry,) = kept(cache)
    whole = entry.read_bytes()
    assert functions(program) == names and entry.read_bytes() == whole
    entry.write_bytes(whole[:-9])
    assert functions(program) == names and entry.read_bytes() == whole


def test_another_content_is_read_anew(tmp_path: Path) -> None:
    program = built(tmp_path / "program", "first")
    assert "outer::first" in functions(program).values()
    built(program, "second")
    names = set(functions(program).values())
    assert "outer::second" in names and "outer::first" not in names
