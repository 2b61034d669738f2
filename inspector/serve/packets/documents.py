"""The documents that debuggers read by `qXfer`: threads, libraries and processes, as XML.

Takes ranks as processes; gives text. What comes from a target is escaped, and has no character that XML can't hold.
Source: GDB's manual, "Thread List Format", "Library List Format for SVR4 Targets", "osdata".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..ranks.rank_process import Library, RankProcess

NOT_XML = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"  # compiled where a text may have one
COLUMNS = ("pid", "rank", "state", "process", "command")
# Python's own modules for this import all named characters of HTML, or a client of the web: a debugger would wait.
ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
TYPES = (("processes", "The job's ranks, each of them a process"),)


def escaped(text: str) -> str:
    """The text as an element or an attribute holds it, with a question mark for what XML can't hold."""
    if not (text.isascii() and text.isprintable()):
        text = re.sub(NOT_XML, "?", text)
    return text.translate(ESCAPES)


def thread_list(threads: Iterable[tuple[str, RankProcess]]) -> str:
    """(thread id, rank) of each thread; where the rank waits is what GDB prints in parentheses."""
    rows = (
        f'<thread id="{thread}" name="rank {rank_process.rank.rank}">{escaped(rank_process.state)}</thread>'
        for thread, rank_process in threads
    )
    return f'<?xml version="1.0"?><threads>{"".join(rows)}</threads>'


def library_list(libraries: Iterable[Library], program: int) -> str:
    """A rank's libraries; `program` is its program's identity."""
    rows = (
        f'<library name="{escaped(each.name)}" lm={hexadecimal(each.identity)} l_addr={hexadecimal(each.bias)}'
        f' l_ld={hexadecimal(each.dynamic)} lmid="0x0"/>'
        for each in libraries
    )
    head = f'<library-list-svr4 version="1.0" main-lm={hexadecimal(program)}>'
    return f"{head}{''.join(rows)}</library-list-svr4>"


def hexadecimal(value: int) -> str:
    """An attribute's value."""
    return f'"{value:#x}"'


def process_table(rows: Iterable[tuple[int, RankProcess]]) -> str:
    """(pid, rank) of each; what `info os processes` prints."""
    return _table(COLUMNS, ((str(pid), *_cells(rank_process)) for pid, rank_process in rows), "processes")


def _cells(rank_process: RankProcess) -> tuple[str, ...]:
    return (
        str(rank_process.rank.rank),
        rank_process.state,
        rank_process.view.target.description,
        rank_process.program.path,
    )


def type_table() -> str:
    """What `info os` prints: which tables there are."""
    return _table(("Type", "Description"), TYPES, "types")


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]], kind: str) -> str:
    items = "".join(
        "<item>"
        + "".join(f'<column name="{name}">{escaped(text)}</column>' for name, text in zip(columns, row))
        + "</item>"
        for row in rows
    )
    return f'<?xml version="1.0"?><!DOCTYPE osdata SYSTEM "osdata.dtd"><osdata type="{kind}">{items}</osdata>'
