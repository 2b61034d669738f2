"""`inspector serve`: ranks as processes for any debugger that speaks GDB's Remote Serial Protocol.

Takes a process, a file of one, or a job; serves debuggers until they are gone. The job stands still while one looks,
and goes on when it continues, detaches or is lost.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import Optional

from pieglobalsfind.errors import UsageError
from pieglobalsfind.machine.control_lookup import control_of
from pieglobalsfind.shell.exit_status import print_error
from pieglobalsfind.shell.signals import cleanup_on_signal

from ..job.target_option import add_target, job_named
from ..serve import endpoint, how_to_connect
from ..serve.control.controlled_job import ControlledJob
from ..serve.ranks.served_job import ServedJob, source_of_members, source_of_one
from ..serve.server import Server
from ..serve.session import FIRST_PID, Permissions


def add_to(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Serve a job's ranks to a debugger, each as a process of its own, without an extension: on standard input and "
        "output (GDB: target extended-remote | inspector serve CORE), or at a port or socket. The job stands still "
        "while the debugger looks; `continue`, `detach` and a lost connection let it go on."
    )
    parser.epilog = "how to: docs/serve.md; exit status: 0 done, 2 bad call or unreadable target"
    add_target(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--rank", metavar="R", help="show this rank alone, from the beginning")
    which.add_argument("--attach", action="store_true", help="show the ranks that the debugger attaches to (default)")
    which.add_argument("--all", action="store_true", help="show every rank from the beginning (GDB 13 to 16)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--port", metavar="P", help="listen at this port of 127.0.0.1, 0: at a free one")
    where.add_argument("--socket", metavar="PATH", help="listen at a Unix socket")
    parser.add_argument("--control", action="store_true", help="let the debugger set breakpoints and take steps")
    parser.add_argument("--write", action="store_true", help="let the debugger write a suspended rank's own data")
    parser.add_argument(
        "--files", action="store_true", help="send the job's programs and libraries, to a debugger on another host"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run `inspector serve`; returns the exit status."""
    rank = number_of(options.rank, "--rank", FIRST_PID)
    port = number_of(options.port, "--port", 1 << 16)
    is_listening = port is not None or options.socket
    if not is_listening and sys.stdin.isatty():
        hint = f"start it from GDB: target extended-remote | {shlex.join(['inspector', *sys.argv[1:]])}; or give --port"
        raise UsageError("a debugger is expected on standard input", hint)
    members = job_named(options.job, options.target, options.exe)
    kind = ControlledJob if options.control else ServedJob
    source = source_of_one(options.target, options.exe, kind) if members is None else source_of_members(members, kind)
    if options.control and control_of(source.processor) is None:
        raise UsageError(f"ranks of {source.processor.name} programs can't be controlled", "leave --control out")
    allowed = Permissions(None if rank is None else (rank,), options.all, options.write, options.files, options.control)
    check_ranks(source, rank)
    server = Server(source, allowed, lambda sentence: print_error("inspector", sentence))
    with cleanup_on_signal(source.close):
        try:
            if is_listening:
                listen(server, options, port, allowed)
            else:
                server.serve_one(os.dup(0), os.dup(1))
        finally:
            source.close()
    return 0


def number_of(text: Optional[str], option: str, limit: int) -> Optional[int]:
    """The number that an option was given; raises `UsageError`."""
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and int(text) < limit):
        raise UsageError(f"{option} {text!r} makes no sense", f"give a number from 0 to {limit - 1}")
    return int(text)


def check_ranks(source: ServedJob, rank: Optional[int]) -> None:
    """Look at the job once, so that a wrong call is an error here and not in the debugger."""
    check = object()
    source.hold(check, () if rank is None else (rank,))
    try:
        if rank is not None:
            source.moment.rank(rank).check()
    finally:
        source.let_go(check)


def listen(server: Server, options: argparse.Namespace, port: Optional[int], allowed: Permissions) -> None:
    """Until a signal ends the command."""
    if port is None:
        path = str(Path(options.socket).absolute())
        listener = endpoint.listen_on_path(path)
        address, number = path, 0
    else:
        listener, path = endpoint.listen_on_port(port), ""
        number = listener.getsockname()[1]
        address = f"{endpoint.HOST}:{number}"
    with listener, cleanup_on_signal(lambda: remove(path)):
        print("\n".join(how_to_connect.lines(address, bool(path), allowed)), flush=True)
        try:
            server.serve_many(listener, number)
        finally:
            remove(path)


def remove(path: str) -> None:
    """Remove a file, if it is there."""
    with suppress(OSError):
        if path:
            Path(path).unlink()
