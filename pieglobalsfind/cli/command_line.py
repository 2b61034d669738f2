"""What `pieglobalsfind` does: any address of a program with virtual ranks -> rank, object, symbol and source line.

Takes a process or a core file, and addresses or a stream with addresses in it. It parses its words and prints; what an
address is, others decide.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pieglobalsfind.cli.version import Version
from pieglobalsfind.errors import NotVirtualizedError, UsageError
from pieglobalsfind.shell.exit_status import DONE, NOTHING_FOUND, check_words, print_error

if TYPE_CHECKING:
    from pieglobalsfind.cli.address_report import Answer, Finder

NAME = "pieglobalsfind"
HIGHEST = (1 << 64) - 1

DESCRIPTION = "Show which rank owns an address of a program with virtual MPI ranks, and what lies there."
EXPLANATION = """\
One line per address: the address, its rank, its kind (code, data, rodata, heap, stack, tls, range, original, runtime,
unmapped), object+offset, symbol+offset, file:line, and the same place in the unprivatized original. The process is
neither stopped nor changed; a core file may be the kernel's or gcore's.

examples:
  $ pieglobalsfind --pid 4711 0x200140803d7e 0x2001408072a8
  0x200140803d7e  rank 5  code  jacobi3d+0x1d7e  main+0x4  jacobi3d.c:151  original 0x7f0c3d2b8d7e
  0x2001408072a8  rank 5  data  jacobi3d+0x52a8  my_rank+0x0  jacobi3d.c:28  original 0x7f0c3d2bc2a8
  $ pieglobalsfind --core core.4711 --json 0x2001408072a8
  $ pieglobalsfind --pid 4711 --filter < crash.log

exit status: 0 an address belongs to something, 1 none does, 2 the call is wrong or the target can't be read
"""


def parser() -> argparse.ArgumentParser:
    """Return the command's options."""
    argument_parser = argparse.ArgumentParser(
        prog=NAME,
        description=DESCRIPTION,
        epilog=EXPLANATION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    argument_parser.add_argument("--version", action=Version)
    target = argument_parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--pid", type=int, help="the running process that holds the ranks")
    target.add_argument("--core", metavar="FILE", help="a core file of it")
    target.add_argument("--snapshot", metavar="FILE", dest="core", help="what `inspector snapshot` has kept of it")
    target.add_argument("--checkpoint", metavar="DIR", help="what rankrun --checkpoint wrote")
    argument_parser.add_argument("--exe", metavar="FILE", help="with --core: a file that ran and has since been moved")
    argument_parser.add_argument("--json", action="store_true", help="print one JSON object per address, one on a line")
    argument_parser.add_argument(
        "--nominal",
        action="store_true",
        help="also where the ranks' own copies have a variable that they use in the original, as privatization failed",
    )
    argument_parser.add_argument(
        "--filter", action="store_true", help="copy standard input, and explain each address in it"
    )
    argument_parser.add_argument("addresses", metavar="ADDRESS", nargs="*", help="in hexadecimal, with or without 0x")
    return argument_parser


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked for; raises `RanklensError`."""
    check_words(vars(arguments))
    if arguments.filter and (arguments.addresses or arguments.json or arguments.nominal):
        raise UsageError("--filter takes its addresses from standard input, and gives text", "leave the others out")
    if not arguments.filter and not arguments.addresses:
        raise UsageError("no address is given", "give one or more in hexadecimal, or --filter")
    addresses = [parse_address(address) for address in arguments.addresses]

    finders = open_finders(arguments)
    for warning in dict.fromkeys(text for finder in finders for text in finder.table.warnings):
        print_error(NAME, warning)
    if arguments.filter:
        from pieglobalsfind.cli.filter import annotate

        there, owned = annotate(finders[0], sys.stdin.buffer, sys.stdout.buffer)
        return DONE if owned or not there else NOTHING_FOUND
    answers = [best_answer(finders, address) for address in addresses]
    if arguments.nominal:
        answers = [each for answer in answers for each in (answer, *nominal_answers(finders, answer))]
    for answered in answers:
        print(json.dumps(answered.record) if arguments.json else answered.line)
    sys.stdout.flush()
    return DONE if any(answer.found for answer in answers) else NOTHING_FOUND


def open_finders(arguments: argparse.Namespace) -> list[Finder]:
    """One for the target, or for each process of a checkpoint."""
    if arguments.checkpoint is None:
        return [_open_finder(arguments)]
    from pieglobalsfind.cli.address_report import Finder
    from pieglobalsfind.jobs.members import in_checkpoint

    if arguments.filter:
        raise UsageError("--filter needs one process", "give --core with a file of the checkpoint")
    members = in_checkpoint(Path(arguments.checkpoint))
    for problem in members.problems:
        print_error(NAME, problem)
    return [Finder(job_member.open()) for job_member in members.found]


def _open_finder(arguments: argparse.Namespace) -> Finder:
    from pieglobalsfind.cli.address_report import Finder
    from pieglobalsfind.targets import open_target

    try:
        return Finder(open_target(pid=arguments.pid, core=arguments.core, exe=arguments.exe))
    except NotVirtualizedError as error:
        from pieglobalsfind.jobs.members import launcher_error

        raise (launcher_error(arguments.pid) if arguments.pid is not None else None) or error from error


def best_answer(finders: Sequence[Finder], address: int) -> Answer:
    """Of the process where the address belongs to a rank that is there, or to anything."""
    answers = [finder.answer(address) for finder in finders]
    of_rank = (
        answer for answer in answers if answer.found and answer.owner.rank is not None and answer.owner.kind != "range"
    )
    return next(of_rank, None) or next((answer for answer in answers if answer.found), answers[0])


def nominal_answers(finders: Sequence[Finder], answer: Answer) -> list[Answer]:
    """About the ranks' own copies of what they use in the original."""
    return [finder.answer(place) for finder in finders for place in finder.nominal(answer.owner)]


def parse_address(text: str) -> int:
    """A hexadecimal number of up to 64 bits, with or without 0x; raises `UsageError`."""
    if not re.fullmatch(r"(0[xX])?[0-9a-fA-F]+", text):
        raise UsageError(f"{text!r} is not an address", "write it in hexadecimal, such as 0x2001408072a8")
    address = int(text, 16)
    if address > HIGHEST:
        raise UsageError(f"{text} has more than 64 bits", "write one address per word")
    return address
