"""Runs a real LLDB on a script, and brings back what the script found by a file.

Takes LLDB's path, a Python script, and what to debug. The script has `debugger`, `target`, `process`, `ask(command)`
(LLDB's answer, or "error: ..."), `printed(command)` (the same without a result's number), `value(expression)` (an int,
in the selected frame), `connected(target, address)` (a stub's process), `kill()` (the process; comes back once LLDB
takes it for exited) and `tell(name, what JSON can hold)`. Never judges.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path

from tests.support.host.script import Told, told_by
from tests.support.lldb.index import index_options
from tests.support.running import ROOT

EXTENSION = ROOT / "lldbext"

PRELUDE = """
import json, os, re, sys
import lldb

told = {}

def tell(name, what):
    told[name] = what
    with open(os.environ["RANKLENS_TOLD"] + ".part", "w") as file:
        json.dump(told, file)
    os.replace(os.environ["RANKLENS_TOLD"] + ".part", os.environ["RANKLENS_TOLD"])

def ask(command):
    result = lldb.SBCommandReturnObject()
    context = lldb.SBExecutionContext(target.GetProcess().GetSelectedThread().GetSelectedFrame())
    interpreter = debugger.GetCommandInterpreter()
    if context.GetFrame().IsValid():
        interpreter.HandleCommand(command, context, result, False)
    else:
        interpreter.HandleCommand(command, result, False)
    text = result.GetOutput() or ""
    return text if result.Succeeded() else text + (result.GetError() or "error: no reason")

def value(expression):
    found = target.GetProcess().GetSelectedThread().GetSelectedFrame().EvaluateExpression(expression)
    return found.GetValueAsSigned() if found.GetError().Success() else str(found.GetError())

def connected(target, address):  # LLDB 23 has no modules after `gdb-remote` in a script, also of its own stub
    error, listener, event = lldb.SBError(), lldb.SBListener("connected"), lldb.SBEvent()
    process = target.ConnectRemote(lldb.SBListener(), "connect://" + address, "gdb-remote", error)
    process.GetBroadcaster().AddListener(listener, lldb.SBProcess.eBroadcastBitStateChanged)
    for _ in range(60):  # until another of LLDB's threads has handled the stop, whose event may have come before
        if error.Fail() or process.GetState() not in (lldb.eStateUnloaded, lldb.eStateConnected):
            break
        listener.WaitForEvent(1, event)
    process.GetBroadcaster().RemoveListener(listener, lldb.SBProcess.eBroadcastBitStateChanged)
    return process

def printed(command):  # by an old LLDB with the number that it gives to the result
    return re.sub(r"\\$[0-9]+ = ", "", ask(command))

def functions(thread):
    return [frame.GetFunctionName() for frame in thread]

def kill():  # LLDB takes the process for stopped until another of its threads has handled the exited event
    listener, event = lldb.SBListener("kill"), lldb.SBEvent()
    target.GetProcess().GetBroadcaster().AddListener(listener, lldb.SBProcess.eBroadcastBitStateChanged)
    said = ask("process kill") + ask("thread list")
    while target.GetProcess().GetState() != lldb.eStateExited and listener.WaitForEvent(60, event):
        pass
    return said

def __lldb_init_module(given, names):
    global debugger, target, process
    debugger, target = given, given.GetSelectedTarget()
    process = target.GetProcess()
    debugger.SetAsync(False)
    try:
        script()
    except BaseException:
        import traceback
        traceback.print_exc()

def script():
"""


@dataclass(frozen=True)
class Session:
    """An LLDB, and the folder for the files of its runs."""

    lldb: Path
    folder: Path

    def run(self, script: str, *arguments: object, load: bool = True) -> Told:
        """Run a script in an LLDB that is started with `arguments`; `load`: with the extension."""
        file = self.folder / "in_lldb.py"
        file.write_text(PRELUDE + textwrap.indent(textwrap.dedent(script), "    "))
        extension = ["-o", f"command script import {EXTENSION}"] if load else []
        words = [str(word) for word in arguments]
        at = words.index("--") if "--" in words else len(words)
        start = [str(self.lldb), "-x", "-b", *index_options()]
        command = [*start, *words[:at], *extension, "-o", f"command script import {file}"]
        return told_by([*command, *words[at:]], self.folder, {"RANKLENS_TRACEBACK": "1", "TMPDIR": str(self.folder)})

    def attach(self, script: str, pid: int) -> Told:
        return self.run(script, "-p", pid)
