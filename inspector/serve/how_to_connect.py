"""The lines to type into a debugger, for each that is known to work.

Takes where the server listens and what it shows; gives text.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from .session import FIRST_PID, Permissions

SYSROOT = "set sysroot /"  # GDB would ask the server for files that are here


def lines(address: str, is_path: bool, allowed: Permissions) -> Iterator[str]:
    """How to connect with GDB, LLDB and Visual Studio Code."""
    yield f"serving at {address}, for your own connections alone; Ctrl-C ends it, and the job goes on"
    yield f"GDB      {gdb(address, allowed)}"
    commands = lldb(address, is_path, allowed)
    yield (
        f"LLDB     {shlex.join(['lldb', *(word for command in commands for word in ('-o', command))])}"
        if commands
        else ("LLDB     needs --rank, or --port without --all")
    )
    if commands:
        yield f'VS Code  in launch.json, type "lldb-dap", request "attach": "attachCommands": {json.dumps(commands)}'
    if allowed.every:
        yield "         GDB 17 and newer: serve without --all, and load docs/ranks.gdb"
    if allowed.shown is None and not allowed.every:
        yield f"         rank R is process {FIRST_PID} + R: attach {FIRST_PID + 3} is rank 3"


def gdb(address: str, allowed: Permissions) -> str:
    """Several processes at once are set up by the last command: GDB leaves all but the first as they are.

    GDB 17 and 18 do so for good.
    """
    commands = [SYSROOT, f"target extended-remote {address}"]
    if allowed.every:
        commands.append(f"thread apply all -q {SYSROOT}")
    elif allowed.shown is None:
        commands.append("info os processes")
    return shlex.join(["gdb", *(word for command in commands for word in ("-ex", command))])


def lldb(address: str, is_path: bool, allowed: Permissions) -> list[str]:
    """LLDB's commands; none where it can't be served."""
    if allowed.every:
        return []
    if allowed.shown is not None:
        return [f"process connect unix-connect://{address}" if is_path else f"gdb-remote {address}"]
    if is_path:
        return []
    return [
        "platform select remote-gdb-server",
        f"platform connect connect://{address}",
        f"process attach -p {FIRST_PID + 3}",
    ]
