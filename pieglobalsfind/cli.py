"""The command `pieglobalsfind`: any address -> rank, kind, object, symbol, line.

Takes a process or a core file and addresses; prints a line for each. It formats and nothing else: what an address is,
translate and symbolize decide.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Optional

from pieglobalsfind.decoders import decode
from pieglobalsfind.errors import RanklensError, UsageError
from pieglobalsfind.model import Absent, Owner, RankTable, Symbol
from pieglobalsfind.symbolize import Symbolizer
from pieglobalsfind.targets import open_target
from pieglobalsfind.translate import Translator

FOUND, NOTHING_FOUND, BAD = 0, 1, 2
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,16}\b")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")
_EXAMPLES = """\
examples:
  pieglobalsfind --pid 4711 0x200040801234
      0x200040801234  rank 1  code  solver+0x1234  sweep+0x14  solver.c:81  original 0x7f21a4c01234
  pieglobalsfind --core core.4711 --json 0x200040804018
  pieglobalsfind --pid 4711 --filter < crash.log

exit status: 0 an address belongs to something, 1 none does, 2 the call or the target is at fault
"""


@dataclass(frozen=True)
class Answer:
    """What is known of one address."""

    owner: Owner
    object_path: str
    symbol: Optional[Symbol]
    reason: str

    @property
    def found(self) -> bool:
        return self.owner.kind != "unmapped"

    def line(self) -> str:
        whose = "no rank" if self.owner.rank is None else f"rank {self.owner.rank}"
        parts = [f"{self.owner.address:#x}", whose, self.owner.kind]
        if self.object_path:
            parts.append(f"{self.object_path.rpartition('/')[2]}+{self.owner.offset:#x}")
        if self.symbol is not None:
            parts.append(f"{self.symbol.name}+{self.symbol.offset:#x}")
            if self.symbol.line:
                parts.append(f"{self.symbol.file.rpartition('/')[2]}:{self.symbol.line}")
        if self.owner.rank is not None and self.object_path:
            parts.append(f"original {self.owner.original:#x}")
        if self.reason:
            parts.append(f"({self.reason})")
        return harmless("  ".join(parts))

    def as_json(self) -> str:
        symbol = self.symbol
        content = {
            "address": f"{self.owner.address:#x}",
            "kind": self.owner.kind,
            "rank": self.owner.rank,
            "object": self.object_path or None,
            "offset": f"{self.owner.offset:#x}" if self.object_path else None,
            "symbol": symbol.name if symbol else None,
            "symbol_offset": f"{symbol.offset:#x}" if symbol else None,
            "file": (symbol.file or None) if symbol else None,
            "line": (symbol.line or None) if symbol else None,
            "original": f"{self.owner.original:#x}" if self.object_path else None,
            "reason": self.reason or None,
        }
        return json.dumps(content)


def harmless(text: str) -> str:
    """Names come from the target: nothing in them may steer the terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)


class Finder:
    """Answers for one target."""

    def __init__(self, translator: Translator, symbolizer: Symbolizer, table: RankTable) -> None:
        self._translator = translator
        self._symbolizer = symbolizer
        self._table = table

    def answer(self, address: int) -> Answer:
        owner = self._translator.owner(address)
        symbol = self._symbolizer.symbol(owner)
        path = self._table.objects[owner.object].path if owner.object is not None else ""
        if not path and owner.kind == "runtime":
            mapping = self._translator.mapping(address)
            path = mapping.path if mapping is not None and mapping.path.startswith("/") else ""
        if isinstance(symbol, Absent):
            why = owner.reason or (symbol.reason if path else "")
            return Answer(owner, path, None, why)
        return Answer(owner, path, symbol, owner.reason)


def open_finder(pid: Optional[int], core: Optional[str], exe: Optional[str]) -> Finder:
    target = open_target(pid=pid, core=core, exe=exe)
    table = decode(target)
    for warning in table.warnings:
        print(f"pieglobalsfind: {harmless(warning)}", file=sys.stderr)
    return Finder(Translator(table, target.maps()), Symbolizer(target, table), table)


def parse_address(text: str) -> int:
    """Hexadecimal, with or without 0x."""
    if not re.fullmatch(r"(0[xX])?[0-9a-fA-F]{1,16}", text):
        raise UsageError(f"{text!r} is no address", "write it in hexadecimal, such as 0x200040801234")
    return int(text, 16)


def find(finder: Finder, addresses: Sequence[int], as_json: bool) -> int:
    answers = [finder.answer(one) for one in addresses]
    for one in answers:
        print(one.as_json() if as_json else one.line())
    return FOUND if any(one.found for one in answers) else NOTHING_FOUND


def annotate(finder: Finder, lines: Iterable[str]) -> int:
    """Copy lines, and say behind each address in them what it is; what belongs to nothing stays as it is."""
    any_found = False

    @lru_cache(maxsize=4096)
    def known(text: str) -> str:
        answer = finder.answer(int(text, 16))
        return f" [{answer.line().partition('  ')[2]}]" if answer.found else ""

    for line in lines:
        changed = _ADDRESS.sub(lambda found: found.group() + known(found.group()), line)
        any_found = any_found or changed != line
        sys.stdout.write(changed)
        sys.stdout.flush()
    return FOUND if any_found else NOTHING_FOUND


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="pieglobalsfind",
        description="Say whose an address of a program with virtual MPI ranks is: rank, object, symbol, line.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    target = found.add_mutually_exclusive_group(required=True)
    target.add_argument("--pid", type=int, help="the running process that holds the ranks; it is not stopped")
    target.add_argument("--core", help="a core file of it, from the kernel or from gcore")
    found.add_argument("--exe", help="the program that left the core file, where it is not at its old place")
    found.add_argument("--json", action="store_true", help="print one JSON object for each address")
    found.add_argument("--filter", action="store_true", help="copy standard input, annotating every 0x address in it")
    found.add_argument("addresses", metavar="ADDRESS", nargs="*", help="in hexadecimal")
    return found


def run(arguments: argparse.Namespace) -> int:
    if arguments.filter == bool(arguments.addresses):
        raise UsageError("give either addresses or --filter", "see pieglobalsfind --help")
    addresses = [parse_address(one) for one in arguments.addresses]
    finder = open_finder(arguments.pid, arguments.core, arguments.exe)
    if arguments.filter:
        return annotate(finder, sys.stdin)
    return find(finder, addresses, arguments.json)


def main(words: Optional[Sequence[str]] = None) -> int:
    """The command; returns the exit status."""
    try:
        return run(parser().parse_args(words))
    except RanklensError as error:
        print(f"pieglobalsfind: {harmless(str(error))}", file=sys.stderr)
        return BAD
    except BrokenPipeError:
        sys.stderr.close()
        return FOUND
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
