"""What the kernel reports of a running process of this machine in /proc: its mappings, its files, whether it is alive.

Takes a pid. It reads no memory, never attaches, never signals, never writes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Optional

from pieglobalsfind.elf.file import ElfFile
from pieglobalsfind.errors import ObjectFileError, TargetEndedError, TargetError
from pieglobalsfind.machine.lookup import PROCESSORS, machine_name
from pieglobalsfind.memory_map import ProcMaps
from pieglobalsfind.targets.pagemap import populated
from pieglobalsfind.targets.procmap_query import StandingMaps, anonymous_parts

DELETED = " (deleted)"
NO_MEMORY = (b"0", b"0", b"0")  # where a process lies that has given its memory back, as it ends
HIDDEN = (b"1", b"1", b"0")  # the same of a process that may not be traced any more (fs/proc/array.c, do_task_stat)
YAMA = "/proc/sys/kernel/yama/ptrace_scope"

PF_KTHREAD = 0x200000  # include/linux/sched.h


class Process:
    """A process. Raises `TargetError` if it is not there, has ended, or is for another processor."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._proc = f"/proc/{pid}"
        self._maps = b"", ProcMaps(b"")
        self._check_state()
        self._check_machine()
        self._program = self._running_program()

    @property
    def description(self) -> str:
        """Return what messages call the target."""
        return f"process {self.pid}"

    def maps(self) -> ProcMaps:
        """The lines of /proc/PID/maps; the same ones are read once."""
        contents = self._contents("maps")
        if contents != self._maps[0]:
            self._maps = contents, ProcMaps(contents)
        return self._maps[1]

    def standing_maps(self) -> StandingMaps:
        """The same of a process that stands still while they are in use; reads no further than asked for."""
        return StandingMaps(f"{self._proc}/maps", lambda: self._contents("maps"))

    def populated(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """What the kernel has backed with memory of private anonymous memory; all of it where it does not say."""
        reached = start
        try:
            for first, last in populated(f"{self._proc}/pagemap", start, end):
                reached = last
                yield first, last
        except OSError:
            yield reached, end

    def backed(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return (start, end) of what of a range may hold anything but zeros: all that is not anonymous memory."""
        ranges: list[tuple[int, int]] = []
        for first, last, is_anonymous in anonymous_parts(f"{self._proc}/maps", start, end):
            ranges += self.populated(first, last) if is_anonymous else [(first, last)]
        return ranges

    def open_path(self, path: str) -> Optional[str]:
        """The file as the process sees it: its own root directory, and files that are deleted but still mapped."""
        if path.endswith(DELETED):
            return self._mapped_file(path)
        if not path.startswith("/"):
            return None
        inside = f"{self._proc}/root{path}"
        try:
            if os.path.samefile(inside, path):
                return path
        except (OSError, ValueError):
            pass
        if is_file(inside):
            return inside
        if is_file(path):  # after chroot(2), /proc/PID/maps has paths as we see them
            return path
        return self._mapped_file(path + DELETED)

    def _mapped_file(self, path: str) -> Optional[str]:
        """A deleted file through /proc/PID/exe or map_files, which needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE."""
        try:
            if os.readlink(f"{self._proc}/exe") == path:
                return f"{self._proc}/exe"
        except OSError:
            pass
        for mapping in self.maps():
            link = f"{self._proc}/map_files/{mapping.start:x}-{mapping.end:x}"
            if mapping.path == path and os.access(link, os.R_OK) and is_file(link):
                return link
        return None

    def _contents(self, name: str) -> bytes:
        try:
            return _contents_of(f"{self._proc}/{name}")
        except PermissionError as error:
            raise self._no_permission() from error
        except OSError as error:
            raise TargetEndedError(f"process {self.pid} has ended") from error

    def _check_state(self) -> None:
        try:
            status = _contents_of(f"{self._proc}/stat")
        except (OSError, ValueError) as error:
            hint = "give the PID of a running job; `pgrep rankrun` lists them"
            raise no_process(self.pid, hint) from error
        if status.rpartition(b")")[2].split()[:1] in ([b"Z"], [b"X"]):
            raise TargetEndedError(f"process {self.pid} has ended, its parent has not yet waited for it")

    @property
    def is_kernel_thread(self) -> bool:
        """Return whether it is one of the kernel's (proc(5), flags of /proc/PID/stat)."""
        fields = self._contents("stat").rpartition(b")")[2].split()
        return bool(int(fields[6]) & PF_KTHREAD)

    def check_is_alive(self) -> None:
        """Raises `TargetEndedError` if the process has ended since."""
        try:
            self._check_state()
        except TargetEndedError:
            raise
        except TargetError as error:  # there is none any more
            raise TargetEndedError(f"process {self.pid} has ended") from error

    def check_program(self) -> None:
        """Raises `TargetError` if the process has executed another program since this object was made.

        What was read since may be that one's. A process that has ended can't mislead: nothing of it can be read.
        """
        now = self._running_program()
        if now and now != self._program:
            raise TargetError(f"process {self.pid} has executed another program while it was read", "look at it again")

    def _running_program(self) -> tuple[bytes, ...]:
        """Differs after every execve(2): its begin, where code and stack lie (proc(5), stat); () if it does not say."""
        try:
            words = _contents_of(f"{self._proc}/stat").rpartition(b")")[2].split()
        except OSError:
            return ()
        if len(words) < 26 or words[0] in (b"Z", b"X"):
            return ()
        program = words[19], words[23], words[24], words[25]
        return () if program[1:] in (NO_MEMORY, HIDDEN) else program

    def _check_machine(self) -> None:
        try:
            with ElfFile(f"{self._proc}/exe") as program:
                machine = program.header.machine
        except ObjectFileError as error:
            if "32-bit" in error.sentence:
                raise TargetError(f"process {self.pid} is a 32-bit program", error.hint) from error
            return  # a kernel thread, or a file that we may not open: the memory will tell
        if machine not in PROCESSORS:
            raise TargetError(f"process {self.pid} is a program for {machine_name(machine)}, which can't be read")

    def _no_permission(self) -> TargetError:
        try:
            scope = int(_contents_of(YAMA))
        except (OSError, ValueError):
            scope = 0
        sentence = f"no permission to read process {self.pid}"
        if scope == 3:
            return TargetError(sentence, f"{YAMA} is 3: no process may be read until the machine is restarted")
        ways = "run this as its user or as root, or give python3 the capability CAP_SYS_PTRACE"
        if scope:
            ways = f"{YAMA} is {scope}: `sudo sysctl kernel.yama.ptrace_scope=0` allows it, or run as root"
        return TargetError(sentence, ways)


def exists(pid: int) -> bool:
    """Whether a process has this number, whatever /proc shows."""
    try:
        os.kill(pid, 0)  # sends nothing
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return pid > 0  # 0 and -1 stand for several processes


def no_process(pid: int, hint: str) -> TargetError:
    """Why /proc has nothing of a process: there is none, or /proc hides it (proc(5), hidepid)."""
    if not exists(pid):
        return TargetError(f"there is no process {pid}", hint)
    ways = "run this as its user or as root: /proc is mounted with hidepid"
    return TargetError(f"/proc hides process {pid}", ways)


def _contents_of(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def is_file(path: str) -> bool:
    """Whether there is a regular file that we may look at; unlike `Path.is_file`, nothing makes it fail."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def blocked_signals(pid: int, tid: int) -> int:
    """The signals that a thread blocks, a bit each (proc(5), SigBlk); 0 if it has ended."""
    try:
        lines = _contents_of(f"/proc/{pid}/task/{tid}/status").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1], 16) for line in lines if line.startswith(b"SigBlk:")), 0)


def is_folder(path: str) -> bool:
    """Whether there is a folder that we may look at; unlike `Path.is_dir`, nothing makes it fail."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False
