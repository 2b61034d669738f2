"""Writes man pages and completions of every command to build/share, from the declarations that `--help` is made of.

Takes nothing; run it in the project's folder after `make setup`. rankrun and rankmpir declare their options in C: those
are read from what their `--help` prints.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from pathlib import Path

import shtab
from argparse_manpage.manpage import Manpage

from gdbext.__main__ import parser as gdb_path
from inspector.command_line import parser as inspector
from lldbext.__main__ import parser as lldb_path
from pieglobalsfind.cli.command_line import parser as pieglobalsfind
from pieglobalsfind.cli.registry_check import parser as registry_check

SHARE = Path("build/share")
COMPLETIONS = {  # where each shell looks for them below /usr/share
    "bash": "bash-completion/completions/{}",
    "zsh": "zsh/site-functions/_{}",
    "fish": "fish/vendor_completions.d/{}.fish",
}
OPTION = re.compile(r"^ +(?:(-\w), )? *(--[\w-]+)(?: ([A-Z][^ ]*))? *(.*)")
CONTINUED = re.compile(r"^ {25,}(.*)")


def of_help(name: str) -> argparse.ArgumentParser:
    """Declare what the `--help` of a command written in C says."""
    words = [Path("build/runtime/bin", name), "--help"]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    first, _, rest = text.partition("\n")
    made = argparse.ArgumentParser(
        prog=name,
        usage=first.partition("usage: ")[2],
        add_help=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    prose: list[str] = []
    option = None
    for line in rest.splitlines():
        match, more = OPTION.match(line), CONTINUED.match(line)
        if match:
            short, long, value, words_of_help = match.groups()
            flags = [flag for flag in (short, long) if flag]
            kind = {"metavar": value} if value else {"action": "store_true"}
            option = made.add_argument(*flags, help=words_of_help.replace("%", "%%"), **kind)  # type: ignore[arg-type]
        elif more and option is not None:
            option.help = f"{option.help} {more[1]}".strip().replace("%", "%%")
        else:
            prose.append(line)
            option = None
    before, _, after = "\n".join(prose).strip().partition("\n\n")
    made.description, made.epilog = before, after
    return made


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main() -> None:
    """Write all of them."""
    tool = inspector()
    tool.epilog = "docs/ is share/doc/ranklens/docs where ranklens is installed"  # and not where this is written
    declared = [tool, pieglobalsfind(), registry_check(), gdb_path(), lldb_path()]
    parsers = [*declared, of_help("rankrun"), of_help("rankmpir")]
    for parser in parsers:
        page = Manpage(parser)
        page.manual = "ranklens"
        page.description = str(parser.description).partition(". ")[0].rstrip(".").replace("\n", " ")
        write(SHARE / f"man/man1/{parser.prog}.1", str(page))
        for shell, place in COMPLETIONS.items():
            write(SHARE / place.format(parser.prog), shtab.complete(parser, shell=shell))


if __name__ == "__main__":
    main()
