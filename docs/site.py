"""What MkDocs adds to docs/ for the site: the README as its first page, the pages beside it, and every command's help.

Takes MkDocs' events (https://www.mkdocs.org/user-guide/plugins/#events); writes no file.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ["COLUMNS"] = "80"

from gdbext.__main__ import parser as gdb_path  # noqa: E402 - they stand beside this folder
from inspector.command_line import parser as inspector  # noqa: E402
from lldbext.__main__ import parser as lldb_path  # noqa: E402
from pieglobalsfind.cli.command_line import parser as pieglobalsfind  # noqa: E402
from pieglobalsfind.cli.registry_check import parser as registry_check  # noqa: E402
from pieglobalsfind.debugger.commands import COMMANDS  # noqa: E402

BESIDE = {"index.md": "README.md", "changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add pages that are made, not written in docs/."""
    for name, source in BESIDE.items():
        text = re.sub(r"\]\(docs/", "](", (ROOT / source).read_text())
        files.append(File.generated(config, name, content=text))
    files.append(File.generated(config, "commands.md", content="\n".join(command_reference())))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Leave out links to files of the repository that are not on the site."""
    return re.sub(r"\[([^]]+)\]\(\.\./[^)]+\)", r"\1", markdown)


def command_reference() -> Iterator[str]:
    """Yield the lines of the page: the shell's commands as their --help, then the debuggers' commands."""
    yield "# Every command and option\n"
    yield "Made from the declarations that `--help` and `help rank` print.\n"
    tool = inspector()
    tool.epilog = None  # it names a folder of the machine that it runs on
    for parser in (tool, pieglobalsfind(), registry_check(), gdb_path(), lldb_path()):
        yield f"## {parser.prog}\n\n```text\n{parser.format_help()}```\n"
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, command in action.choices.items():
                    yield f"### {parser.prog} {name}\n\n```text\n{command.format_help()}```\n"
    yield "## GDB and LLDB\n"
    for declared in COMMANDS:
        yield f"### {declared.name}\n\n```text\n{declared.name} {declared.arguments}".rstrip()
        yield f"\n{declared.summary}\n{declared.description}".rstrip() + "\n```\n"
