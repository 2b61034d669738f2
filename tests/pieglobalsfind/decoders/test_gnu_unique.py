"""Variables that the system's loader keeps once for several copies of one file, in a process that has loaded them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pieglobalsfind.decoders.elf_scan import object_of
from pieglobalsfind.decoders.gnu_unique import redirections
from pieglobalsfind.elf.loaded import LoadedElf
from pieglobalsfind.model import Redirect
from pieglobalsfind.targets.live import LiveTarget

SOURCE = """
template <class T> struct Counter { static inline long count[3] = {1, 2, 3}; };
inline int level = 4;
static int own = 5;
long *const pointer = &Counter<int>::count[1]; // a word outside any GOT
extern "C" long *count() { return Counter<int>::count; }
extern "C" int *level_of() { return &level; }
extern "C" int *own_of() { return &own; }
"""
LOADS = """
import ctypes, sys
functions = ("count", "level_of", "own_of")
for path in sys.argv[1:]:
    library = ctypes.CDLL(path)
    for name in functions:
        getattr(library, name).restype = ctypes.c_void_p
    print(*(getattr(library, name)() for name in functions), flush=True)
sys.stdin.read()
"""
COPIES = 3


@pytest.mark.parametrize("options", [(), ("-fno-gnu-unique",)], ids=["unique", "not unique"])
def test_they_are_where_the_code_of_every_copy_finds_them(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "unique.cpp").write_text(SOURCE)
    command = ["g++", "-std=c++17", "-shared", "-fPIC", *options, "unique.cpp", "-o", "0.so"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    paths = [str(tmp_path / f"{number}.so") for number in range(COPIES)]
    for path in paths[1:]:
        shutil.copy(paths[0], path)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", LOADS, *paths], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        truth = [[int(word) for word in process.stdout.readline().split()] for _ in paths]
        target = LiveTarget(process.pid)
        bases = {mapping.path: mapping.start for mapping in reversed(target.maps())}
        copies = {rank: bases[path] for rank, path in enumerate(paths)}
        loaded = LoadedElf(target.read, copies[0])
        elf_object = object_of(0, loaded, paths[0])
        found = redirections(target, elf_object, loaded, copies)
    if options:
        assert len({tuple(one) for one in truth}) == COPIES and found == dict.fromkeys(copies, ())
        return
    assert len({tuple(one[:2]) for one in truth}) == 1 and len({own for _, _, own in truth}) == COPIES
    for rank, (count, level, _) in enumerate(truth):
        assert {redirect.storage for redirect in found[rank]} == {count, level}
        assert {(redirect.original, redirect.size) for redirect in found[rank]} == {(truth[0][0], 24), (truth[0][1], 4)}
        assert all(
            isinstance(redirect, Redirect) and redirect.object == 0 and redirect.is_shared for redirect in found[rank]
        )
        slots = [redirect.got_slot - copies[rank] for redirect in found[rank] if redirect.got_slot]
        assert len(slots) == 2 and all(0 < slot < loaded.span for slot in slots)
