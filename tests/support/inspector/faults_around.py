"""Faults around a command, in its own process: what it may do from now on is less than before.

Each is one function without arguments, which the process calls on itself. Those that need root raise `OSError` without.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

DENIED = (101, 310, 311)  # ptrace, process_vm_readv, process_vm_writev on x86-64
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38
CLONE_NEWNS = 0x20000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
NOBODY = 65534
PR_SET_KEEPCAPS, CAP_DAC_READ_SEARCH, CAPABILITY_VERSION = 8, 2, 0x20080522


def no_room() -> None:
    """Every write to a file fails from now on, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))


def no_cache() -> None:
    """A file lies where the cache's folder was."""
    folder = Path(os.environ["XDG_CACHE_HOME"])
    with suppress(OSError):
        folder.rename(folder.with_name(f"was-{os.getpid()}"))
    with suppress(OSError):
        folder.touch()


def no_files() -> None:
    """The command may open no more files than it has open."""
    used = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def no_ptrace() -> None:
    """A seccomp filter (seccomp(2)) denies what reads or stops other processes, as containers' filters do."""
    load, is_equal, end = 0x20, 0x15, 0x06  # BPF_LD | BPF_W | BPF_ABS; BPF_JMP | BPF_JEQ | BPF_K; BPF_RET | BPF_K
    allow, deny = 0x7FFF0000, 0x00050000 | errno.EPERM  # SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO
    steps = [(load, 0, 0, 0)]  # the number of the system call
    steps += [(is_equal, len(DENIED) - at, 0, number) for at, number in enumerate(DENIED)]
    steps += [(end, 0, 0, allow), (end, 0, 0, deny)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(steps), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


def no_rights() -> None:
    """The command is another account's from now on, which may neither stop the target nor open its memory.

    It may still read all files (CAP_DAC_READ_SEARCH), so that Python finds modules that are imported late.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    kept = struct.pack("<6I", 1 << CAP_DAC_READ_SEARCH, 1 << CAP_DAC_READ_SEARCH, 0, 0, 0, 0)
    if libc.capset(struct.pack("<Ii", CAPABILITY_VERSION, 0), kept):
        raise OSError(ctypes.get_errno(), "capset")


def no_sight() -> None:
    """/proc is mounted with hidepid (proc(5)), and the command is another account's: it sees no process but its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None):
        raise OSError(ctypes.get_errno(), "unshare")
    if libc.mount(b"proc", b"/proc", b"proc", 0, b"hidepid=2"):
        raise OSError(ctypes.get_errno(), "mount")
    no_rights()


AROUND: dict[str, Callable[[], None]] = {
    "disk full": no_room,
    "cache gone": no_cache,
    "no more files": no_files,
    "ptrace denied": no_ptrace,
    "another account": no_rights,
    "hidden by /proc": no_sight,
}
NEED_ROOT = ("another account", "hidden by /proc", "pid reused")
