"""A client of the MPIR Process Acquisition Interface, version 1.0 (MPI Forum, 2010), that uses nothing but ptrace(2).

It does what parallel debuggers such as STAT (by LaunchMON) do: start a launcher, or attach to one; set
MPIR_being_debugged; wait at MPIR_Breakpoint for MPIR_DEBUG_SPAWNED; read MPIR_proctable; go on without a trace. It
takes the interface's names and layout from the document, never from our sources. x86-64 alone.

    python tests/support/mpir_client.py launch WORDS...   # until the launcher ends
    python tests/support/mpir_client.py attach PID

Prints one line of JSON: what was read.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import struct
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

TRACEME, CONT, GETREGS, SETREGS, ATTACH, DETACH, SETOPTIONS = 0, 7, 12, 13, 16, 17, 0x4200
TRACECLONE, TRACEEXEC = 0x8, 0x10  # options
EVENT_EXEC = 4
REGISTERS, RIP = 27, 16  # of user_regs_struct: how many, and which is the program counter
INT3 = b"\xcc"
AT_ENTRY = 9
PROCDESC = struct.Struct("@PPi4x")  # char *host_name; char *executable_name; int pid;
SPAWNED, ABORTING = 1, 2
NAMES = (
    "MPIR_Breakpoint",
    "MPIR_being_debugged",
    "MPIR_debug_state",
    "MPIR_proctable",
    "MPIR_proctable_size",
)
OPTIONAL = ("MPIR_i_am_starter", "MPIR_partial_attach_ok", "MPIR_force_to_main")
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
libc.ptrace.restype = ctypes.c_long


@dataclass(frozen=True)
class Acquired:
    """What a launcher tells: (pid, host, program) by rank, and which optional symbols it has."""

    state: int
    processes: list[tuple[int, str, str]]
    has: list[str]


def ptrace(request: int, pid: int, data: int = 0) -> None:
    if libc.ptrace(request, pid, None, data) == -1:
        raise OSError(ctypes.get_errno(), f"ptrace {request} of {pid}")


def symbols(pid: int) -> dict[str, int]:
    """Addresses of the interface's symbols in what a process has loaded by now."""
    found: dict[str, int] = {}
    seen = set[str]()
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        words = line.split(None, 5)
        path = words[5] if len(words) == 6 else ""
        is_file = path.startswith("/") and not path.startswith("/memfd:") and not path.endswith(" (deleted)")
        if not is_file or path in seen or words[2] != "00000000":
            continue
        seen.add(path)
        start = int(words[0].partition("-")[0], 16)
        with open(f"/proc/{pid}/root{path}", "rb") as file:
            if file.read(4) == b"\x7fELF":
                found = {**in_file(ELFFile(file), start), **found}
    return found


def in_file(elf: ELFFile, start: int) -> dict[str, int]:
    first = min(one["p_vaddr"] for one in elf.iter_segments("PT_LOAD"))
    tables = [section for section in elf.iter_sections() if isinstance(section, SymbolTableSection)]
    return {
        symbol.name: start - first + symbol["st_value"]
        for table in tables
        for symbol in table.iter_symbols()
        if symbol.name in (*NAMES, *OPTIONAL) and symbol["st_shndx"] != "SHN_UNDEF"
    }


class Starter:
    """A launcher that is traced, with all its threads."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.threads = {pid}
        self.lacks = ""  # what is said where it ends

    def read(self, address: int, size: int) -> bytes:
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            return memory.read(size)

    def write(self, address: int, data: bytes) -> None:
        with open(f"/proc/{self.pid}/mem", "r+b", buffering=0) as memory:
            memory.seek(address)
            memory.write(data)

    def number(self, address: int) -> int:
        return int(struct.unpack("=i", self.read(address, 4))[0])

    def text(self, address: int) -> str:
        data = b""
        while b"\0" not in data:
            data += self.read(address + len(data), 1)
        return data.partition(b"\0")[0].decode()

    def run_to(self, address: int) -> int:
        """Run until a thread is about to execute what is at an address (0: nothing), and return that thread.

        It is -1 where another program has taken the launcher's place meanwhile.
        """
        kept = self.read(address, 1) if address else b""
        if address:
            self.write(address, INT3)
        self.go_on(self.pid)
        while True:
            tid, status = os.waitpid(-1, 0x40000000)  # __WALL
            if not os.WIFSTOPPED(status):
                self.threads.discard(tid)
                if tid == self.pid:
                    sys.exit(f"the launcher has ended, status {os.waitstatus_to_exitcode(status)}{self.lacks}")
                continue
            self.threads.add(tid)
            if status >> 16 == EVENT_EXEC:
                self.threads, self.lacks = {self.pid}, ""
                return -1
            if os.WSTOPSIG(status) == signal.SIGTRAP and not status >> 16 and self.is_at(tid, address):
                self.write(address, kept)
                return tid
            is_event = status >> 16 or os.WSTOPSIG(status) in (signal.SIGSTOP, signal.SIGTRAP)
            self.go_on(tid, 0 if is_event else os.WSTOPSIG(status))

    def go_on(self, tid: int, number: int = 0) -> None:
        ptrace(CONT, tid, number)

    def is_at(self, tid: int, address: int) -> bool:
        """Whether a thread has executed the breakpoint; it will execute the instruction next."""
        registers = (ctypes.c_uint64 * REGISTERS)()
        ptrace(GETREGS, tid, ctypes.addressof(registers))
        if registers[RIP] != address + 1:
            return False
        registers[RIP] = address
        ptrace(SETREGS, tid, ctypes.addressof(registers))
        return True

    def entry(self) -> int:
        """Where the program begins once the loader has loaded all that it needs (getauxval(3))."""
        data = Path(f"/proc/{self.pid}/auxv").read_bytes()
        return int(next(value for key, value in struct.iter_unpack("=QQ", data) if key == AT_ENTRY))

    def acquired(self, known: dict[str, int]) -> Acquired:
        """Read the table."""
        (table,) = struct.unpack("=Q", self.read(known["MPIR_proctable"], 8))
        size = self.number(known["MPIR_proctable_size"])
        rows = PROCDESC.iter_unpack(self.read(table, size * PROCDESC.size)) if size else iter(())
        processes = [(pid, self.text(host), self.text(program)) for host, program, pid in rows]
        state = self.number(known["MPIR_debug_state"])
        return Acquired(state, processes, [name for name in OPTIONAL if name in known])

    def release(self, last: int) -> None:
        """Let all threads go on untraced."""
        for tid in self.threads - {last}:
            os.kill(tid, 0)
            libc.syscall(234, self.pid, tid, signal.SIGSTOP)  # tgkill
            while not os.WIFSTOPPED(os.waitpid(tid, 0x40000000)[1]):
                pass
            ptrace(DETACH, tid)
        ptrace(DETACH, last)


def launch(words: list[str]) -> None:
    pid = os.fork()
    if not pid:
        ptrace(TRACEME, 0)
        os.execvp(words[0], words)
    os.waitpid(pid, 0)
    starter = Starter(pid)
    ptrace(SETOPTIONS, pid, TRACECLONE | TRACEEXEC)
    tid = -1
    while tid < 0:  # a launcher may execute itself, or another program, before it is one
        while starter.run_to(starter.entry()) < 0:
            pass
        known = symbols(pid)
        missing = [name for name in NAMES if name not in known]
        if missing:  # a wrapper that will execute the launcher, or a launcher without the interface
            starter.lacks = f", it has no {', '.join(missing)}"
            tid = starter.run_to(0)
            continue
        starter.write(known["MPIR_being_debugged"], struct.pack("=i", 1))
        tid = starter.run_to(known["MPIR_Breakpoint"])
    print(json.dumps(asdict(starter.acquired(known))), flush=True)
    starter.release(tid)
    _, status = os.waitpid(pid, 0)
    sys.exit(os.waitstatus_to_exitcode(status) & 0xFF)


def attach(pid: int) -> None:
    ptrace(ATTACH, pid)
    os.waitpid(pid, 0x40000000)
    starter = Starter(pid)
    print(json.dumps(asdict(starter.acquired(symbols(pid)))), flush=True)
    ptrace(DETACH, pid)


if __name__ == "__main__":
    launch(sys.argv[2:]) if sys.argv[1] == "launch" else attach(int(sys.argv[2]))
