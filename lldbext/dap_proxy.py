"""`ranklens-lldb-dap`: LLDB's adapter for editors; names mean the variables of the selected frame's rank.

Takes the Debug Adapter Protocol on standard input and output, and starts lldb-dap. Messages pass as they are, with
two exceptions: an expression is evaluated while LLDB has the variables of that frame's rank alone, and frames of the
MPI runtime are marked as subtle, so that an editor folds them. Nothing of LLDB's is imported here.
Specification: microsoft.github.io/debug-adapter-protocol.
"""

from __future__ import annotations

import itertools
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Optional

from pieglobalsfind.errors import RanklensError
from pieglobalsfind.shell.exit_status import status_of

NAME = "ranklens-lldb-dap"
CHOICE = "RANKLENS_LLDB_DAP"
FIRST_OWN = 1 << 30  # numbers of our own requests: an editor counts from 1
EDITOR = "ranklens-editor"  # lldbext/commands/for_editors.py
PATH = re.compile(r"(?:[\w:.\[\]]|->)+")
VALUES = ("evaluate", "variables", "setVariable")  # of the rank whose names LLDB has

Message = dict[str, Any]


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run until the editor or lldb-dap ends; returns lldb-dap's exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    return status_of(NAME, lambda: lambda: run(words))


def run(words: list[str]) -> int:
    """Start lldb-dap and pass messages on; with arguments, become lldb-dap: the editor connects by a port then."""
    path = adapter_path()
    if words:
        os.execv(path, [path, *words])
    process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    session = Session(sys.stdout.buffer, process.stdin)
    threading.Thread(target=end_with, args=(process, session), daemon=True).start()
    try:
        for message in messages(sys.stdin.buffer):
            session.from_editor(message)
    finally:
        with suppress(OSError):  # it has ended
            process.stdin.close()
    return process.wait()


def end_with(process: subprocess.Popen[bytes], session: Session) -> None:
    """Pass on what lldb-dap writes, and end as soon as it does."""
    assert process.stdout is not None
    stream = process.stdout
    status = status_of(NAME, lambda: lambda: session.hear_adapter(stream))
    os._exit(status or process.wait())


def adapter_path() -> str:
    """lldb-dap as $RANKLENS_LLDB_DAP names it, or else the one of the highest version; raises `RanklensError`."""
    chosen = os.environ.get(CHOICE)
    if chosen:
        program = shutil.which(chosen)
        if program is None:
            raise RanklensError(f"program {chosen!r} does not exist", f"set {CHOICE} to the path of lldb-dap")
        return program
    numbered = [
        file
        for folder in os.get_exec_path()
        for file in Path(folder).glob("lldb-dap-[0-9]*")
        if file.name[9:].isdecimal() and os.access(file, os.X_OK)
    ]
    newest = max(numbered, key=lambda file: int(file.name[9:]), default=None)
    path = shutil.which("lldb-dap") or newest
    if path is None:
        raise RanklensError("lldb-dap is not in PATH", f"install LLDB, or name the program in {CHOICE}")
    return str(path)


class Session:
    """An editor's session. Requests are carried out one by one, as lldb-dap does."""

    def __init__(self, editor: IO[bytes], adapter: IO[bytes]) -> None:
        self._editor = editor
        self._adapter = adapter
        self._writing = threading.Lock()
        self._own = itertools.count(FIRST_OWN)
        self._awaited: Optional[int] = None
        self._answers: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._threads: dict[int, int] = {}  # by frame
        self._has_names = False
        self._prefix = "`"

    def from_editor(self, message: Message) -> None:
        """Carry out a request, or pass on anything else."""
        command, arguments = message.get("command"), message.get("arguments") or {}
        if message.get("type") != "request":
            write(self._adapter, message)
            return
        if command in ("launch", "attach"):
            self._prefix = arguments.get("commandEscapePrefix", self._prefix)
        by_name = command == "evaluate" and arguments.get("context") != "repl"
        if self._has_names and not (by_name or command in VALUES[1:]):
            self._has_names = False
            self._ask_lldb("settle")
        if by_name and arguments.get("frameId") in self._threads:
            self._evaluate(message, arguments)
        elif command == "stackTrace":
            self._stack(message, arguments)
        else:
            write(self._adapter, message)

    def _evaluate(self, request: Message, arguments: Message) -> None:
        self._has_names = self._ask_lldb("names", self._threads[arguments["frameId"]]) is True
        expression = str(arguments.get("expression"))
        if self._has_names and arguments.get("context") == "hover" and PATH.fullmatch(expression):  # it calls nothing
            arguments["context"] = "watch"  # by hovers lldb-dap finds the variables of one source file alone
        write(self._adapter, request)

    def _stack(self, request: Message, arguments: Message) -> None:
        """Mark what of a stack is the runtime's."""
        response = self._ask(request)
        frames = (response.get("body") or {}).get("stackFrames") or []
        tid = arguments.get("threadId", 0)
        self._threads.update((frame["id"], tid) for frame in frames)
        levels = self._ask_lldb("runtime", tid) if frames else None
        first = arguments.get("startFrame") or 0
        for level, frame in enumerate(frames, first):
            if isinstance(levels, list) and level in levels:
                frame["presentationHint"] = "subtle"
        self._to_editor(response)

    def _ask_lldb(self, *words: object) -> object:
        """What our command in LLDB answers, None if there is none."""
        expression = f"{self._prefix}{EDITOR} {' '.join(map(str, words))}"
        arguments = {"expression": expression, "context": "repl"}
        number = next(self._own)
        request = {"seq": number, "type": "request", "command": "evaluate", "arguments": arguments}
        response = self._ask(request)
        output = str((response.get("body") or {}).get("result", "")).strip()
        with suppress(ValueError):
            return json.loads(output.rpartition("\n")[2])  # the command itself may stand before it
        return None

    def _ask(self, request: Message) -> Message:
        """The response to a request."""
        self._awaited = request["seq"]
        write(self._adapter, request)
        return self._answers.get()

    def _to_editor(self, message: Message) -> None:
        with self._writing:
            write(self._editor, message)

    def hear_adapter(self, stream: IO[bytes]) -> int:
        """Pass on what lldb-dap writes until it ends; returns 0."""
        for message in messages(stream):
            if message.get("type") == "response" and message.get("request_seq") == self._awaited:
                self._awaited = None
                self._answers.put(message)
            else:
                self._to_editor(message)
        return 0


def messages(stream: IO[bytes]) -> Iterator[Message]:
    """Messages until the stream ends; raises `RanklensError` if it has anything else."""
    size = 0
    while line := stream.readline():
        if line.lower().startswith(b"content-length:"):
            size = int(line.partition(b":")[2]) if line.partition(b":")[2].strip().isdigit() else 0
        elif not line.strip():
            content = stream.read(size)
            if size and len(content) < size:
                return
            yield decoded(content)


def decoded(content: bytes) -> Message:
    """One message; raises `RanklensError`."""
    with suppress(ValueError, RecursionError):
        message = json.loads(content)
        if isinstance(message, dict) and isinstance(message.get("arguments", {}), dict):
            return message
    raise RanklensError("this is not a message of the Debug Adapter Protocol", "let an editor start this program")


def write(stream: IO[bytes], message: Message) -> None:
    """Write one message at once."""
    content = json.dumps(message).encode()
    stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(content), content))
    stream.flush()


if __name__ == "__main__":
    sys.exit(main())
