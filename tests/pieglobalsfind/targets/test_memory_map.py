"""Parts of a /proc/PID/maps against all of its lines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pieglobalsfind.memory_map import ProcMaps, mapping_at, of_files
from pieglobalsfind.targets import procmap_query
from pieglobalsfind.targets.procmap_query import StandingMaps

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
    edges = {
        0,
        1 << 63,
        *(at for mapping in whole for at in (mapping.start - 1, mapping.start, mapping.end - 1, mapping.end)),
    }
    for address in edges:
        assert mapping_at(ProcMaps(text), address) == mapping_at(whole, address), hex(address)
    for part in ("/", "[", "a b/c\nd", "\udcff", "x (deleted)", "0", "nowhere"):
        assert of_files(ProcMaps(text), part) == of_files(whole, part), part


@pytest.fixture
def standing() -> Iterator[Path]:
    """The memory map of a process that stands still, with a file of a strange name mapped."""
    script = (
        "import mmap, os, signal, tempfile\n"
        "file = tempfile.NamedTemporaryFile(prefix='a \\n\\udcff')\n"
        "file.write(bytes(8192)); file.flush()\n"
        "held = mmap.mmap(file.fileno(), 4096, offset=4096), mmap.mmap(-1, 4096)\n"
        "os.kill(os.getpid(), signal.SIGSTOP)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script])
    try:
        os.waitpid(process.pid, os.WUNTRACED)
        yield Path(f"/proc/{process.pid}/maps")
    finally:
        process.send_signal(signal.SIGCONT)
        process.wait()


def test_the_kernel_answers_what_its_file_says(standing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked mapping by mapping, where it can be; else, and where files are too many, the file is read."""
    whole = list(ProcMaps(standing.read_bytes()))
    edges = {
        0,
        1 << 64,
        -1,
        *(at for mapping in whole for at in (mapping.start - 1, mapping.start, mapping.end - 1, mapping.end)),
    }
    reads: list[Path] = []

    def asked(path: Path) -> StandingMaps:
        reads.clear()

        def read() -> bytes:
            reads.append(path)
            return standing.read_bytes()

        return StandingMaps(str(path), read)

    assert any("a \n\udcff" in mapping.path for mapping in whole)
    for address in edges:
        assert asked(standing).at(address) == mapping_at(whole, address), hex(address)
    for part in ("/", "a \n\udcff", "/memfd", "nowhere"):
        assert asked(standing).of_files(part) == of_files(whole, part), part
    no_answers = tmp_path / "maps"  # as of a kernel that does not know the question
    no_answers.write_bytes(standing.read_bytes())
    assert asked(no_answers).of_files("/") == of_files(whole, "/") and reads
    assert asked(no_answers).at(whole[3].start) == whole[3] and reads
    monkeypatch.setattr(procmap_query, "MOST_QUERIES", 3)
    assert asked(standing).of_files("/") == of_files(whole, "/") and reads
    assert list(asked(standing)) == whole
