"""What `rank-debug-check` does: for the author of a runtime, what its registry lacks or contradicts.

Takes a process, which it holds still meanwhile, or a core file; prints a line for each finding.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Optional

from pieglobalsfind.cli.version import Version
from pieglobalsfind.errors import UsageError
from pieglobalsfind.session.registry_findings import NOTE, RegistryFinding, findings
from pieglobalsfind.shell import signals
from pieglobalsfind.shell.escape import harmless
from pieglobalsfind.shell.exit_status import DONE, NOTHING_FOUND, check_words, status_of
from pieglobalsfind.target import Target
from pieglobalsfind.targets import open_target
from pieglobalsfind.targets.frozen import FrozenTarget
from pieglobalsfind.targets.live import check_is_process

NAME = "rank-debug-check"
EXPLANATION = """\
contradiction: the registry is wrong, tools show something that is not there, or nothing
lack: a field that every runtime can write is missing; the line says which feature needs it
note: a field is missing that some runtimes do not need

exit status: 0 no contradiction and no lack, 1 there are some, 2 the call is wrong or there is no registry
"""


def parser() -> argparse.ArgumentParser:
    """Return the command's options."""
    made = argparse.ArgumentParser(
        prog=NAME,
        description="Check what an MPI runtime publishes of its ranks (rank_debug.h) against its memory.",
        epilog=EXPLANATION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("--version", action=Version)
    made.add_argument("target", metavar="PID|CORE", help="a process, which stands still meanwhile, or a core file")
    made.add_argument("--exe", metavar="FILE", help="the program that left the core file")
    return made


def run(arguments: argparse.Namespace) -> int:
    """Print all findings; raises `RanklensError`."""
    check_words(vars(arguments))
    with _opened(arguments.target, arguments.exe) as target:
        registry_findings = findings(target)
        description = target.description
    for registry_finding in registry_findings:
        print(line(registry_finding))
    serious = sum(registry_finding.severity != NOTE for registry_finding in registry_findings)
    if not serious:
        print(f"the registry of {description} contradicts nothing and lacks nothing that every runtime can write")
    return NOTHING_FOUND if serious else DONE


def line(finding: RegistryFinding) -> str:
    """`lack: objects: none has the flag PROGRAM: ...; set RANK_DEBUG_OBJECT_PROGRAM on the user's program`."""
    return harmless(f"{finding.severity}: {finding.where}: {finding.what}; {finding.cure}", most=2000)


@contextmanager
def _opened(what: str, exe: Optional[str]) -> Iterator[Target]:
    if not what.isdecimal():
        if not os.access(what, os.F_OK):
            raise UsageError(f"{what!r} is neither a process nor a file", "give a PID or a core file")
        yield open_target(core=what, exe=exe)
        return
    if exe is not None:
        raise UsageError("a process knows its own files", "give --exe only with a core file")
    check_is_process(int(what))
    with FrozenTarget(int(what)) as target:
        yield target


def main(words: Optional[Sequence[str]] = None) -> int:
    """Run the command; returns its exit status."""
    signals.install()
    return status_of(NAME, lambda: lambda: run(parser().parse_args(words)))


if __name__ == "__main__":
    raise SystemExit(main())
