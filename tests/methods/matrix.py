"""What is asked of each tool under each method, and the cells where the answer can't be had, each with the reason.

The table in docs/methods.md is made of this and of the tests' results (table.py).
"""

from __future__ import annotations

from typing import Optional

METHODS = ("none", "pie", "hls", "pip", "pipthread", "pipprocess", "fs", "tls", "tls-word", "swap", "struct", "tpsl")
TOOLS = ("GDB", "LLDB", "inspector", "pieglobalsfind")
SOURCES = ("live", "core")
RUNNING, SUSPENDED = "backtrace, running", "backtrace, suspended"
VARIABLES = {
    "exported": "global",
    "file_static": "file static",
    "counter": "function static",
    "per_thread": "thread_local",
    "inlined": "inline variable",
    "common_value": "Fortran common",
}
CHECKS = (RUNNING, SUSPENDED, *VARIABLES.values())

BYTE_COPIES = ("pie", "hls")
IS_PROCESS = ("pipprocess", "tpsl")

REFUSED = {("aarch64", "tls-word"): "code of this processor does not read the word at the thread pointer"}
NO_BYTE_COPY = "refused before any rank runs: byte copies share the thread-local storage of their kernel thread"
NO_STACKS = "it answers for addresses, not for stacks"
NO_SCOPE = "LLDB itself has no name for a function's static variable outside of the function"
NO_FORTRAN = "LLDB has no Fortran"


def refused_on(machine: str, method: str) -> Optional[str]:
    """Why a machine, by uname's word, has no such method; None if it has it."""
    return REFUSED.get((machine, method))


def impossible(method: str, tool: str, source: str, check: str) -> Optional[str]:
    """Why this cell can't be filled, None if it is a test."""
    if check == "thread_local" and method in BYTE_COPIES:
        return NO_BYTE_COPY
    if tool == "pieglobalsfind" and check in (RUNNING, SUSPENDED):
        return NO_STACKS
    if tool == "LLDB" and check == "function static":
        return NO_SCOPE
    if tool == "LLDB" and check == "Fortran common":
        return NO_FORTRAN
    return None
