"""What lies at an offset, and the text that reports are made of, checked against the compiler's own arithmetic."""

from __future__ import annotations

import random
import struct
import subprocess

import pytest

from inspector.pointers.words import words_in
from inspector.terminal.text import byte_count, harmless
from inspector.values.layout import leaves_at, pointer_offsets
from pieglobalsfind.dwarf.debug_info import DebugInfo

SOURCE = """
#include <stddef.h>
#include <stdint.h>
struct __attribute__((packed)) packet { char kind; long *where; int count[3]; };
struct inner { short low; void (*call)(void); };
struct outer { int id; struct inner pairs[2]; union { long whole; long *pointer; } either; struct packet packets[2]; };
struct outer thing[3];
"""


@pytest.fixture(scope="module")
def information(tmp_path_factory: pytest.TempPathFactory) -> DebugInfo:
    folder = tmp_path_factory.mktemp("layout")
    (folder / "layout.c").write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-shared", "-fPIC", "layout.c", "-o", "layout.so"], cwd=folder, check=True, timeout=60)
    return DebugInfo.open(str(folder / "layout.so"))


# offsetof(struct outer, ...) as the System V ABI lays it out: id 0, pairs 8 and 24, either 40, packets 48 and 69
POINTERS = [16, 32, 40, 49, 70]
SIZE = 96


def test_every_pointer_is_found(information: DebugInfo) -> None:
    (thing,) = information.variables()
    assert thing.size == 3 * SIZE
    found = pointer_offsets(information.types, thing.type)
    assert found == [element * SIZE + pointer for element in range(3) for pointer in POINTERS]


@pytest.mark.parametrize(
    ("offset", "paths"),
    [
        (SIZE + 16, ["[1].pairs[0].call"]),
        (SIZE + 40, ["[1].either.whole", "[1].either.pointer"]),
        (2 * SIZE + 49, ["[2].packets[0].where"]),
        (4, []),  # padding, and nothing else in the word's first half
        (57, ["[0].packets[0].count[0]", "[0].packets[0].count[1]"]),
    ],
)
def test_leaves(information: DebugInfo, offset: int, paths: list[str]) -> None:
    (thing,) = information.variables()
    size = 4 if offset == 4 else 8
    assert [leaf.path for leaf in leaves_at(information.types, thing.type, offset, size)] == paths


def test_words_are_found_at_every_byte() -> None:
    chosen = random.Random(7)
    low, high = 0x7F12FFFF0000, 0x7F1300400000  # spans a change of the common high bytes
    data = bytearray(chosen.randbytes(4000))
    planted = {}
    for number, offset in enumerate(range(16, 3900, 97)):
        planted[offset] = (low, high, chosen.randrange(low, high))[min(number, 2)]
        data[offset : offset + 8] = struct.pack("<Q", planted[offset])
    expected = {
        offset: value
        for offset in range(len(data) - 7)
        if low <= (value := struct.unpack_from("<Q", data, offset)[0]) <= high
    }
    assert planted.items() <= expected.items()
    assert dict(words_in(bytes(data), [(low, high)])) == expected


def test_text_of_a_target_is_harmless() -> None:
    assert harmless("a\x1b[31mb\u202ec\n") == "a\\033[31mb\\u202ec\\012"
    assert harmless("x" * 500) == "x" * 400 + "..."


def test_sizes() -> None:
    assert [byte_count(one) for one in (0, 999, 1000, 1_234_567)] == ["0 B", "999 B", "1.0 KB", "1.2 MB"]
