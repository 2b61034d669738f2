"""Parts of a /proc/PID/maps against all of its lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from pieglobalsfind.memory_map import ProcMaps, mapping_at, naming

ODD = (
    b"00400000-00401000 r-xp 00001000 08:01 42                         /a b/c\\012d \xff (deleted)\n"
    b"00401000-00402000 r--p 00001000 08:01 42                         /a\n"
    b"00500000-00501000 rw-s 00000000 00:01 7                          /memfd:x (deleted)\n"
    b"00600000-00601000 ---p 00000000 00:00 0 \n"
    b"what is this?\n"
    b"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]"
)


@pytest.mark.parametrize("text", [ODD, ODD.replace(b"what is this?\n", b""), b"", Path("/proc/self/maps").read_bytes()])
def test_what_is_asked_for_is_what_all_lines_tell(text: bytes) -> None:
    whole = list(ProcMaps(text))
    assert list(ProcMaps(text).one_by_one()) == whole and len(ProcMaps(text)) == len(whole)
    edges = {0, 1 << 63, *(at for one in whole for at in (one.start - 1, one.start, one.end - 1, one.end))}
    for address in edges:
        assert mapping_at(ProcMaps(text), address) == mapping_at(whole, address), hex(address)
    for part in ("/", "[", "a b/c\nd", "\udcff", "x (deleted)", "0", "nowhere"):
        assert naming(ProcMaps(text), part) == naming(whole, part), part
