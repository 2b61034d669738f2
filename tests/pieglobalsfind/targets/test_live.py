"""What only a running process can do to us: be another's, end, lose its files, live in another root directory."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
from pathlib import Path

import pytest

from pieglobalsfind.decoders import decode
from pieglobalsfind.errors import MemoryUnreadable, NotVirtualizedError, TargetEndedError, TargetError
from pieglobalsfind.memory_map import ProcMaps
from pieglobalsfind.targets import live
from pieglobalsfind.targets.live import LiveTarget
from tests.support.held import Held, build, end, start
from tests.support.inspector.faults_around import no_rights
from tests.support.running import ROOT
from tests.support.waiting import wait_until

NOBODY = 65534


def test_no_process() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    for pid in (child.pid, 0, -1, 1 << 40):
        with pytest.raises(TargetError, match=f"there is no process {pid}"):
            LiveTarget(pid)


def test_a_zombie() -> None:
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None and child.stdout is not None
    child.stdin.close()
    assert child.stdout.read() == b""  # it has closed its output: it has ended, or is about to
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    try:
        with pytest.raises(TargetError, match="has ended, its parent"):
            LiveTarget(child.pid)
    finally:
        child.wait()
        child.stdout.close()


def test_a_kernel_thread() -> None:
    if not Path("/proc/2").exists():
        pytest.skip("this PID namespace shows no kernel threads")
    with pytest.raises(TargetError, match=r"kernel thread|no permission"):
        LiveTarget(2)


def test_a_process_that_has_ended_is_not_said_to_have_no_ranks(held: Held) -> None:
    target = LiveTarget(held.pid)
    with pytest.raises(NotVirtualizedError):
        decode(target)
    held.process.kill()
    wait_until(lambda: state_of(held.pid) == "Z", "the process does not end")
    with pytest.raises(TargetEndedError):
        decode(target)


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_it_ends_while_we_look(held: Held) -> None:
    target = LiveTarget(held.pid)
    held.process.kill()
    held.process.wait()
    for ask in (target.maps, target.threads, lambda: target.read(held.places["data"], 4)):
        with pytest.raises(TargetError, match=f"process {held.pid} has ended"):
            ask()


def test_no_permission(held: Held) -> None:
    """Another account's process: one sentence that says how to allow it."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another account")
    code = "import sys; sys.path.insert(0, sys.argv[1]); from pieglobalsfind.targets.live import LiveTarget\n"
    code += "from pieglobalsfind.errors import TargetError\ntry: LiveTarget(int(sys.argv[2]))\n"
    code += "except TargetError as error: print(error)"
    command = ["/usr/bin/python3", "-c", code, str(ROOT), str(held.pid)]
    done = subprocess.run(command, user=NOBODY, group=NOBODY, cwd="/", capture_output=True, text=True, timeout=60)
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip("another account can't read this checkout")
    assert done.stdout.startswith(f"no permission to read process {held.pid}: "), done.stderr
    assert "root" in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give its rights up")
def test_without_rights_it_is_not_said_to_be_another_program() -> None:
    """The kernel then shows other addresses of its code and stack than before."""
    process = subprocess.Popen(["sleep", "600"])
    try:
        target = LiveTarget(process.pid)
        reader = os.fork()
        if not reader:
            try:
                no_rights()
                target.check_program()
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(reader, 0)[1]) == 0
    finally:
        process.kill()
        process.wait()


def test_without_process_vm_readv(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a sandbox forbids the call, /proc/PID/mem serves."""

    class Forbidden:
        @staticmethod
        def process_vm_readv(*_: object) -> int:
            ctypes.set_errno(errno.ENOSYS)
            return -1

    monkeypatch.setattr(live, "_libc", Forbidden)
    target = LiveTarget(held.pid)
    assert target.read(held.places["data"], 12) == b"held in data"
    assert target.read(held.places["zeros"], 8192) == bytes(8192)
    for address in (0, 1 << 46, (1 << 64) - 8):
        with pytest.raises(MemoryUnreadable):
            target.read(address, 8)


def test_a_deleted_program(held: Held) -> None:
    """Its bytes are still to be had, and another file at its path is not taken for it."""
    content = held.program.read_bytes()
    held.program.unlink()
    held.program.write_text("another file")
    target = LiveTarget(held.pid)
    path = next(mapping.path for mapping in target.maps() if mapping.path.startswith(str(held.program)))
    assert path == f"{held.program} (deleted)"
    place = target.open_path(path)
    assert place is not None
    assert Path(place).read_bytes() == content


@pytest.mark.parametrize("way", ["chroot", "mount namespace"])
def test_another_view_of_files(way: str, tmp_path: Path) -> None:
    """A process in a container: its paths are looked up as it sees them."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a process another view of the file system")
    program = build(tmp_path, "-static")
    inside = ["chroot", str(tmp_path), "/held"]
    if way == "mount namespace":
        inside = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /mnt && exec /mnt/held', str(tmp_path)]
    held = start(program, tmp_path, inside)
    try:
        target = LiveTarget(held.pid)
        path = next(mapping.path for mapping in target.maps() if mapping.path.endswith("/held"))
        assert (path == "/mnt/held") == (way == "mount namespace")
        place = target.open_path(path)
        assert place is not None
        assert Path(place).read_bytes() == program.read_bytes()
        identity = target.file_identity(path)
        assert identity is not None
        assert identity in program.read_bytes()
        assert target.read(held.places["data"], 12) == b"held in data"
    finally:
        end(held)


def test_strange_paths() -> None:
    """Spaces, line feeds and bytes that are no text, as /proc/PID/maps spells them."""
    text = (
        b"00400000-00401000 r-xp 00001000 08:01 42                         /a b/c\\012d \xff (deleted)\n"
        b"00500000-00501000 rw-s 00000000 00:01 7                          /memfd:x (deleted)\n"
        b"00600000-00601000 ---p 00000000 00:00 0 \n"
        b"what is this?\n"
        b"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n"
    )
    proc_maps = ProcMaps(text)
    assert [mapping.path for mapping in proc_maps] == [
        "/a b/c\nd \udcff (deleted)",
        "/memfd:x (deleted)",
        "",
        "[vsyscall]",
    ]
    assert (proc_maps[0].start, proc_maps[0].end, proc_maps[0].offset, proc_maps[0].executable) == (
        0x400000,
        0x401000,
        0x1000,
        True,
    )
    assert [mapping.shared for mapping in proc_maps] == [False, True, False, False]
    assert not (proc_maps[2].readable or proc_maps[2].writable or proc_maps[2].executable)


HIDDEN = """
mount -t proc -o hidepid=2 proc /proc
cd /
PYTHONPATH={root} PYTHONDONTWRITEBYTECODE=1 setpriv --reuid=65534 --regid=65534 --clear-groups \\
    /usr/bin/python3 -m pieglobalsfind --pid {pid} 0x1000
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount /proc anew")
def test_a_process_that_proc_hides() -> None:
    """It is there, whatever /proc shows; a number that no process has is another matter."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    for pid, sentence in ((os.getpid(), f"/proc hides process {os.getpid()}"), (ended.pid, "there is no process")):
        script = HIDDEN.format(root=ROOT, pid=pid)
        done = subprocess.run(["unshare", "--mount", "sh", "-ec", script], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and sentence in done.stderr and done.stderr.count("\n") == 1, done.stderr
